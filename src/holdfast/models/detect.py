"""What this machine offers without any configuration: keys in the environment, model servers on loopback."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from holdfast.profiles import Detected
from holdfast.settings import ProviderSettings, Settings

PROBE_SECONDS = 0.7
ANSWER_LIMIT = 1_000_000
USUAL_MODELS = {"openai": "gpt-5.5", "anthropic": "claude-sonnet-5-5", "openrouter": "openrouter/auto"}
"""The model of a provider with a key, when none was chosen."""
TCP_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"
FIRST_PERSON, NOBODY = 1000, 65534
"""User ids below are of the system; this one means no id."""
log = logging.getLogger(__name__)
NOT_FOR_CHAT = ("embed", "rerank", "whisper", "tts")


class _Listed(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Listed]


async def detect(settings: Settings) -> list[Detected]:
    """Every provider that is there now, those with a key first."""
    found: list[Detected] = []
    servers: list[tuple[str, ProviderSettings]] = []
    for name, provider in settings.providers.items():
        if provider.api_key_env:
            if provider.key() is not None:
                usual = USUAL_MODELS.get(name)
                found.append(Detected(name, f"{provider.api_key_env} is set", (usual,) if usual else ()))
        elif _on_loopback(provider.base_url):
            servers.append((name, provider))
    answers = await asyncio.gather(*(_ask(provider.base_url) for _, provider in servers))
    for (name, provider), models in zip(servers, answers, strict=True):
        if models is not None:
            found.append(Detected(name, f"a server answers at {provider.base_url}", models))
    return found


def _on_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


async def _ask(base_url: str) -> tuple[str, ...] | None:
    """The models of a server, or None when it does not answer in time or another user of the machine runs it."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            body = await _get_models(base_url)
        listed = msgspec.json.decode(body, type=_Models)
    except (OSError, TimeoutError, ValueError, msgspec.MsgspecError):
        return None
    names = [model.id for model in listed.data]
    return tuple(name for name in names if not any(word in name.lower() for word in NOT_FOR_CHAT))


def listening_users(port: int, tables: str) -> set[int]:
    """The user ids of the processes that listen on a port, from the text of /proc/net/tcp and /proc/net/tcp6."""
    found: set[int] = set()
    for line in tables.splitlines():
        fields = line.split()
        if len(fields) > 7 and fields[3] == LISTENING and fields[1].rpartition(":")[2] == f"{port:04X}":
            found.add(int(fields[7]))
    return found


def is_stranger(uid: int, *, own: int) -> bool:
    """Whether it is another person. Any user of a machine can listen on the usual port of a model server; one that did
    would read what is said to it, and decide what an agent wants to do.
    """
    return uid >= FIRST_PERSON and uid not in (own, NOBODY)


def _tcp_tables() -> str:
    return "".join(path.read_text() for path in TCP_TABLES if path.exists())


async def _get_models(base_url: str) -> bytes:
    parts = urlsplit(base_url.rstrip("/") + "/models")
    port = parts.port or 80
    reader, writer = await asyncio.open_connection(parts.hostname, port)
    try:  # the tables cost milliseconds, so they are read only when a server listens, and before anything is sent
        if strangers := {uid for uid in listening_users(port, _tcp_tables()) if is_stranger(uid, own=os.getuid())}:
            uids = ", ".join(map(str, sorted(strangers)))
            log.warning(
                "the server at %s belongs to another user (uid %s), so it is not used unless a profile names it",
                base_url,
                uids,
            )
            raise PermissionError(uids)
        writer.write(f"GET {parts.path} HTTP/1.0\r\nHost: {parts.netloc}\r\nAccept: application/json\r\n\r\n".encode())
        await writer.drain()
        head, _, body = (await reader.read(ANSWER_LIMIT)).partition(b"\r\n\r\n")
        while more := await reader.read(ANSWER_LIMIT):
            body += more
            if len(body) > ANSWER_LIMIT:
                raise ValueError("too long")
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise ValueError("not the server that we look for")
        return body
    finally:
        writer.close()
