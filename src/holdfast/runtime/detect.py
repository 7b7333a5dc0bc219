"""What this machine offers without any configuration: keys in the environment, model servers on loopback."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from holdfast.settings import ProviderSettings, Settings

PROBE_SECONDS = 0.7
ANSWER_LIMIT = 1_000_000
USUAL_MODELS = {"openai": "gpt-5.5", "anthropic": "claude-sonnet-5-5", "openrouter": "openrouter/auto"}
"""The model of a newcomer who has a key and chose none."""
NOT_FOR_CHAT = ("embed", "rerank", "whisper", "tts")


@dataclass(frozen=True, slots=True)
class Detected:
    """A provider that can be used as it is."""

    provider: str
    how: str
    """Why it is there, without the key."""
    models: tuple[str, ...]


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
    """The models of a server, or None when nobody answers in time."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            body = await _get(base_url.rstrip("/") + "/models")
        listed = msgspec.json.decode(body, type=_Models)
    except (OSError, TimeoutError, ValueError, msgspec.MsgspecError):
        return None
    names = [model.id for model in listed.data]
    return tuple(name for name in names if not any(word in name.lower() for word in NOT_FOR_CHAT))


async def _get(url: str) -> bytes:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    try:
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
