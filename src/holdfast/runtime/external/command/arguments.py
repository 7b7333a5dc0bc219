"""The command line of a command-line agent's turn. Pure. It is a list of words, and no shell reads it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid5

from holdfast.domain.errors import Rejected
from holdfast.domain.events.external_agent import AttachedBy
from holdfast.external_agents import ADOPTED, MCP, MODE, PROMPT, SESSION
from holdfast.runtime.external.configuration import ExternalCommand

ARGUMENT_BYTES = (128 << 10) - 1
"""Linux allows no longer argument in a command line."""
NAMESPACE = UUID("6f1c7a52-3f0e-4b0e-9a55-0d1f6f0c2c0e")


@dataclass(frozen=True, slots=True)
class OwnSession:
    """The agent's own session that a process works in."""

    how: AttachedBy
    id: str
    """The one that is resumed, or the one that we choose for a new one."""
    adopted: str = ""
    """The one that a copy is made of."""


@dataclass(frozen=True, slots=True)
class McpAddress:
    """An MCP server that an agent is given by its flags. Its token is in a variable: a command line can be read."""

    name: str
    url: str
    token_variable: str


def own_session_id(session: str, prompt: int) -> str:
    """Return the id that we choose for an agent's session: the same whenever it is computed."""
    return str(uuid5(NAMESPACE, f"{session}/{prompt}"))


def takes_prompt(external: ExternalCommand, how: AttachedBy) -> bool:
    """Whether the prompt is an argument of the command line; else it is the standard input."""
    return any(PROMPT in word for word in _form(external, how))


def _form(external: ExternalCommand, how: AttachedBy) -> tuple[str, ...]:
    """Return the arguments of a process that begins a session, resumes one, or continues a copy."""
    assert external.command is not None
    forms = {"resume": external.command.resume, "fork": external.command.fork}
    return forms.get(how, external.command.first)


def chooses_session(external: ExternalCommand) -> bool:
    """Whether we choose the id of a new session; else the agent says it."""
    return external.command is not None and any(SESSION in word for word in external.command.first)


def command_arguments(
    external: ExternalCommand, own: OwnSession, *, prompt: str, servers: tuple[McpAddress, ...] = ()
) -> list[str]:
    """Return the words of a turn's command. `Rejected` if the prompt is too long for one of them."""
    command, mode = external.command, external.command_mode
    assert command is not None
    words = list(external.argv) if command.program else []
    for word in _form(external, own.how):
        if word == MODE:
            words += mode.arguments if mode is not None else ()
        elif word == MCP:
            words += [form.format(**_fields(server)) for server in servers for form in command.mcp]
        else:
            # the session first: a prompt may contain `{session}`
            parts = (part.replace(SESSION, own.id).replace(ADOPTED, own.adopted) for part in word.split(PROMPT))
            words.append(prompt.join(parts))
    if any(len(word.encode(errors="surrogatepass")) > ARGUMENT_BYTES for word in words):
        size = len(prompt.encode(errors="surrogatepass"))
        raise Rejected(
            f"The message is too long for the command line of {external.name}: with the instructions that it needs, it "
            f"has {size} bytes, and a word of a command line has at most {ARGUMENT_BYTES}.",
            hint="Put the text into a file and name the file; or, if the program reads its standard input, remove "
            "{prompt} from argv in the profile, and it gets the message there.",
        )
    return words


def _fields(server: McpAddress) -> dict[str, str]:
    return {"name": server.name, "url": server.url, "token_variable": server.token_variable}
