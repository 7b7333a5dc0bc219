"""What the port costs before, during and after a request."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from contextlib import aclosing

import pytest

from holdfast.models.model import Model
from holdfast.models.provider import Provider, ProviderModel
from tests.provider.asking import KEY, ask, asking, provider
from tests.provider.loopback import Hang, Loopback, Reply, Text, Wire


def test_importing_the_port_does_not_import_the_library() -> None:
    code = (
        "import sys, holdfast.models.provider as p\n"
        "p.ProviderModel(p.Provider('x', 'openai', None, 'k'), 'm').name\n"
        "heavy = {'pydantic_ai', 'openai', 'anthropic', 'httpx2', 'httpx', 'pydantic'}\n"
        "assert not heavy & {name.partition('.')[0] for name in sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_only_modules_of_the_wire_are_imported() -> None:
    """The SDK of the other wire is a second of work and 40 MB."""
    for wire, other in (("openai", "anthropic"), ("anthropic", "openai")):
        code = (
            "import sys, holdfast.models.provider as p\n"
            f"p.warm_up([{wire!r}])\n"
            f"assert {wire!r} in sys.modules and {other!r} not in sys.modules\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


def test_the_key_never_shows() -> None:
    assert KEY not in repr(Provider("local", "openai", None, KEY))
    assert KEY not in repr(ProviderModel(Provider("local", "openai", None, KEY), "m"))


def test_it_is_a_model(server: Loopback) -> None:
    model: Model = ProviderModel(provider(server, "openai"), "loopback")
    assert model.name == "local:loopback"


def test_without_an_address_it_is_the_provider_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://evil.example/v1")
    assert Provider("openai", "openai", None, KEY).url == "https://api.openai.com/v1"
    assert Provider("anthropic", "anthropic", None, KEY).host == "api.anthropic.com"


async def test_the_environment_changes_nothing(server: Loopback, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "from-the-environment")
    for key in (KEY, ""):
        model = ProviderModel(provider(server, wire, key=key), "loopback")
        await ask(model)
        headers = server.requests[-1].headers
        assert (key or "none") in (headers.get("authorization", "") + headers.get("x-api-key", ""))
        assert "from-the-environment" not in str(headers)
        await model.close()


async def test_one_connection_serves_many_requests(model: ProviderModel, server: Loopback) -> None:
    for _ in range(3):
        await ask(model)
    assert server.connections == 1
    await model.close()
    await asyncio.to_thread(server.wait, lambda seen: seen.connections == 0)
    await ask(model)  # opens anew


async def test_the_first_requests_at_once_open_one_client(model: ProviderModel, server: Loopback) -> None:
    await asyncio.gather(*(ask(model) for _ in range(5)))
    await model.close()
    await asyncio.to_thread(server.wait, lambda seen: seen.connections == 0)


# --- leaving in the middle ----------------------------------------------------------------------


async def test_cancelling_drops_the_connection(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(Text(["Hel", "lo"]), Hang()))
    heard = asyncio.Event()

    async def listen() -> None:
        async with aclosing(model.stream(asking())) as pieces:
            async for _ in pieces:
                heard.set()

    task = asyncio.create_task(listen())
    await heard.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    await nothing_is_left(server)
    assert (await ask(model))[1].text == "You said: Hello"


async def test_cancelling_before_the_first_word(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply(Hang()))
    task = asyncio.create_task(ask(model))
    await asyncio.to_thread(server.wait, lambda seen: len(seen.requests) == 1)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    await nothing_is_left(server)


async def test_walking_away_drops_the_connection(model: ProviderModel, server: Loopback) -> None:
    server.script(Reply("Hello", Hang()))
    async with aclosing(model.stream(asking())) as pieces:
        await anext(pieces)
    await nothing_is_left(server)


async def test_leaving_and_ending_at_once_is_quiet(server: Loopback) -> None:
    """The gateway goes down in the middle of its first answers: no warning, no trace on its standard error."""
    code = f"""
import asyncio
from holdfast.domain.history import (UserMessage)
from holdfast.models.model import ModelRequest
from holdfast.models.provider import Provider, ProviderModel, warm_up

async def listen(model, heard):
    async for _ in model.stream(ModelRequest(1, "", [UserMessage(1, "Hello")], [])):
        heard.set()

async def leave(wire, url):
    model, heard = ProviderModel(Provider("x", wire, url, "none"), "loopback"), asyncio.Event()
    task = asyncio.create_task(listen(model, heard))
    await heard.wait()
    task.cancel()
    await asyncio.wait({{task}})
    await model.close()

async def main():
    wires = leave("openai", {server.openai_url!r}), leave("anthropic", {server.anthropic_url!r})
    await asyncio.gather(asyncio.to_thread(warm_up), *wires)

asyncio.run(main())
"""
    server.script(Reply("Hello", Hang()), Reply("Hello", Hang()))
    command = [sys.executable, "-W", "error::ResourceWarning", "-W", "error::RuntimeWarning", "-c", code]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def nothing_is_left(server: Loopback) -> None:
    await asyncio.to_thread(server.wait, lambda seen: seen.left == 1 and seen.connections == 0)
    gc.collect()  # an unclosed socket would warn here, and warnings are errors
    for _ in range(100):
        await asyncio.sleep(0)  # the generators of the library close one after the other
    assert asyncio.all_tasks() == {asyncio.current_task()}
