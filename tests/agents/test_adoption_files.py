"""The files of agents' own sessions: what is read of them, and what is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.domain.events import AnyEvent
from holdfast.domain.events.session import (
    InputReceived,
    ModelResponded,
    ToolCallFinished,
    TurnFinished,
)
from holdfast.domain.session import Session
from holdfast.domain.session_fold import after
from holdfast.processes.identity import process
from holdfast.runtime.external.adoption.files import find_files, read_lines
from holdfast.runtime.external.adoption.history import ImportedHistory, imported_events
from holdfast.runtime.external.adoption.in_use import used_by
from holdfast.runtime.external.adoption.reader import read_history, title_of
from holdfast.runtime.external.command.items import CallEnded
from holdfast.runtime.external.process import LINE_LIMIT
from tests.agents.own_sessions import (
    ID,
    OTHER,
    Line,
    agent,
    answered,
    asked,
    claude_file,
    codex_file,
    event,
    item,
    ms,
    person,
    result,
    said,
    text_of,
    use,
)

NOW = ms(50_000)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of both agents."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "of-agent"))
    return tmp_path / "of-agent"


def read(agent: str, id: str = ID) -> ImportedHistory:
    files = find_files(agent)
    return read_history(agent, next(file for file in files if file.id == id), files)


def events_of(history: ImportedHistory, agent: str = "claude") -> list[tuple[int, AnyEvent]]:
    mask = lambda text: text.replace("sk-secret", "[hidden]")  # noqa: E731
    return imported_events(history, agent=agent, profile="p", mask=mask, now=NOW)


def shown(history: ImportedHistory) -> list[str]:
    """The conversation in short."""
    found = []
    for turn in history.turns:
        found.append(f"you: {turn.text}")
        for step in turn.steps:
            found += [f"thinks: {step.thinking}"] * bool(step.thinking) + [f"says: {step.text}"] * bool(step.text)
            found += [f"{call.tool}: {'?' if call.end is None else call.end.output}" for call in step.calls.values()]
    return found


# --- Claude Code ----------------------------------------------------------------------------------


def test_a_session_of_claude_becomes_turns_with_their_times_and_calls(home: Path, tmp_path: Path) -> None:
    claude_file(
        home,
        tmp_path,
        person("Fix it", 1),
        agent(2, {"type": "thinking", "thinking": "hm"}),
        agent(3, said("I look.")),
        agent(4, use("t1", "Read", file_path="/a"), uuid="a4"),
        agent(5, use("t2", "Write", file_path="/b", content="x")),
        result("t2", "created, key sk-secret", 7),
        result("t1", "no such file", 6, is_error=True),
        agent(8, said("Done.")),
        person("Thanks", 20),
    )
    history = read("claude")
    assert shown(history) == [
        *("you: Fix it", "thinks: hm", "says: I look.", "read: no such file", "write: created, key sk-secret"),
        *("says: Done.", "you: Thanks"),
    ]
    timed = events_of(history)
    times = {type(one).__name__: when for when, one in reversed(timed)}
    assert times["InputReceived"] == ms(1) and timed[-1][0] == ms(20)
    assert [when for when, _ in timed] == sorted(when for when, _ in timed)
    ends = [one for _, one in timed if isinstance(one, ToolCallFinished)]
    assert [(end.tool, end.outcome, end.files) for end in ends] == [("read", "failed", []), ("write", "done", ["/b"])]
    assert ends[1].output == "created, key [hidden]" and ends[1].duration_ms == 2000
    turns = [one for _, one in timed if isinstance(one, TurnFinished)]
    assert [(one.outcome, one.reason) for one in turns] == [
        ("done", "imported"),
        ("stopped", "imported without an answer"),
    ]
    folded = after(Session("s"), [one for _, one in timed], at=NOW)
    assert folded.activity == "idle" and folded.turns == 2
    (message,) = {str(one.by) for _, one in timed if isinstance(one, InputReceived)}
    assert message == "the terminal of claude"


def test_what_claude_writes_in_the_name_of_the_person_is_no_message(home: Path, tmp_path: Path) -> None:
    claude_file(
        home,
        tmp_path,
        person("a caveat", 1, isMeta=True),
        person("<command-name>/model</command-name>\n<command-args>opus</command-args>", 2),
        person("<local-command-stdout>set</local-command-stdout>", 3),
        person("<bash-input>ls</bash-input>", 4),
        person("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>", 5),
        person("a summary of everything", 6, isCompactSummary=True),
        person([{"type": "image", "source": {}}, said("what is this?")], 7),
        person([said("[Request interrupted by user]")], 8),
        agent(9, said("from an agent that it started"), isSidechain=True),
        person("to that agent", 9, isSidechain=True),
        {"type": "custom-title", "customTitle": "My title"},
    )
    history = read("claude")
    assert [turn.text for turn in history.turns] == ["/model opus", "!ls", "[image]\n\nwhat is this?"]
    assert title_of(history) == "My title" and not history.unreadable


def test_what_a_person_went_back_behind_is_left_out(home: Path, tmp_path: Path) -> None:
    claude_file(
        home,
        tmp_path,
        person("one", 1, uuid="1"),
        agent(2, said("first"), uuid="2"),
        person("two", 3, uuid="3", parent="2"),
        agent(4, said("second"), uuid="4"),
        person("three", 5, uuid="5", parent="4"),
        agent(6, said("third"), uuid="6"),
        person("other two", 7, uuid="7", parent="2"),
        agent(8, said("other second"), uuid="8"),
        person("after a compaction", 9, uuid="9", parent=None),
    )
    assert shown(read("claude")) == [
        *("you: one", "says: first", "you: other two", "says: other second", "you: after a compaction"),
    ]


# --- Codex ----------------------------------------------------------------------------------------


def test_a_session_of_codex_becomes_turns(home: Path, tmp_path: Path) -> None:
    output = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOriginal token count: 1\nOutput:\nno\n"
    total = {"total_token_usage": {"input_tokens": 22, "output_tokens": 14}}
    codex_file(
        home,
        tmp_path,
        item("message", 1, role="user", content=[{"type": "input_text", "text": "<environment_context>"}]),
        asked("Build it", 2),
        event("user_message", 2, message="Build it"),
        item("reasoning", 3, summary=[{"type": "summary_text", "text": "hm"}]),
        item("function_call", 4, name="exec_command", arguments='{"cmd": "make"}', call_id="c1"),
        item("function_call_output", 5, call_id="c1", output=output),
        item("function_call", 6, name="shell", arguments='{"command": ["bash", "-lc", "ls a"]}', call_id="c2"),
        item("function_call_output", 7, call_id="c2", output='{"output": "a", "metadata": {"exit_code": 0}}'),
        item("custom_tool_call", 8, name="apply_patch", input="*** Begin Patch", call_id="c3"),
        item("custom_tool_call_output", 9, call_id="c3", output="ok"),
        item("function_call", 10, name="update_plan", arguments="{}", call_id="c4"),
        answered("It is built.", 11),
        event("token_count", 12, info=total),
        event("token_count", 13, info=None),
    )
    history = read("codex")
    assert shown(history) == [
        *("you: Build it", "thinks: hm", "terminal: no\n", "terminal: a", "write: ok", "update_plan: ?"),
        "says: It is built.",
    ]
    assert history.used is not None and history.used.input_tokens == 22
    calls = [call for _, one in events_of(history) if isinstance(one, ModelResponded) for call in one.calls]
    assert [json.loads(call.arguments).get("command") for call in calls] == ["make", "ls a", None, None]
    ends = [one for _, one in events_of(history) if isinstance(one, ToolCallFinished)]
    assert [(end.outcome, end.exit_code) for end in ends] == [
        *(("failed", 1), ("done", 0), ("done", None)),
        ("unknown", None),
    ]


def test_turns_that_were_rolled_back_are_left_out(home: Path, tmp_path: Path) -> None:
    turns = [line for number in (1, 2, 3) for line in (asked(f"q{number}", number), answered(f"a{number}", number))]
    codex_file(home, tmp_path, *turns, event("thread_rolled_back", 5, num_turns=2), asked("q4", 6))
    assert shown(read("codex")) == ["you: q1", "says: a1", "you: q4"]


def test_a_forked_session_has_what_was_said_before_the_fork(home: Path, tmp_path: Path) -> None:
    codex_file(home, tmp_path, asked("one", 1), answered("first", 2), asked("later", 3), id=OTHER)
    codex_file(
        home, tmp_path, asked("two", 4), answered("second", 5), forked_from_id=OTHER, forked_from_ordinal_exclusive=3
    )
    assert shown(read("codex")) == ["you: one", "says: first", "you: two", "says: second"]
    next(file for file in find_files("codex") if file.id == OTHER).path.unlink()
    history = read("codex")
    assert shown(history) == ["you: two", "says: second"] and history.unreadable == 1


# --- bad files ------------------------------------------------------------------------------------


DAMAGED: list[Line] = [
    "not json",
    "[1, 2]",
    '{"type": "user", "message": ',
    '{"type": "user", "message": {"content": "\\ud800"}}',
    "\x00\x00",
]
ODD: list[Line] = [
    "{}",
    '{"type": 7, "message": [], "uuid": {}, "timestamp": 3, "cwd": 1}',
    '{"type": "user", "message": {"content": [1, {"type": "text", "text": 3}]}}',
    '{"type": "assistant", "message": {"content": {"type": "text"}}}',
    '{"type": "response_item", "payload": {"type": "function_call", "arguments": 5, "call_id": 1}}',
    '{"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1e99}}',
    '{"type": "session_meta", "payload": {"cwd": 4, "source": {"subagent": 1}}}',
]


@pytest.mark.parametrize("agent_name", ["claude", "codex"])
def test_damaged_and_half_written_lines_are_counted(agent_name: str, home: Path, tmp_path: Path) -> None:
    if agent_name == "claude":
        file = claude_file(home, tmp_path, person("hello", 1), *DAMAGED, *ODD, agent(2, said("hi")))
    else:
        file = codex_file(home, tmp_path, asked("hello", 1), *DAMAGED, *ODD, answered("hi", 2))
    with file.open("a") as end:
        end.write('{"type": "assistant", "message": {"conte')
    history = read(agent_name)
    assert shown(history) == ["you: hello", "says: hi"]
    assert history.unreadable in (len(DAMAGED) + 1, len(DAMAGED) + 2)  # `{}` says nothing, either
    assert history.cwd == str(tmp_path)


def test_a_line_of_50_mb_is_left_out_and_takes_no_memory(home: Path, tmp_path: Path) -> None:
    file = claude_file(home, tmp_path, person("hello", 1))
    with file.open("ab") as end:
        end.write(b'{"type": "user", "message": {"content": "')
        for _ in range(50):
            end.write(b"x" * (1 << 20))
        end.write(b'"}}\n' + text_of(agent(2, said("hi"))).encode())
    assert LINE_LIMIT < 50 << 20
    history = read("claude")
    assert shown(history) == ["you: hello", "says: hi"] and history.unreadable == 1
    assert max(len(line or b"") for line in read_lines(file)) < 1000
    assert [*read_lines(file, limit=1 << 20)]


def test_times_that_go_back_or_lie_in_the_future_are_corrected(home: Path, tmp_path: Path) -> None:
    first = agent(40, said("a"))
    lines: list[Line] = [person("q", 30), first, person("r", 10), {**first, "timestamp": "9999-01-01T00:00:00Z"}]  # type: ignore[dict-item]
    claude_file(home, tmp_path, *lines, {**person("s", 1), "timestamp": "yesterday"})  # type: ignore[dict-item]
    times = [when for when, _ in events_of(read("claude"))]
    assert times == sorted(times) and times[0] == ms(30) and times[-1] == NOW


def test_of_a_long_history_the_last_turns_are_imported() -> None:
    for history in (ImportedHistory(parts_kept=10), ImportedHistory(characters_kept=500)):
        for number in range(20):
            history.ask(f"q{number}", ms(number))
            history.say("a" * 97, ms(number))
        assert history.left_out == 15 and [turn.text for turn in history.turns] == [f"q{n}" for n in range(15, 20)]
        history.rewind(18)
        history.ask("another", ms(30))
        assert [turn.text for turn in history.turns] == ["q15", "q16", "q17", "another"]
        history.rewind(2)
        assert not history.turns, "what it went back to is not kept"


def test_of_a_long_turn_the_last_steps_are_imported() -> None:
    history = ImportedHistory(parts_kept=10)
    history.ask("q", ms(1))
    for number in range(20):
        history.call(f"c{number}", "terminal", {"command": "x"}, ms(number))
        history.end_call(CallEnded(f"c{number}", "y" * 300_000), ms(number))
    (turn,) = history.turns
    assert turn.steps_left_out == 16 and turn.parts <= 10
    assert all(len(call.end.output) < 210_000 for step in turn.steps for call in step.calls.values() if call.end)
    answers = [one for _, one in events_of(history) if isinstance(one, ModelResponded)]
    assert len(answers) == 4 and "16 earlier steps of this turn were left out" in answers[0].text
    history.say("a", ms(30))
    history.say("b" * 500_000, ms(30))
    assert len(history.turns[-1].steps[-1].text) < 401_000

    history = ImportedHistory(characters_kept=500)
    history.ask("q", ms(1))
    for number in range(2):
        history.call(f"c{number}", "terminal", {"command": "x" * 300}, ms(number))
        history.end_call(CallEnded(f"c{number}", "y"), ms(number))
    (turn,) = history.turns
    assert (turn.steps_left_out, [*turn.steps[0].calls]) == (1, ["c1"]), "the last step stays, whatever its size"


def test_no_link_is_followed_and_only_regular_files_are_read(home: Path, tmp_path: Path) -> None:
    elsewhere = claude_file(tmp_path / "elsewhere", tmp_path, person("hello", 1))
    directory = home / "projects" / "-here"
    directory.mkdir(parents=True)
    (directory / f"{ID}.jsonl").symlink_to(elsewhere)
    (home / "projects" / "-there").symlink_to(elsewhere.parent, target_is_directory=True)
    os.mkfifo(directory / f"{OTHER}.jsonl")
    (directory / f"{'f' * 8}-1111-4222-8333-666666666666.jsonl").mkdir()
    (directory / "agent-1.jsonl").write_text("{}")
    assert find_files("claude") == []
    for odd in (directory / f"{ID}.jsonl", directory / f"{OTHER}.jsonl"):
        with pytest.raises(OSError):
            next(read_lines(odd))


def test_an_agent_without_sessions_has_none(home: Path) -> None:
    assert find_files("claude") == [] and find_files("codex") == []


# --- still open -----------------------------------------------------------------------------------


def test_the_register_of_claude_names_the_process_that_works_in_a_session(home: Path, tmp_path: Path) -> None:
    claude_file(home, tmp_path, person("hello", 1))
    (file,) = find_files("claude")
    register = home / "sessions"
    register.mkdir()
    for content in ("garbage", json.dumps({"pid": 1, "sessionId": OTHER, "procStart": "1"}), json.dumps([])):
        (register / "1.json").write_text(content)
        assert used_by("claude", file, str(tmp_path)) == ""
    with subprocess.Popen(["sleep", "600"]) as running:
        found = process(running.pid)
        assert found is not None
        entry = {"pid": running.pid, "sessionId": ID, "procStart": str(found.start)}
        (register / "2.json").write_text(json.dumps(entry))
        assert used_by("claude", file, str(tmp_path)) == f"process {running.pid} (claude) works in it"
        (register / "2.json").write_text(json.dumps(entry | {"procStart": str(found.start + 1)}))
        assert used_by("claude", file, str(tmp_path)) == "", "the pid was used again"
        (register / "2.json").write_text(json.dumps(entry))
        running.kill()
    assert used_by("claude", file, str(tmp_path)) == ""


HOLD = "import sys, time; file = open(sys.argv[1], 'a'); print(flush=True); time.sleep(600)"


@pytest.mark.parametrize("is_server", [False, True])
def test_a_process_that_has_the_file_open_is_named(is_server: bool, home: Path, tmp_path: Path) -> None:
    path = codex_file(home, tmp_path, asked("hello", 1))
    (file,) = find_files("codex")
    assert used_by("codex", file, str(tmp_path)) == ""
    words = ["app-server"] if is_server else []
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path), *words], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline()
        found = used_by("codex", file, str(tmp_path))
        if is_server:
            assert found == "", "nobody may be there any more"
            program = shutil.copy("/bin/sleep", tmp_path / "codex")
            with subprocess.Popen([program, "600"], cwd=tmp_path) as terminal:
                found = used_by("codex", file, str(tmp_path))
                terminal.kill()
            assert found == f"process {terminal.pid} (codex) runs in its directory"
        else:
            assert found.startswith(f"process {running.pid} (") and found.endswith("has its file open")
        running.kill()
    assert used_by("codex", file, str(tmp_path)) == ""
