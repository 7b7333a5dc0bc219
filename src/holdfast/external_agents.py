"""External agents: programs of others that work on a session as its driver's process. All of it is data.

An agent that speaks the Agent Client Protocol is one process for a whole session; a command-line agent is one process
a turn, which resumes by its own id. What is particular about an agent is said beside it, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

DriverName = Literal["builtin", "acp", "command"]
OutputFormat = Literal["claude", "qwen", "codex", "opencode", "gemini", "text"]
"""How a command-line agent says what it does: JSON lines of its own kind, or its answer as plain text."""
PROMPT, SESSION, ADOPTED = "{prompt}", "{session}", "{adopted}"
MODE, MCP = "{mode}", "{mcp}"
"""Placeholders in a command line: for the arguments of the mode, and of each MCP server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandMode:
    """What a command-line agent may do without asking; nobody can be asked."""

    name: str
    arguments: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    uses: tuple[str, ...] = ("write",)
    """The tools that it uses without asking."""
    sandbox_env: tuple[tuple[str, str], ...] = ()
    """Variables that it gets in a sandbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCommand:
    """How an agent is run once for each turn. Where there is no `{prompt}`, its standard input is the prompt."""

    program: tuple[str, ...]
    first: tuple[str, ...]
    """The arguments of the first turn. `{session}` is an id that we choose; without it the agent says its own."""
    resume: tuple[str, ...] = ()
    """Those of a turn that continues session `{session}`; empty if it cannot."""
    fork: tuple[str, ...] = ()
    """Those of a turn that continues a copy of session `{adopted}`; `{session}` is then as in the first turn."""
    output: OutputFormat = "text"
    modes: tuple[CommandMode, ...] = ()
    """The first one is used if the profile chooses none."""
    mcp: tuple[str, ...] = ()
    """The arguments for an MCP server at `{url}`, with the bearer token in the variable `{token_variable}`."""

    def mode(self, name: str) -> CommandMode | None:
        """Return the mode with this name, or the default one; None if there is none."""
        return next((mode for mode in self.modes if name in ("", mode.name)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalAgent:
    """An agent that Holdfast knows how to start."""

    name: str
    title: str
    acp: tuple[str, ...] = ()
    """The command that speaks the Agent Client Protocol on its standard input and output; empty if there is none."""
    command: TurnCommand | None = None
    """How it is run once for each turn; None if we do not understand its output."""
    unrestricted: tuple[str, ...] = ()
    """Modes in which nothing limits it but a sandbox around it."""
    install: str
    """How a person installs it."""
    login: str = ""
    """The command by which a person logs in."""
    version: tuple[str, ...] = ()
    """The command that prints its version."""
    variables: tuple[str, ...] = ()
    """Variables of the gateway's environment that it gets, if they are set: its keys, and where its model is."""
    env: tuple[tuple[str, str], ...] = ()
    """Variables that it always gets."""
    mode: str = ""
    """The mode in which it asks a person before it changes anything, if that is not its own default."""
    piped: bool = False
    """Its standard output must be a pipe: its library fails on a file."""
    load_after_seconds: int = 0
    """It must not be loaded again within this time after its last process ended."""
    takes_tools: bool = False
    """It takes tools over HTTP although it does not say so."""
    tools_late: bool = False
    """It asks its model before its tools have come, and does not add them later."""
    env_on_card: tuple[tuple[str, str], ...] = ()
    """Variables that it gets while it works on a card."""


OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")
CLAUDE_JSON = ("--verbose", "--output-format", "stream-json", "--include-partial-messages")
QWEN_JSON = ("-o", "stream-json", "--include-partial-messages")
OPENCODE_EDITS = '{"edit": "allow", "bash": "deny", "webfetch": "deny", "external_directory": "deny"}'
CATALOGUE = {
    agent.name: agent
    for agent in (
        ExternalAgent(
            name="claude",
            title="Claude Code",
            acp=("claude-agent-acp",),
            install="npm install -g @agentclientprotocol/claude-agent-acp @anthropic-ai/claude-code",
            login="claude /login",
            version=("claude-agent-acp", "--version"),
            variables=(
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "ANTHROPIC_BASE_URL",
                "ANTHROPIC_MODEL",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CONFIG_DIR",
            ),
            mode="default",
            unrestricted=("bypassPermissions",),
            command=TurnCommand(
                program=("claude",),
                first=("-p", *CLAUDE_JSON, MODE, MCP, "--session-id", SESSION),
                resume=("-p", *CLAUDE_JSON, MODE, MCP, "--resume", SESSION),
                fork=("-p", *CLAUDE_JSON, MODE, MCP, "--resume", ADOPTED, "--fork-session", "--session-id", SESSION),
                output="claude",
                modes=(
                    CommandMode(name="acceptEdits", arguments=("--permission-mode", "acceptEdits")),
                    CommandMode(name="default", arguments=("--permission-mode", "default"), uses=()),
                    CommandMode(name="plan", arguments=("--permission-mode", "plan"), uses=()),
                    CommandMode(
                        name="bypassPermissions",
                        arguments=("--permission-mode", "bypassPermissions"),
                        uses=("write", "terminal"),
                        sandbox_env=(("IS_SANDBOX", "1"),),  # else it refuses to run as root
                    ),
                ),
                mcp=(
                    "--mcp-config",
                    '{{"mcpServers": {{"{name}": {{"type": "http", "url": "{url}", '
                    '"headers": {{"Authorization": "Bearer ${{{token_variable}}}"}}}}}}}}',
                    *("--allowedTools", "mcp__{name}"),
                ),
            ),
        ),
        ExternalAgent(
            name="codex",
            title="Codex",
            acp=("codex-acp",),
            install="npm install -g @agentclientprotocol/codex-acp @openai/codex",
            login="codex login",
            version=("codex", "--version"),
            variables=(*OPENAI, "CODEX_HOME"),
            # In its default mode a model decides about permissions. In this one it edits the workspace without asking,
            # and asks for what is outside of it; in `read-only` a command that writes fails, and it need not ask.
            mode="workspace-write",
            unrestricted=("danger-full-access", "agent-full-access"),
            command=TurnCommand(
                program=("codex",),
                first=("exec", "--json", "--skip-git-repo-check", MODE, MCP, "-"),
                resume=("exec", "resume", "--json", "--skip-git-repo-check", MODE, MCP, SESSION, "-"),
                fork=("exec", "fork", "--json", "--skip-git-repo-check", MODE, MCP, ADOPTED, "-"),
                output="codex",
                modes=(  # by -c, since `exec resume` has no --sandbox
                    CommandMode(
                        name="workspace-write",
                        arguments=("-c", 'sandbox_mode="workspace-write"'),
                        uses=("write", "terminal"),
                    ),
                    CommandMode(name="read-only", arguments=("-c", 'sandbox_mode="read-only"'), uses=()),
                    CommandMode(
                        name="danger-full-access",
                        arguments=("--dangerously-bypass-approvals-and-sandbox",),
                        uses=("write", "terminal"),
                    ),
                ),
                mcp=(
                    *("-c", 'mcp_servers.{name}.url="{url}"'),
                    *("-c", 'mcp_servers.{name}.bearer_token_env_var="{token_variable}"'),
                    *("-c", 'mcp_servers.{name}.default_tools_approval_mode="approve"'),
                ),
            ),
        ),
        ExternalAgent(
            name="qwen",
            title="Qwen Code",
            acp=("qwen", "--acp"),
            install="npm install -g @qwen-code/qwen-code",
            login="qwen, then /auth",
            version=("qwen", "--version"),
            variables=(*OPENAI, "DASHSCOPE_API_KEY"),
            tools_late=True,
            # else it hides the tools of a server behind a search for tools
            env_on_card=(("QWEN_CODE_SYSTEM_DEFAULTS_PATH", str(Path(__file__).with_name("qwen_on_card.json"))),),
            mode="default",  # its own default is `auto`, which does not ask
            unrestricted=("yolo",),
            command=TurnCommand(
                program=("qwen",),
                first=(*QWEN_JSON, MODE, "--session-id", SESSION),
                resume=(*QWEN_JSON, MODE, "--resume", SESSION),
                output="qwen",
                modes=(
                    CommandMode(name="auto-edit", arguments=("--approval-mode", "auto-edit")),
                    CommandMode(name="default", arguments=("--approval-mode", "default"), uses=()),
                    CommandMode(name="plan", arguments=("--approval-mode", "plan"), uses=()),
                    CommandMode(
                        name="yolo",
                        arguments=("--approval-mode", "yolo"),
                        uses=("write", "terminal"),
                    ),
                ),
            ),
        ),
        ExternalAgent(
            name="opencode",
            title="OpenCode",
            acp=("opencode", "acp"),
            install="npm install -g opencode-ai",
            login="opencode auth login",
            version=("opencode", "--version"),
            variables=("ANTHROPIC_API_KEY", *OPENAI),
            env=(("OPENCODE_DISABLE_AUTOUPDATE", "1"),),  # an update would replace the program under a live session
            unrestricted=("auto",),
            command=TurnCommand(
                program=("opencode",),
                first=("run", "--format", "json", "--thinking", MODE),
                resume=("run", "--format", "json", "--thinking", MODE, "--session", SESSION),
                output="opencode",
                modes=(
                    # what its own settings leave open is asked, and then denied, which ends its turn
                    CommandMode(name="build", env=(("OPENCODE_PERMISSION", OPENCODE_EDITS),)),
                    CommandMode(name="plan", arguments=("--agent", "plan"), uses=()),
                    CommandMode(name="auto", arguments=("--auto",), uses=("write", "terminal")),
                ),
            ),
        ),
        ExternalAgent(
            name="gemini",
            title="Gemini CLI",
            acp=("gemini", "--acp"),
            install="npm install -g @google/gemini-cli",
            login="gemini",
            version=("gemini", "--version"),
            variables=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GEMINI_BASE_URL"),
            mode="default",
            unrestricted=("yolo",),
            command=TurnCommand(
                program=("gemini",),
                first=("-o", "stream-json", MODE, "--session-id", SESSION),
                resume=("-o", "stream-json", MODE, "--resume", SESSION),
                output="gemini",
                modes=(
                    CommandMode(name="auto_edit", arguments=("--approval-mode", "auto_edit")),
                    CommandMode(name="default", arguments=("--approval-mode", "default"), uses=()),
                    CommandMode(name="plan", arguments=("--approval-mode", "plan"), uses=()),
                    CommandMode(
                        name="yolo",
                        arguments=("--approval-mode", "yolo"),
                        uses=("write", "terminal"),
                    ),
                ),
            ),
            load_after_seconds=61,  # loading a session within the minute of its last write destroys it
        ),
        ExternalAgent(
            name="copilot",
            title="GitHub Copilot CLI",
            acp=("copilot", "--acp"),
            install="npm install -g @github/copilot",
            login="copilot, then /login",
            version=("copilot", "--version"),
            variables=("GH_TOKEN", "GITHUB_TOKEN", "COPILOT_MODEL"),
        ),
        ExternalAgent(
            name="kimi",
            title="Kimi Code",
            acp=("kimi", "acp"),
            install="npm install -g @moonshot-ai/kimi-code",
            login="kimi login",
            version=("kimi", "--version"),
            variables=("KIMI_API_KEY", "MOONSHOT_API_KEY"),
            env=(("KIMI_NO_UPDATE", "1"),),  # an update would replace the program under a live session
        ),
        ExternalAgent(
            name="vibe",
            title="Mistral Vibe",
            acp=("vibe-acp",),
            install="pipx install mistral-vibe",
            login="vibe --setup",
            version=("vibe", "--version"),
            variables=("MISTRAL_API_KEY",),
            mode="ask",
            piped=True,
        ),
        ExternalAgent(
            name="hermes",
            title="Hermes Agent",
            acp=("hermes-acp",),
            install="pipx install 'hermes-agent[acp,mcp]'",
            login="hermes setup",
            version=("hermes", "--version"),
            variables=(*OPENAI, "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "HERMES_HOME"),
            piped=True,
            takes_tools=True,
        ),
    )
}


def installed_agents() -> list[ExternalAgent]:
    """Return those whose program is on the path of this process."""
    import shutil

    return [agent for agent in CATALOGUE.values() if shutil.which(agent.acp[0]) is not None]
