"""The files of external agents in the home directory of their user, for the sandbox. All of it is data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFiles:
    """Paths below the home directory."""

    writes: tuple[str, ...]
    """Directories in which it keeps its sessions and its state."""
    credentials: tuple[str, ...] = ()
    """Its log-ins: hidden from every command in a sandbox, but for the agent itself."""
    programs: tuple[str, ...] = ()
    """Settings that name programs, or texts that it obeys: an agent in a sandbox cannot change them, because the same
    agent reads them outside of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFiles:
    """Where an agent keeps the sessions that were begun in its own terminal, one file of JSON lines each."""

    variable: str
    """The variable that names its home."""
    home: str
    """Its home without that, below the home directory of its user."""
    directory: str
    """The directory with the sessions, below its home."""


SESSIONS = {
    "claude": SessionFiles(variable="CLAUDE_CONFIG_DIR", home=".claude", directory="projects"),
    "codex": SessionFiles(variable="CODEX_HOME", home=".codex", directory="sessions"),
}
"""Agents whose sessions can be adopted, by their names in the catalogue."""
FILES = {
    "claude": AgentFiles(
        writes=(".claude",),  # `.claude.json` names MCP servers, so it stays read-only
        credentials=(".claude/.credentials.json",),
        programs=(
            *(".claude/settings.json", ".claude/settings.local.json", ".claude/CLAUDE.md", ".claude/hooks"),
            *(".claude/plugins", ".claude/commands", ".claude/agents", ".claude/skills", ".claude/output-styles"),
        ),
    ),
    "codex": AgentFiles(
        writes=(".codex",),
        credentials=(".codex/auth.json",),
        programs=(
            *(".codex/config.toml", ".codex/AGENTS.md", ".codex/AGENTS.override.md", ".codex/hooks.json"),
            *(".codex/prompts", ".codex/skills", ".codex/rules", ".codex/plugins"),
        ),
    ),
    "qwen": AgentFiles(
        writes=(".qwen",),
        credentials=(".qwen/oauth_creds.json", ".qwen/.env"),
        programs=(
            *(".qwen/settings.json", ".qwen/QWEN.md", ".qwen/extensions", ".qwen/skills"),
            *(".qwen/commands", ".qwen/agents"),
        ),
    ),
    "opencode": AgentFiles(
        writes=(".local/share/opencode", ".local/state/opencode", ".cache/opencode"),
        credentials=(".local/share/opencode/auth.json", ".local/share/opencode/mcp-auth.json"),
        # its settings are not among what it writes; without the first of these it tries to write it, and ends
        programs=(".config/opencode/.gitignore", ".cache/opencode/bin", ".local/share/opencode/bin"),
    ),
    "gemini": AgentFiles(
        writes=(".gemini",),
        credentials=(".gemini/oauth_creds.json", ".gemini/.env"),
        programs=(".gemini/settings.json", ".gemini/GEMINI.md", ".gemini/extensions", ".gemini/commands"),
    ),
    "copilot": AgentFiles(
        writes=(".copilot",),
        credentials=(".copilot/config.json", ".config/github-copilot"),
        programs=(".copilot/mcp-config.json", ".copilot/agents", ".copilot/skills"),
    ),
    "kimi": AgentFiles(
        writes=(".kimi-code",),
        credentials=(".kimi-code/credentials",),
        programs=(".kimi-code/config.toml", ".kimi-code/mcp.json", ".kimi-code/skills"),
    ),
    "vibe": AgentFiles(
        writes=(".vibe",),
        credentials=(".vibe/.env",),
        programs=(".vibe/config.toml", ".vibe/prompts", ".vibe/agents", ".vibe/tools", ".vibe/skills"),
    ),
    "hermes": AgentFiles(
        writes=(".hermes",),
        credentials=(".hermes/.env", ".hermes/auth.json"),
        programs=(
            *(".hermes/config.yaml", ".hermes/SOUL.md", ".hermes/hooks", ".hermes/cron", ".hermes/skills"),
            *(".hermes/plugins",),
        ),
    ),
}
"""By the agent's name in the catalogue."""
CREDENTIALS = tuple(path for files in FILES.values() for path in files.credentials)
