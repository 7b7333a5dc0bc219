"""An MCP server over its pipes that does what the first argument says; standard library only, so it starts quickly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

TOOLS = [
    {"name": "echo", "description": "Say it again.", "inputSchema": {"type": "object"}},
    {"name": "a.b", "inputSchema": {"type": "object"}},
    {"name": "a/b", "inputSchema": {"type": "object"}},
]


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def result_of(method: str, params: dict[str, Any], way: str) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "odd", "version": "1"},
            }
        case "tools/list":
            wide = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(9_000)}}
            return {"tools": [{"name": "wide", "inputSchema": wide}] if way == "wide" else TOOLS}
        case _:
            text = "y" * (40 << 20) if way == "huge" else f"{params['name']} {params.get('arguments')}"
            return {"content": [{"type": "text", "text": text}]}


def main() -> None:
    way = sys.argv[1]
    print(f"pid {os.getpid()}", file=sys.stderr, flush=True)
    if way == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if way == "parent":
        tidy = (
            """trap 'sleep 0.2; echo tidy > "$MARK"; exit' TERM; echo ready > "$MARK"; while :; do sleep 0.01; done"""
        )
        subprocess.Popen(["sh", "-c", tidy], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if way == "leak":
        print("the token is " + os.environ["TOKEN"], file=sys.stderr, flush=True)
        sys.exit(1)
    if way == "noisy":
        print("Welcome to the odd server!\n{}\n[1]", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        method, number = request["method"], request.get("id")
        if method == "server/discover":
            if way == "strict":
                sys.exit("expected initialize")
            send({"id": number, "error": {"code": -32601, "message": "Method not found"}})
        elif way == "silent" or (way == "hang" and method == "tools/call"):
            continue
        elif way == "garbage" and method == "tools/call":
            send({"id": number, "result": {"content": "this is not a list"}})
        elif way == "flood" and method == "tools/call":
            for count in range(3_000):
                send({"method": "notifications/message", "params": {"level": "info", "data": f"{count}" * 50}})
                print("x" * 200, file=sys.stderr)
            send({"id": number, "result": result_of(method, request["params"], way)})
        elif way == "refuse" and method == "tools/call":
            send({"id": number, "error": {"code": -32000, "message": "not today"}})
        elif way == "changing" and method == "tools/call":
            TOOLS.append({"name": "fresh", "inputSchema": {"type": "object"}})
            send({"method": "notifications/tools/list_changed"})
            send({"id": number, "result": result_of(method, request["params"], way)})
        elif number is not None:
            send({"id": number, "result": result_of(method, request.get("params", {}), way)})
    while way in ("stubborn", "deaf"):
        time.sleep(1)


main()
