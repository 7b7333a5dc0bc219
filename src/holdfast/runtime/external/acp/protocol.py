"""The messages of the protocol, lenient towards agents: unknown fields, kinds and methods are ignored. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.worker_access import ToolServer

INITIALIZE, OPEN, LIST, SET_MODE = 1, 2, 3, 4
"""The ids of our requests while a process is made ready."""
STEER = "steer-"
"""Before the id of an input, in that of the request by which it is sent to an agent at work."""
UNKNOWN_METHOD = -32601
NO_TOOLS = 1
"""Ours, not of the protocol: the agent takes no tools over HTTP."""
VERSION = 1
"""Of the protocol."""
CLIENT = {
    "protocolVersion": VERSION,
    "clientCapabilities": {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
        "elicitation": {"form": {}},
    },
    "clientInfo": {"name": "holdfast", "version": "1"},
}


class RpcError(msgspec.Struct, frozen=True):
    """Why a request failed."""

    code: int = 0
    message: str = ""
    data: Any = None

    @property
    def kinds(self) -> frozenset[str]:
        """The words by which agents name the kind of an error, beside the message."""
        data = self.data if isinstance(self.data, dict) else {}
        found = (data.get(name) for name in ("errorKind", "codexErrorInfo", "type", "code"))
        return frozenset(word for word in found if isinstance(word, str))

    def __str__(self) -> str:
        """The message, with the details that many agents put into `data`."""
        data = self.data
        detail = data.get("details") or data.get("message") or "" if isinstance(data, dict) else data
        words = (self.message, detail if isinstance(detail, str) else "")
        return ": ".join(dict.fromkeys(word.strip().rstrip(".") for word in words if word)) or f"error {self.code}"


class AcpMessage(msgspec.Struct, frozen=True):
    """A line of an agent: a request (id and method), a notification (method), or an answer to a request of ours."""

    id: int | str | None = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"{}")
    error: RpcError | None = None

    @property
    def is_answer(self) -> bool:
        """Whether it answers a request of ours."""
        return not self.method and self.id is not None

    @property
    def json_id(self) -> str:
        """The id as it is in JSON, to be repeated in the answer."""
        return msgspec.json.encode(self.id).decode()


class AgentInfo(msgspec.Struct, frozen=True):
    """Who the agent is."""

    name: str = ""
    version: str = ""


class Capabilities(msgspec.Struct, frozen=True, rename="camel"):
    """What the agent can do."""

    load_session: bool = False
    mcp_capabilities: dict[str, Any] = {}
    session_capabilities: dict[str, Any] = {}


class Initialized(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to `initialize`."""

    protocol_version: int = VERSION
    agent_info: AgentInfo | None = None
    agent_capabilities: Capabilities = Capabilities()
    meta: Any = msgspec.field(name="_meta", default=None)

    @property
    def steers(self) -> bool:
        """Whether it takes messages while it works: an extension, `_session/steering`."""
        steering = self.meta.get("steering") if isinstance(self.meta, dict) else None
        return isinstance(steering, dict) and steering.get("supported") is True


class AcpMode(msgspec.Struct, frozen=True):
    """A mode of the agent."""

    id: str


class Modes(msgspec.Struct, frozen=True, rename="camel"):
    """The modes of the agent, and the one that it is in."""

    current_mode_id: str = ""
    available_modes: list[AcpMode] = []


class OpenedSession(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to `session/new`, `session/resume` and `session/load`."""

    session_id: str = ""
    modes: Modes | None = None


class ListedSessions(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to `session/list`."""

    class Entry(msgspec.Struct, frozen=True, rename="camel"):
        """A session that the agent knows."""

        session_id: str = ""

    sessions: list[Entry] = []
    next_cursor: str | None = None


class PlanItem(msgspec.Struct, frozen=True):
    """A step of the agent's plan."""

    content: str = ""
    status: str = "pending"


class AcpLocation(msgspec.Struct, frozen=True):
    """A file that a tool call is about."""

    path: str = ""


class SessionUpdate(msgspec.Struct, frozen=True, rename="camel"):
    """What happened in the session. `session_update` says which of the fields there are."""

    session_update: str = ""
    content: Any = None
    """A block of text, or the list of what a tool call has produced so far."""
    tool_call_id: str = ""
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    raw_input: Any = None
    raw_output: Any = None
    locations: list[AcpLocation] | None = None
    entries: list[PlanItem] = []
    used: int = 0
    """Of the model's window, in tokens."""
    meta: Any = msgspec.field(name="_meta", default=None)


class Updated(msgspec.Struct, frozen=True):
    """The parameters of `session/update`."""

    update: SessionUpdate = SessionUpdate()


class PermissionOption(msgspec.Struct, frozen=True, rename="camel"):
    """One way to answer a permission request."""

    option_id: str
    name: str = ""
    kind: str = ""


class PermissionRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of `session/request_permission`."""

    tool_call: SessionUpdate
    options: list[PermissionOption] = []


class TokenUsage(msgspec.Struct, frozen=True, rename="camel"):
    """What a prompt cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int | None = None


class Steered(msgspec.Struct, frozen=True):
    """The answer to `_session/steering`."""

    outcome: str = ""
    """`injected`; `promptRequired` if it works on nothing; `failed`."""


class PromptDone(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to `session/prompt`."""

    stop_reason: str = "end_turn"
    usage: TokenUsage | None = None


_decode = msgspec.json.Decoder(AcpMessage).decode


def parse(line: bytes) -> AcpMessage | None:
    """Return the message of a line; None if it is none: some agents print other things, too."""
    try:
        return _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def request(id: int | str, method: str, params: object) -> bytes:
    """Return the line of a request of ours."""
    return _line({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def steering_request(input: str, remote: str, text: str) -> bytes:
    """Return the line that adds a message to what the agent works on. It says so if it works on nothing."""
    prompt = [{"type": "text", "text": text}]
    keep = {"steering": {"idleBehavior": "promptRequired"}}
    return request(STEER + input, "_session/steering", {"sessionId": remote, "prompt": prompt, "_meta": keep})


def steered_input(message: AcpMessage) -> str:
    """Return the input whose steering a message answers; empty if it answers something else."""
    return message.id.removeprefix(STEER) if isinstance(message.id, str) and message.id.startswith(STEER) else ""


def notification(method: str, params: object) -> bytes:
    """Return the line of a notification."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def answer(json_id: str, result: object) -> bytes:
    """Return the line that answers a request of the agent."""
    return _line({"jsonrpc": "2.0", "id": msgspec.Raw(json_id.encode()), "result": result})


def refusal(json_id: str, method: str) -> bytes:
    """Return the line that answers a request for something that we do not offer."""
    error = {"code": UNKNOWN_METHOD, "message": f"{method} is not offered"}
    return _line({"jsonrpc": "2.0", "id": msgspec.Raw(json_id.encode()), "error": error})


def mcp_server(server: ToolServer) -> dict[str, object]:
    """Return an MCP server in the form that an agent gets."""
    headers = [{"name": "Authorization", "value": f"Bearer {server.token}"}]
    return {"type": "http", "name": server.name, "url": server.url, "headers": headers}


def _line(message: object) -> bytes:
    return msgspec.json.encode(message) + b"\n"
