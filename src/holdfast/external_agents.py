"""External agents: programs of others that work on a session as its driver's process. All of it is data.

An agent that speaks the Agent Client Protocol is one process for a whole session; a command-line agent is one process
a turn, which resumes by its own id. What is particular about an agent is said beside it, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

DriverName = Literal["builtin", "acp", "command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalAgent:
    """An agent that Holdfast knows how to start."""

    name: str
    title: str
    acp: tuple[str, ...] = ()
    """The command that speaks the Agent Client Protocol on its standard input and output; empty if there is none."""
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
    writes: tuple[str, ...] = ()
    """What it writes in the home directory of its user, for a sandbox."""


OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")
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
            ),
            mode="default",
            writes=(".claude", ".claude.json"),
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
            writes=(".codex",),
        ),
        ExternalAgent(
            name="qwen",
            title="Qwen Code",
            acp=("qwen", "--acp"),
            install="npm install -g @qwen-code/qwen-code",
            login="qwen, then /auth",
            version=("qwen", "--version"),
            variables=(*OPENAI, "DASHSCOPE_API_KEY"),
            mode="default",  # its own default is `auto`, which does not ask
            writes=(".qwen",),
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
            writes=(".config/opencode", ".local/share/opencode", ".cache/opencode", ".local/state/opencode"),
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
            load_after_seconds=61,  # loading a session within the minute of its last write destroys it
            writes=(".gemini",),
        ),
        ExternalAgent(
            name="copilot",
            title="GitHub Copilot CLI",
            acp=("copilot", "--acp"),
            install="npm install -g @github/copilot",
            login="copilot, then /login",
            version=("copilot", "--version"),
            variables=("GH_TOKEN", "GITHUB_TOKEN", "COPILOT_MODEL"),
            writes=(".copilot", ".config/github-copilot"),
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
            writes=(".kimi-code",),
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
            writes=(".vibe",),
        ),
        ExternalAgent(
            name="hermes",
            title="Hermes Agent",
            acp=("hermes-acp",),
            install="pipx install 'hermes-agent[acp]'",
            login="hermes setup",
            version=("hermes", "--version"),
            variables=(*OPENAI, "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "HERMES_HOME"),
            piped=True,
            writes=(".hermes",),
        ),
    )
}


def installed_agents() -> list[ExternalAgent]:
    """Return those whose program is on the path of this process."""
    import shutil

    return [agent for agent in CATALOGUE.values() if shutil.which(agent.acp[0]) is not None]


class AgentChoice(Protocol):
    """What a profile says about its agent."""

    @property
    def driver_name(self) -> DriverName:
        """What runs its turns."""
        ...

    @property
    def agent(self) -> str:
        """The name in the catalogue; empty for none."""
        ...

    @property
    def argv(self) -> list[str]:
        """The command, if it is not that of the catalogue."""
        ...


def agent_problem(profile: AgentChoice) -> tuple[str, str] | None:
    """What is wrong with the external agent of a profile: the key, and what would be right."""
    names = ", ".join(CATALOGUE)
    if profile.agent and profile.agent not in CATALOGUE:
        return "agent", f"is {profile.agent!r}; write one of: {names}; or give its command as argv."
    if profile.driver_name == "builtin":
        given = "agent" if profile.agent else "argv" if profile.argv else ""
        return (given, 'is for an external agent; write driver = "acp".') if given else None
    if profile.driver_name == "command":
        return "driver", '= "command" is not there yet; write "acp".'
    if not profile.agent and not profile.argv:
        return "driver", f'= "acp" needs an agent (one of: {names}) or an argv.'
    return None
