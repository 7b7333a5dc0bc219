"""An agent that speaks the Agent Client Protocol on its standard input and output. The prompt is its script.

A line of the prompt that begins with `!` is done, in order; any other is ignored:

    !say WORDS         say them, word by word
    !think WORDS       think them
    !call ID KIND TITLE    make a call and end it
    !open ID KIND TITLE    begin a call
    !end ID STATUS TEXT    end it
    !ask ID TITLE      ask for a permission, then say what was answered
    !plan A;B          state a plan
    !mode              say in which mode it is
    !wait FILE         until the file exists
    !pause SECONDS     do nothing
    !touch FILE        append a line to it
    !junk TEXT         print something that is no message
    !log TEXT          write to the standard error
    !long BYTES        print a very long line that is no message
    !method NAME       ask for something that clients may not offer, then say what was answered
    !die CODE          end at once
    !once FILE VERB …  do it unless the file exists, which is created
    !hang              do nothing until it is cancelled
    !fail CODE TEXT    answer the prompt with an error
    !twice             answer the prompt twice
    !remember          say every prompt that it remembers
    !tool NAME JSON    ask for a permission, call a tool of the MCP server that it was given, say what it returned
    !server FILE       write the MCP server that it was given to a file
    !answer ID         answer a request that it never got (the ID as JSON)
    !half TEXT         print something without an end of line
    !tick COUNT        make so many calls, each with the time at which it is said (for benchmarks)
    !form JSON         ask by a form (the whole of the parameters), then say what was answered
    !steered COUNT     wait until so many messages came while it worked, and say them

With `steers` it takes messages while it works (`steers-late`: it says so after its work has ended, `steers-never`: it
does not say so, `steers-not`: it refuses). With `many-options` it asks with two options of a kind. With `quoted` it
does also what is quoted (`> !say again`).
With `version=FILE` it has the version in the file, and with `login=FILE` it is logged in while the file says `yes`.
What it was asked is in `<session>.jsonl` of the directory `memory=DIR` or `$SCRIPTED_HOME`, so that another process
can resume it. Only the standard library.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLAGS = frozenset(sys.argv[1:])
STEERS = {"steers", "steers-late", "steers-never", "steers-not"}
HOME = Path(next((flag[7:] for flag in FLAGS if flag.startswith("memory=")), os.environ.get("SCRIPTED_HOME", ".")))
incoming: queue.Queue[dict[str, Any] | None] = queue.Queue()
backlog: list[dict[str, Any]] = []
modes_set: list[str] = []
servers: list[dict[str, Any]] = []
numbers = iter(range(100, 10**6))
steered: list[str] = []
late: list[dict[str, Any]] = []
at_work = threading.Event()
printing = threading.Lock()


def main() -> None:
    threading.Thread(target=read_input, daemon=True).start()
    if "crash-at-start" in FLAGS:
        sys.exit("it cannot start")
    while (message := backlog.pop(0) if backlog else incoming.get()) is not None:
        match message.get("method"):
            case "initialize":
                can: dict[str, Any] = {} if "no-resume" in FLAGS else {"resume": {}, "list": {}}
                if "no-list" in FLAGS:
                    del can["list"]
                if "fork" in FLAGS:
                    can["fork"] = {}
                capabilities = {"loadSession": "load" in FLAGS, "sessionCapabilities": can}
                capabilities["mcpCapabilities"] = {"http": "no-tools" not in FLAGS}
                info = {"name": "scripted", "version": content_of("version", "1.0")}
                meta = {"steering": {"supported": bool(STEERS & FLAGS)}}
                answer(
                    message,
                    {
                        "protocolVersion": 2 if "newer" in FLAGS else 1,
                        "agentInfo": info,
                        "agentCapabilities": capabilities,
                        "_meta": meta,
                    },
                )
            case "session/new":
                if "no-login" in FLAGS or content_of("login", "yes") != "yes":
                    answer_error(message, -32000, "Authentication required")
                    continue
                servers[:] = message["params"]["mcpServers"]
                id = f"remote-{os.getpid()}-{time.time_ns()}"
                memory(id).touch()
                answer(
                    message, {"sessionId": id, "modes": {"currentModeId": "auto", "availableModes": [{"id": "ask"}]}}
                )
            case "session/resume" | "session/load":
                resume(message)
            case "session/fork":
                fork(message)
            case "session/list":
                known = [] if "amnesia" in FLAGS else [path.stem for path in HOME.glob("*.jsonl")]
                if "pages" in FLAGS and "cursor" not in message["params"]:
                    answer(message, {"sessions": [{"sessionId": "other"}], "nextCursor": "2"})
                else:
                    answer(message, {"sessions": [{"sessionId": id} for id in [*known, "other"]]})
            case "session/set_mode":
                modes_set.append(message["params"]["modeId"])
                answer(message, {})
            case "session/prompt":
                work(message)
                at_work.clear()
                for one in late:
                    answer(one, {"outcome": "injected"})
                late.clear()
            case _:
                pass


def content_of(flag: str, otherwise: str) -> str:
    """What the file of a flag says, as in `version=FILE`."""
    file = next((one.partition("=")[2] for one in FLAGS if one.startswith(f"{flag}=")), "")
    return Path(file).read_text().strip() if file else otherwise


def resume(message: dict[str, Any]) -> None:
    id, servers[:] = message["params"]["sessionId"], message["params"]["mcpServers"]
    if not memory(id).exists() and "opens-new" in FLAGS:
        memory(id).touch()
    if not memory(id).exists() and "amnesia" not in FLAGS:
        return answer_error(message, -32602, f"there is no session {id}")
    late = "late-replay" in FLAGS
    if late:
        answer(message, {})
    if message["method"] == "session/load":
        for text in remembered(id):
            update(id, "user_message_chunk", content={"type": "text", "text": text})
            update(id, "agent_message_chunk", content={"type": "text", "text": "replayed"})
    return None if late else answer(message, {"sessionId": id} if "amnesia" in FLAGS else {})


def fork(message: dict[str, Any]) -> None:
    source = message["params"]["sessionId"]
    if not memory(source).exists():
        return answer_error(message, -32602, f"there is no session {source}")
    id = source if "no-copy" in FLAGS else f"remote-{os.getpid()}-{time.time_ns()}"
    memory(id).write_bytes(memory(source).read_bytes())
    return answer(message, {"sessionId": id})


def memory(id: str) -> Path:
    return HOME / f"{id}.jsonl"


def remembered(id: str) -> list[str]:
    return [json.loads(line) for line in memory(id).read_text().splitlines()] if memory(id).exists() else []


def work(message: dict[str, Any]) -> None:
    id, text = message["params"]["sessionId"], message["params"]["prompt"][0]["text"]
    before = remembered(id)
    with memory(id).open("a") as file:
        file.write(json.dumps(text) + "\n")
    script = text.splitlines()
    if "quoted" in FLAGS:
        script = [line.removeprefix("> ") for line in script]
    for line in (line[1:] for line in script if line.startswith("!")):
        verb, _, rest = line.partition(" ")
        if verb == "once" and rest.split()[1] == "fail":
            mark, _, more = rest.partition(" ")
            if Path(mark).exists():
                continue
            Path(mark).touch()
            verb, _, rest = more.partition(" ")
        if verb in ("fail", "twice"):
            code, _, words = rest.partition(" ")
            if verb == "fail":
                return answer_error(message, int(code), words)
            answer(message, {"stopReason": "end_turn"})
        elif verb == "remember":
            say(id, " | ".join(before))
        elif not act(id, verb, rest):
            return answer(message, {"stopReason": "cancelled"})
    usage = {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}
    return answer(message, {"stopReason": "end_turn", "usage": usage})


def steer(message: dict[str, Any]) -> None:
    """Take a message while it works."""
    text = message["params"]["prompt"][0]["text"]
    if "steers-not" in FLAGS:
        return answer_error(message, -32603, "not now")
    if not at_work.is_set():
        return answer(message, {"outcome": "promptRequired", "reason": "noRunningTurn"})
    with memory(message["params"]["sessionId"]).open("a") as file:
        file.write(json.dumps(text) + "\n")
    steered.append(text)
    if "steers-late" in FLAGS:
        late.append(message)
    elif "steers-never" not in FLAGS:
        answer(message, {"outcome": "injected"})
    return None


def act(id: str, verb: str, rest: str) -> bool:
    """Do one thing; False if it was cancelled meanwhile."""
    first, _, more = rest.partition(" ")
    match verb:
        case "say":
            for word in rest.split():
                say(id, f"{word} ")
        case "think":
            update(id, "agent_thought_chunk", content={"type": "text", "text": rest})
        case "call":
            act(id, "open", rest)
            act(id, "end", f"{first} completed result of {first}")
        case "open":
            kind, _, title = more.partition(" ")
            call = {"toolCallId": first, "title": title, "kind": kind, "status": "pending"}
            update(id, "tool_call", **call)
            update(id, "tool_call_update", toolCallId=first, rawInput={"command": title}, status="in_progress")
        case "end":
            status, _, words = more.partition(" ")
            content = [{"type": "content", "content": {"type": "text", "text": words}}]
            update(id, "tool_call_update", toolCallId=first, status=status, content=content)
        case "ask":
            return ask(id, first, more)
        case "mode":
            say(id, modes_set[-1])
        case "tool":
            if not ask(id, f"t{next(numbers)}", f"mcp__{servers[0]['name']}__{first}", kind="other"):
                return False
            say(id, f"[{first}: {call_tool(first, json.loads(more or '{}'))}] ")
        case "steered":
            while len(steered) < int(rest):
                if is_cancelled():
                    return False
                time.sleep(0.005)
            say(id, f"[steered: {', '.join(steered)}] ")
        case "server":
            Path(rest).write_text(json.dumps(servers))
        case "plan":
            entries = [{"content": text, "status": "pending", "priority": "low"} for text in rest.split(";")]
            update(id, "plan", entries=entries)
        case "wait":
            while not Path(rest).exists():
                if is_cancelled():
                    return False
                time.sleep(0.005)
        case "pause":
            time.sleep(float(rest))
        case "touch":
            with Path(rest).open("a") as file:
                file.write("x\n")
        case "log":
            print(rest, file=sys.stderr, flush=True)
        case "junk":
            print(rest, flush=True)
        case "long":
            print("x" * int(rest), flush=True)
        case "method":
            send({"jsonrpc": "2.0", "id": (number := next(numbers)), "method": rest, "params": {}})
            reply = reply_to(number)
            say(id, "refused" if "error" in reply else "served")
        case "answer":
            send(
                {"jsonrpc": "2.0", "id": json.loads(rest), "result": {"stopReason": "end_turn", "outcome": "injected"}}
            )
        case "half":
            print(rest, end="", flush=True)
        case "tick":
            for _ in range(int(rest)):
                time.sleep(0.03)
                id_ = f"t{next(numbers)}"
                now = str(time.perf_counter_ns())
                update(id, "tool_call", toolCallId=id_, kind="read", status="in_progress", rawInput={"command": now})
                update(id, "tool_call_update", toolCallId=id_, status="completed")
        case "form":
            params = {"sessionId": id, "mode": "form", **json.loads(rest)}
            send({"jsonrpc": "2.0", "id": (number := next(numbers)), "method": "elicitation/create", "params": params})
            reply = reply_to(number)
            say(id, (json.dumps(reply["result"], sort_keys=True) if "result" in reply else "refused") + " ")
            return reply.get("result") != {"action": "cancel"} or not is_cancelled()
        case "once":
            if not Path(first).exists():
                Path(first).touch()
                return act(id, *more.partition(" ")[::2])
        case "die":
            os._exit(int(rest))
        case "hang":
            while not is_cancelled():
                time.sleep(0.005)
            return False
        case _:
            say(id, f"unknown {verb}")
    return True


def call_tool(name: str, arguments: object) -> str:
    headers = {header["name"]: header["value"] for header in servers[0]["headers"]}
    headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    request = urllib.request.Request(servers[0]["url"], json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as reply:
            result = json.load(reply)["result"]
    except OSError as error:
        return f"not reached: {error}"
    return ("failed: " if result.get("isError") else "") + str(result["content"][0]["text"])


def ask(id: str, call: str, title: str, kind: str = "execute") -> bool:
    options = [("yes", "allow_once"), ("always", "allow_always"), ("no", "reject_once")]
    if "many-options" in FLAGS:
        options = [
            ("always for this directory", "allow_always"),
            ("always for everything", "allow_always"),
            ("no", "reject_once"),
            ("never", "reject_always"),
        ]
    params = {
        "sessionId": id,
        "toolCall": {"toolCallId": call, "title": title, "kind": kind, "rawInput": {"command": title}},
        "options": [{"optionId": option, "name": option, "kind": kind} for option, kind in options],
    }
    send({"jsonrpc": "2.0", "id": (number := next(numbers)), "method": "session/request_permission", "params": params})
    outcome = reply_to(number)["result"]["outcome"]
    if outcome["outcome"] == "cancelled":
        return not is_cancelled()
    chosen = outcome["optionId"]
    act(id, "end", f"{call} {'failed' if chosen in ('no', 'never') else 'completed'} {chosen}")
    return True


def reply_to(number: int) -> dict[str, Any]:
    while True:
        message = incoming.get()
        if message is None:
            os._exit(0)
        if "method" not in message and message.get("id") == number:
            return message
        backlog.append(message)


def is_cancelled() -> bool:
    while not incoming.empty():
        message = incoming.get()
        if message is None:
            os._exit(0)
        backlog.append(message)
    found = [message for message in backlog if message.get("method") == "session/cancel"]
    for message in found:
        backlog.remove(message)
    return bool(found)


def say(id: str, text: str) -> None:
    update(id, "agent_message_chunk", content={"type": "text", "text": text})


def update(id: str, what: str, **fields: Any) -> None:
    params = {"sessionId": id, "update": {"sessionUpdate": what, **fields}}
    send({"jsonrpc": "2.0", "method": "session/update", "params": params})


def answer(message: dict[str, Any], result: object) -> None:
    send({"jsonrpc": "2.0", "id": message["id"], "result": result})


def answer_error(message: dict[str, Any], code: int, text: str) -> None:
    send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text}})


def send(message: object) -> None:
    with printing:
        print(json.dumps(message), flush=True)


def read_input() -> None:
    for line in lines():
        try:
            message = json.loads(line)
            if message.get("method") == "_session/steering":
                steer(message)
            else:
                if message.get("method") == "session/prompt":
                    steered.clear()
                    at_work.set()
                incoming.put(message)
        except ValueError:
            print(f"not understood: {line!r}", file=sys.stderr, flush=True)
    incoming.put(None)


def lines() -> Iterator[str]:
    yield from sys.stdin


if __name__ == "__main__":
    main()
