"""Which external agents are installed on this machine, and their versions.

A version is asked of the program itself: all of them at once, without keys, and ended when it takes too long. Of what a
program prints only what looks like a version is taken.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from contextlib import suppress

from holdfast.config import command_environment
from holdfast.external_agents import CATALOGUE, ExternalAgent
from holdfast.schemas.agents import AgentList, KnownAgent
from holdfast.settings import Settings

VERSION_SECONDS = 10.0
OUTPUT_BYTES = 4_096
VERSION = re.compile(r"\d{1,6}(?:\.\d{1,9}){1,3}(?:[-+.][0-9A-Za-z.-]{1,30})?")


async def list_agents(settings: Settings, *, versions: bool, seconds: float = VERSION_SECONDS) -> AgentList:
    """Return all that the catalogue has; with `versions`, the programs are asked for theirs."""
    secrets = settings.hidden_names | {name for agent in CATALOGUE.values() for name in agent.variables}
    env = command_environment(secrets)
    path = env.get("PATH")
    programs = {agent.name: _program(agent, path) for agent in CATALOGUE.values()}
    asked = [agent for agent in CATALOGUE.values() if versions and programs[agent.name]]
    said = await asyncio.gather(*(_version(agent, env | dict(agent.env), seconds) for agent in asked))
    found = {agent.name: version for agent, version in zip(asked, said, strict=True)}
    return AgentList(
        [
            KnownAgent(
                name=agent.name,
                title=agent.title,
                program=programs[agent.name],
                version=found.get(agent.name, ""),
                profiles=[name for name, one in sorted(settings.profiles.items()) if one.agent == agent.name],
                install=agent.install,
                login=agent.login,
            )
            for agent in CATALOGUE.values()
        ]
    )


def _program(agent: ExternalAgent, path: str | None) -> str:
    """Return the program that speaks the protocol; without one, that which can be run as a command."""
    names = [agent.acp[0], *(agent.command.program if agent.command is not None else ())]
    return next((found for name in names if (found := shutil.which(name, path=path)) is not None), "")


async def _version(agent: ExternalAgent, env: dict[str, str], seconds: float) -> str:
    """Return the version that a program says; empty if it says none in time."""
    program = shutil.which(agent.version[0], path=env.get("PATH"))
    if program is None:
        return ""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *(program, *agent.version[1:]), stdin=nothing, stdout=pipe, stderr=nothing, env=env, start_new_session=True
        )
    except OSError:
        return ""
    assert process.stdout is not None
    output = b""
    try:
        with suppress(TimeoutError):  # what it has said until then may be enough
            async with asyncio.timeout(seconds):
                while len(output) < OUTPUT_BYTES and (piece := await process.stdout.read(OUTPUT_BYTES)):
                    output += piece
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with all that it started
        with suppress(TimeoutError):  # something that left its group may hold the pipe
            async with asyncio.timeout(seconds):
                while await process.stdout.read(OUTPUT_BYTES):  # else its end is not noticed behind a full buffer
                    continue
                await process.wait()
    version = VERSION.search(output.decode("utf-8", "replace"))
    return "" if version is None else version[0]
