"""MCP over pipes: a server of the official SDK, and one that does everything wrong."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.runtime.mcp.servers import McpServer
from holdfast.runtime.tools.tool import OUTPUT_LIMIT, ToolOutput
from tests.e2e.gateway import until
from tests.eventually import PATIENCE

from .calling import PLACE, Children, Start, eventually, is_alive, noticed, offered, run

HERE = Path(__file__).parent
REAL = [sys.executable, str(HERE / "mcp_server.py")]


def odd(way: str, env: dict[str, str] | None = None) -> McpServer:
    command = [sys.executable, "-S", str(HERE / "odd_server.py"), way]
    return McpServer(name=way, command=command, env=env or {}, headers={"Authorization": "Bearer abcdefgh"})


async def test_the_tools_of_a_server_are_tools_of_the_agent(start: Start, tmp_path: Path) -> None:
    servers = start(McpServer(name="real", command=REAL, env={"NAMED": "yes"}))
    tools = await offered(servers, "real")
    assert servers.problems == {}
    assert tools["real__add"].spec.description == "Add two numbers."
    assert tools["real__add"].spec.parameters["required"] == ["a", "b"]
    effects = {name.removeprefix("real__"): tool.effect for name, tool in tools.items()}
    assert (effects["add"], effects["put"], effects["send"]) == ("pure", "idempotent", "unsafe")
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in tools)
    [long] = [tool for name, tool in tools.items() if name.startswith("real__get_the_thing_with")]
    assert await run(long) == ToolOutput("odd")
    assert tools["real__add"].subject(PLACE, '{"a": 1}') == ""
    assert {tool.default_policy for tool in tools.values()} == {"ask"}, "a server does not allow its own tools"

    assert await run(tools["real__add"], a=1, b=2) == ToolOutput("3")
    assert await run(tools["real__put"], path=str(tmp_path / "x"), text="y") == ToolOutput("put")
    weather = await run(tools["real__weather"], town="Ulm")
    assert json.loads(weather.output) == {"town": "Ulm", "degrees": 3.5}
    assert await run(tools["real__picture"]) == ToolOutput('Look:\n[image, image/png, 12 KiB]\n{"of": "Žižkov"}')
    large = await run(tools["real__big"], size=1_000_000)
    assert large.outcome == "done"
    assert len(large.output) < OUTPUT_LIMIT + 100
    assert "of 1000000 characters left out" in large.output

    failed = await run(tools["real__fail"])
    assert (failed.outcome, "the disk is on fire" in failed.output) == ("failed", True)
    wrong = await run(tools["real__add"], a="many")
    assert (wrong.outcome, "valid integer" in wrong.output) == ("failed", True)
    assert (await tools["real__add"].call(PLACE, "nonsense")).output.startswith("The arguments do not fit: ")
    assert (await tools["real__add"].call(PLACE, '{"a": ' + "[" * 100_000)).outcome == "failed"
    assert (await tools["real__add"].call(PLACE, "[]")).output.startswith("The arguments do not fit: ")

    seen = set((await run(tools["real__environment"])).output.splitlines())
    assert {"PATH", "NAMED"} <= seen
    assert not {name for name in seen if name.startswith("PYTEST")}, "what was not named is not given"

    trace = tmp_path / "trace"
    slow = asyncio.create_task(run(tools["real__slow"], path=str(trace), seconds=60))
    await eventually(lambda: trace.exists() and trace.read_text() == "began")
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(slow, PATIENCE)
    await eventually(lambda: trace.read_text() == "cancelled")
    calls = [run(tools["real__slow"], path=str(tmp_path / str(n)), seconds=0.2) for n in range(10)]
    assert await asyncio.gather(*calls) == [ToolOutput("slept")] * 10, "the connection is as good as before"


async def test_a_server_that_was_killed_is_started_again(start: Start, tmp_path: Path) -> None:
    servers = start(McpServer(name="real", command=REAL))
    tools = await offered(servers, "real")
    first = int((await run(tools["real__pid"])).output)
    os.kill(first, signal.SIGKILL)
    await noticed(first)
    second = int((await run(tools["real__pid"])).output)
    assert second != first

    trace = tmp_path / "trace"
    lost = await run(tools["real__die"], path=str(trace))
    assert lost.outcome == "unknown"
    assert lost.output == (
        "No answer from the MCP server 'real': it ended with code 3; it said: my last words. "
        "It may or may not have taken effect."
    )
    assert trace.read_text() == "died"


async def test_one_connection_is_shared(start: Start, children: Children) -> None:
    servers = start(odd("plain"))
    several = await asyncio.gather(*(offered(servers, "plain") for _ in range(5)))
    assert len(children()) == 1
    calls = [run(tools["plain__echo"], n=n) for tools in several for n in range(20)]
    assert {result.outcome for result in await asyncio.gather(*calls)} == {"done"}
    assert len(children()) == 1


# --- everything that can be wrong with a server -----------------------------------------------------


@pytest.mark.parametrize("way", ["noisy", "strict", "plain"])
async def test_old_noisy_and_strict_servers_work(start: Start, way: str) -> None:
    tools = await offered(start(odd(way)), way)
    assert await run(tools[f"{way}__echo"], a=1) == ToolOutput("echo {'a': 1}")


async def test_names_that_would_be_the_same_are_made_distinct(start: Start) -> None:
    tools = await offered(start(odd("plain")), "plain")
    twins = [name for name in tools if name.startswith("plain__a_b_")]
    assert len(twins) == 2
    assert {(await run(tools[name], x=1)).output for name in twins} == {"a.b {'x': 1}", "a/b {'x': 1}"}


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        (McpServer(name="x", command=["no-such-command"]), "it ended with code 127; it said: no-such-command: No such"),
        (McpServer(name="x", command=[sys.executable, "-c", "exit(7)"]), "it ended with code 7"),
        (McpServer(name="x", command=["sh", "-c", "kill -9 $$"]), "it was killed by signal 9"),
        (McpServer(name="x"), "config.toml names neither a command nor a url for it"),
        (McpServer(name="x", url="http://127.0.0.1:9/mcp"), "it cannot be reached"),
        (McpServer(name="x", url="nonsense"), "protocol"),
    ],
)
async def test_a_server_that_is_down_says_why_and_stops_nothing(start: Start, definition: McpServer, why: str) -> None:
    servers = start(definition, odd("plain"))
    tools = await offered(servers, "x", "plain")
    assert "plain__echo" in tools
    stand_in = tools["x__unavailable"]
    assert stand_in.effect == "pure"
    assert stand_in.spec.description.startswith("The MCP server 'x' is not available: ")
    assert why in stand_in.spec.description
    assert why in servers.problems["x"]
    again = await run(stand_in)
    assert again.outcome == "failed"
    assert why in again.output


async def test_a_server_that_nobody_defined_is_down(start: Start) -> None:
    [stand_in] = await start().tools(["ghost"])
    assert stand_in.name == "ghost__unavailable"


async def test_a_server_that_comes_back_is_used_again(start: Start, tmp_path: Path, children: Children) -> None:
    script = tmp_path / "server.py"
    command = [sys.executable, "-S", str(script), "plain"]
    servers = start(McpServer(name="late", command=command))
    [stand_in] = await servers.tools(["late"])
    script.write_text((HERE / "odd_server.py").read_text())
    assert (await run(stand_in)).outcome == "done"
    assert servers.problems == {}
    tools = await offered(servers, "late")
    assert "late__echo" in tools
    script.unlink()
    [process] = children()
    os.kill(process, signal.SIGKILL)
    await noticed(process)
    result = await run(tools["late__echo"])
    assert result.outcome == "failed"
    assert "The MCP server 'late' is not available: it ended with code 2" in result.output
    assert result.output.endswith("The call was not sent.")
    assert "late__echo" in await offered(servers, "late"), "what it offers is still known"


async def test_secrets_are_not_shown(start: Start) -> None:
    definition = odd("leak", env={"TOKEN": "s3cret-token"})
    assert "s3cret" not in repr(definition)
    assert "abcdefgh" not in repr(definition)
    [stand_in] = await start(definition).tools(["leak"])
    assert "the token is [hidden: the value of TOKEN]" in stand_in.spec.description
    assert "s3cret" not in stand_in.spec.description
    assert definition.without_secrets("Bearer abcdefgh") == "Bearer [hidden: the value of Authorization]"


async def test_what_a_server_answers_is_without_the_secrets_that_it_was_given(start: Start, tmp_path: Path) -> None:
    tools = await offered(start(odd("plain", env={"TOKEN": "s3cret/token", "DATA": str(tmp_path)})), "plain")
    result = await run(tools["plain__echo"], said=f"s3cret/token s3cret%2Ftoken in {tmp_path}")
    hidden = "[hidden: the value of TOKEN]"
    assert result == ToolOutput(f"echo {{'said': '{hidden} {hidden} in {tmp_path}'}}"), "a path is no secret"


async def test_answers_that_are_out_of_order(start: Start) -> None:
    tools = await offered(start(odd("garbage"), odd("refuse"), odd("huge")), "garbage", "refuse", "huge")
    tools |= await offered(start(odd("hang"), call_seconds=1), "hang")
    garbage, refuse, huge, hang = [await run(tools[f"{way}__echo"]) for way in ("garbage", "refuse", "huge", "hang")]
    assert garbage.outcome == "unknown"
    assert "its answer is invalid" in garbage.output
    assert refuse == ToolOutput("The MCP server 'refuse' answered: not today", outcome="failed")
    assert huge.outcome == "unknown"
    assert "it sent more than 16 MiB in one message" in huge.output
    assert hang.outcome == "unknown"
    assert "it did not answer within 1 s, and the call was cancelled" in hang.output
    assert (await run(tools["refuse__echo"])).outcome == "failed"


async def test_a_server_that_talks_too_much_is_listened_to_and_not_kept(start: Start) -> None:
    """Thousands of remarks before an answer, and a description that no request could carry."""
    tools = await offered(start(odd("flood"), odd("wide")), "flood", "wide")
    assert (await run(tools["flood__echo"])).output == "echo {}"
    spec = tools["wide__wide"].spec
    assert spec.parameters == {"type": "object", "properties": {}}
    assert spec.description.endswith("is longer than 50000 characters and left out.)")


async def test_a_server_can_say_that_it_offers_something_else(start: Start) -> None:
    servers = start(odd("changing"))
    tools = await offered(servers, "changing")
    assert "changing__fresh" not in tools
    await run(tools["changing__echo"])
    assert "changing__fresh" in await offered(servers, "changing")


async def test_definitions_can_change_while_it_runs(start: Start, children: Children) -> None:
    servers = start(odd("plain"), odd("noisy"))
    await servers.tools(["plain", "noisy"])
    before = children()
    servers.define([odd("plain"), odd("strict")])
    await servers.tools(["plain", "strict"])
    await eventually(lambda: len(children() & before) == 1)
    assert len(children()) == 2
    assert [tool.name for tool in await servers.tools(["noisy"])] == ["noisy__unavailable"]


async def test_an_opening_that_hangs_can_be_given_up(start: Start, children: Children) -> None:
    servers = start(odd("silent"))
    waiting = asyncio.create_task(servers.tools(["silent"]))
    await eventually(lambda: bool(children()))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(PATIENCE):  # an opening may take longer
        await servers.close()


async def test_what_a_server_leaves_behind_is_asked_to_end_and_may_tidy_up(start: Start, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    servers = start(odd("parent", {"MARK": str(mark), "PATH": os.environ["PATH"]}))
    await servers.tools(["parent"])
    await eventually(lambda: mark.exists() and mark.read_text() == "ready\n")
    await servers.close()
    await eventually(lambda: mark.read_text() == "tidy\n")


async def test_a_server_that_does_not_want_to_end_is_killed(start: Start, children: Children) -> None:
    servers = start(odd("stubborn"))
    await servers.tools(["stubborn"])
    async with asyncio.timeout(PATIENCE):
        await servers.close()
    assert not children()


GATEWAY = """
import asyncio, sys
from holdfast.runtime.mcp.servers import McpServer, McpServers
async def main():
    servers = McpServers([McpServer(name="deaf", command=sys.argv[1:])])
    tools = await servers.tools(["deaf"])
    print(len(tools), flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


def test_a_server_does_not_outlive_a_gateway_that_is_killed() -> None:
    command = [sys.executable, "-S", str(HERE / "odd_server.py"), "deaf"]
    with subprocess.Popen([sys.executable, "-c", GATEWAY, *command], stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdout is not None
        assert gateway.stdout.readline() == "3\n"
        [server] = Path(f"/proc/{gateway.pid}/task/{gateway.pid}/children").read_text().split()
        gateway.kill()
    until(lambda: not is_alive(int(server)), "it has ended")


def test_importing_the_client_does_not_import_the_sdk() -> None:
    code = "import sys; import holdfast.runtime.mcp.servers; sys.exit('mcp' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
