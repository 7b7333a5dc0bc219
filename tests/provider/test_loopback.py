"""The loopback server by itself, as people try it and as the detection of local servers sees it."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from holdfast.domain.history import ToolResult, UserMessage
from holdfast.models.provider import Provider, ProviderModel
from tests.provider.asking import ask, said
from tests.provider.loopback import Loopback

ROOT = Path(__file__).parent.parent.parent


async def test_it_echoes_and_calls_tools_as_requested(model: ProviderModel) -> None:
    assert (await ask(model, UserMessage(1, "Hi there")))[1].text == "You said: Hi there"
    told = UserMessage(1, 'call read {"path": "a"}\ncall list')
    _, answer = await ask(model, told)
    assert [(call.tool, call.arguments) for call in answer.calls] == [("read", '{"path": "a"}'), ("list", "{}")]
    results = [ToolResult(1, "1.1.0", "read", "done", "A"), ToolResult(1, "1.1.1", "list", "done", "B")]
    assert (await ask(model, told, said(answer), *results))[1].text == "The tool said: B"


def test_it_lists_its_model_and_hangs_up(server: Loopback) -> None:
    with socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1]))) as connection:
        connection.sendall(b"GET /v1/models HTTP/1.0\r\nHost: x\r\n\r\n")
        answer = b""
        while more := connection.recv(4096):
            answer += more
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"id": "loopback"' in answer


async def test_it_runs_as_a_script() -> None:
    command = [sys.executable, "-u", "-m", "tests.provider.loopback", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[2]
            model = ProviderModel(Provider("local", "openai", url, "none"), "loopback")
            assert (await ask(model, UserMessage(1, "Hi")))[1].text == "You said: Hi"
            await model.close()
        finally:
            process.terminate()
