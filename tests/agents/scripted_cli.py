"""A command-line agent: one process a turn, which says on its standard output what it does. The prompt is its script.

    scripted_cli.py FORMAT [FLAGS] ARGUMENTS      FORMAT is claude, codex or text

The arguments are those of the real agent; for `text` they are [--session ID | --resume ID] [-p PROMPT]. Without -p the
prompt is the standard input. A line of the prompt that begins with `!` is done, in order:

    !say WORDS   !think WORDS   !call ID TITLE   !open ID TITLE   !end ID STATUS TEXT   !write FILE TEXT   !plan A;B
    !wait FILE (until it exists)   !pause SECONDS   !touch FILE (append a line)   !junk TEXT   !long BYTES   !half TEXT
    !die CODE   !once FILE VERB …   !hang   !fail TEXT   !children FILE (leave a child that writes its pid)   !linger
    !remember (say every prompt that it remembers)   !arguments (say its own)   !size (of the prompt)
    !tool NAME JSON (call a tool of the MCP server that it was given, say what it returned; claude only)

Flags: no-login (until there is a file `logged-in`), crash-at-start, killed-at-start, amnesia (a resume opens another
session), forgetful (a resume fails), silent (plain text without a word).
What it was asked is in `<session>.jsonl` of `memory=DIR` or `$SCRIPTED_HOME`. Only the standard library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
import uuid
from pathlib import Path
from typing import Any

FORMAT, *ARGUMENTS = sys.argv[1:]
FLAGS = {*ARGUMENTS} & {"no-login", "crash-at-start", "killed-at-start", "amnesia", "forgetful", "silent"}
HOME = Path(next((word[7:] for word in ARGUMENTS if word.startswith("memory=")), os.environ.get("SCRIPTED_HOME", ".")))
numbers = iter(range(1, 10**6))
calls: dict[str, str] = {}
said: list[str] = []


def main() -> int:
    if "crash-at-start" in FLAGS:
        sys.exit("it cannot start")
    if "killed-at-start" in FLAGS:
        return 137  # as a shell says it
    resumed = ARGUMENTS[-2] if {"resume", "fork"} & {*ARGUMENTS} else after("--resume")
    text = after("-p") if FORMAT == "text" and after("-p") is not None else sys.stdin.read()
    assert text is not None
    if resumed and ("forgetful" in FLAGS or not (HOME / f"{resumed}.jsonl").exists()):
        print(f"No conversation found with session ID: {resumed}", file=sys.stderr)
        return 1
    id = resumed or after("--session-id") or after("--session") or str(uuid.uuid4())
    if resumed and "amnesia" in FLAGS:
        id = str(uuid.uuid4())
    elif resumed and {"fork", "--fork-session"} & {*ARGUMENTS}:
        id = after("--session-id") or str(uuid.uuid4())
        (HOME / f"{id}.jsonl").write_bytes((HOME / f"{resumed}.jsonl").read_bytes())
    name(id)
    if "no-login" in FLAGS and not (HOME / "logged-in").exists():
        return fail("Not logged in · Please run /login")
    memory = HOME / f"{id}.jsonl"
    before = [json.loads(line) for line in memory.read_text().splitlines()] if memory.exists() else []
    with memory.open("a") as file:
        file.write(json.dumps(text) + "\n")
    for line in (line[1:] for line in text.splitlines() if line.startswith("!")):
        verb, _, rest = line.partition(" ")
        if verb == "fail":
            return fail(rest)
        if verb == "remember":
            say(" | ".join(before))
        elif verb == "size":
            say(str(len(text)))
        else:
            act(verb, rest)
    done()
    return 0


def call_tool(name: str, arguments: object) -> str:
    (server,) = json.loads(after("--mcp-config") or "")["mcpServers"].values()
    headers = {key: os.path.expandvars(value) for key, value in server["headers"].items()}
    headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    with urllib.request.urlopen(urllib.request.Request(server["url"], json.dumps(body).encode(), headers)) as reply:
        return str(json.load(reply)["result"]["content"][0]["text"])


def after(flag: str) -> str | None:
    return ARGUMENTS[ARGUMENTS.index(flag) + 1] if flag in ARGUMENTS else None


def act(verb: str, rest: str) -> None:
    first, _, more = rest.partition(" ")
    match verb:
        case "say":
            say(rest)
        case "think":
            think(rest)
        case "call":
            begin(first, more)
            end(first, "completed", f"result of {first}")
        case "open":
            begin(first, more)
        case "end":
            status, _, words = more.partition(" ")
            end(first, status, words)
        case "write":
            write(first, more)
        case "plan":
            plan(rest.split(";"))
        case "wait":
            while not Path(rest).exists():
                time.sleep(0.005)
        case "pause":
            time.sleep(float(rest))
        case "touch":
            with Path(rest).open("a") as file:
                file.write("x\n")
        case "junk":
            print(rest, flush=True)
        case "long":
            print("x" * int(rest), flush=True)
        case "half":
            print(rest, end="", flush=True)
        case "tool":
            say(f"[{first}: {call_tool(first, json.loads(more or '{}'))}]")
        case "arguments":
            say(" ".join(ARGUMENTS))
        case "children":
            child = subprocess.Popen(["sleep", "600"])
            Path(rest).write_text(str(child.pid))
        case "linger":
            done()
            time.sleep(600)
        case "hang":
            time.sleep(600)
        case "die":
            os._exit(int(rest))
        case "once":
            if not Path(first).exists():
                Path(first).touch()
                act(*more.partition(" ")[::2])
        case _:
            say(f"unknown {verb}")


# --- the formats ----------------------------------------------------------------------------------


def name(id: str) -> None:
    if FORMAT == "claude":
        send({"type": "system", "subtype": "init", "session_id": id, "claude_code_version": "1.0"})
    elif FORMAT == "codex":
        send({"type": "thread.started", "thread_id": id})
        send({"type": "turn.started"})


def say(text: str) -> None:
    said.append(text)
    if FORMAT == "text":
        print(text, flush=True)
    elif FORMAT == "codex":
        say_item("agent_message", text=text)
    else:
        words = text.split(" ")
        for at, word in enumerate(words):
            delta = {"type": "text_delta", "text": word + (" " if at < len(words) - 1 else "")}
            send({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0, "delta": delta}})
        block({"type": "text", "text": text})


def think(text: str) -> None:
    if FORMAT == "codex":
        say_item("reasoning", text=text)
    elif FORMAT == "claude":
        block({"type": "thinking", "thinking": text})


def begin(call: str, title: str) -> None:
    calls[call] = title
    if FORMAT == "codex":
        changed = {"id": call, "type": "command_execution", "command": title, "status": "in_progress"}
        send({"type": "item.started", "item": changed})
    elif FORMAT == "claude":
        block({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": title}})


def end(call: str, status: str, words: str) -> None:
    if FORMAT == "codex":
        ended = {"id": call, "type": "command_execution", "command": calls[call], "aggregated_output": words}
        send({"type": "item.completed", "item": ended | {"status": status, "exit_code": int(status != "completed")}})
    elif FORMAT == "claude":
        result(call, words, is_error=status != "completed")


def write(file: str, words: str) -> None:
    Path(file).write_text(words)
    id = f"w{next(numbers)}"
    if FORMAT == "codex":
        changes = [{"path": file, "kind": "add"}]
        send(
            {
                "type": "item.completed",
                "item": {"id": id, "type": "file_change", "changes": changes, "status": "completed"},
            }
        )
    elif FORMAT == "claude":
        block({"type": "tool_use", "id": id, "name": "Write", "input": {"file_path": file, "content": words}})
        result(id, "created", is_error=False)


def plan(steps: list[str]) -> None:
    if FORMAT == "codex":
        say_item("todo_list", items=[{"text": step, "completed": False} for step in steps])


def done() -> None:
    if FORMAT == "text" and not said and "silent" not in FLAGS:
        print("nothing to do", flush=True)
    if FORMAT == "codex":
        usage = {"input_tokens": 11, "cached_input_tokens": 0, "output_tokens": 7}
        send({"type": "turn.completed", "usage": usage})
    elif FORMAT == "claude":
        usage = {"input_tokens": 11, "output_tokens": 7}
        send({"type": "result", "subtype": "success", "is_error": False, "result": "", "usage": usage})


def fail(text: str) -> int:
    if FORMAT == "codex":
        send({"type": "turn.failed", "error": {"message": text}})
    elif FORMAT == "claude":
        send({"type": "result", "subtype": "success", "is_error": True, "result": text})
    else:
        print(text, file=sys.stderr)
    return 1


def block(content: dict[str, Any]) -> None:
    send({"type": "assistant", "parent_tool_use_id": None, "message": {"id": "m", "content": [content]}})


def result(call: str, words: str, *, is_error: bool) -> None:
    content = [{"type": "tool_result", "tool_use_id": call, "content": words, "is_error": is_error}]
    send({"type": "user", "parent_tool_use_id": None, "message": {"role": "user", "content": content}})


def say_item(kind: str, **fields: Any) -> None:
    send({"type": "item.completed", "item": {"id": f"item_{next(numbers)}", "type": kind, **fields}})


def send(message: object) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main())
