"""The verbs about sessions: list, show, log, search, rename, archive, restore, delete, export."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

from holdfast.cli.screen import width
from holdfast.client.client import Client
from holdfast.client.events import stored_records
from holdfast.config import Home
from tests.cli.commandline import CommandLine
from tests.e2e.gateway import GatewayProcess, kinds, of_kind, until
from tests.eventually import PATIENCE

WIDE = "say 日本語のとても長いタイトルは表に収まらないので短くされるはずです、きっと。"


def test_an_empty_list_teaches(gateway: GatewayProcess) -> None:
    cli = CommandLine(gateway.home)
    assert cli.ok("sessions") == 'No sessions yet. Try: holdfast run --profile demo "say hello"\n'
    assert cli.ok("sessions", "list", "--archived") == "No session is archived.\n"
    assert cli.ok("sessions", "search", "x").startswith("Nothing found.")
    assert cli.ok("why") == "Nothing is running, and nothing waits for you.\n"
    session = gateway.create()
    assert "No turns yet." in cli.ok("sessions", "show", session)


def test_tables_fit_the_terminal(cli: CommandLine) -> None:
    cli.ok("run", WIDE)
    cli.ok("run", "say " + "long " * 60)
    until(lambda: len(cli.json("sessions", "search", "long long")["hits"]), "the search has caught up")
    for columns in (40, 80, 120):
        for arguments in (["sessions"], ["sessions", "search", "say"]):
            lines = cli.ok(*arguments, env={"COLUMNS": str(columns)}).splitlines()
            assert max(map(width, lines)) <= columns, (arguments, columns)
            assert any("…" in line for line in lines)
    with cli.terminal("sessions", columns=60) as terminal:
        assert terminal.wait() == 0
    assert max(map(width, terminal.text.splitlines())) == 60
    assert WIDE[:60] in cli.ok("sessions")


def test_the_log_reads_as_a_conversation(cli: CommandLine, tmp_path: Path) -> None:
    done = cli("run", "--json", "--cwd", str(tmp_path), "write a.txt hello\nread b.txt\nsay end\nfail")
    session = json.loads(done.stdout)["session"]
    lines = [line[17:] for line in cli.ok("sessions", "log", session).splitlines()]
    assert lines[1] == f"session   profile demo in {tmp_path}"
    assert lines[2:6] == ["you       write a.txt hello", "          read b.txt", "          say end", "          fail"]
    assert any(line.startswith("tool      write path=a.txt content=hello · done · ") for line in lines)
    assert any(line.startswith("tool      read path=b.txt · failed · ") for line in lines)
    assert lines[-1].startswith("failed    Turn 1 failed: The demo agent failed because the message asked for it.")


def test_the_log_has_versions_and_can_begin_after_one(cli: CommandLine) -> None:
    session = cli.json("run", "say hello")["session"]
    whole = cli.ok("sessions", "log", session).splitlines()[1:]
    assert [int(line.split()[0]) for line in whole] == [1, 2, 5, 6]
    assert [int(line.split()[0]) for line in cli.ok("sessions", "log", session, "--after", "4").splitlines()[1:]] == [
        5,
        6,
    ]
    done = cli("sessions", "log", session, "--after", "6")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "Nothing after that version.\n")


def test_the_log_as_json_lines_is_what_is_stored(shared: GatewayProcess, cli: CommandLine) -> None:
    session = cli.json("run", "say hello")["session"]
    lines = cli.ok("sessions", "log", session, "--json").splitlines()
    assert [json.loads(line) for line in lines] == shared.events(session)


def test_long_logs_come_in_pages(shared: GatewayProcess, cli: CommandLine) -> None:
    session = cli.json("run", "say hello")["session"]
    pages = stored_records(Client(Home(shared.home)), session, after=1, page=2)
    assert [seen.record["version"] for seen in pages] == [2, 3, 4, 5, 6]


def test_following_shows_what_comes_and_survives_a_kill(gateway: GatewayProcess) -> None:
    cli = CommandLine(gateway.home)
    session = gateway.create("say first")
    gateway.until_rest(session)
    with cli.terminal("sessions", "log", session, "--follow") as terminal:
        terminal.until("turn      Turn 1 is done.")
        gateway.kill9()
        terminal.until("the gateway is away")
        gateway.start()
        gateway.send(session, "slow 0.5 second answer")
        terminal.until("turn      Turn 2 is done.")
        terminal.interrupt()
        assert terminal.wait() == 0
    assert terminal.text.count("say first") == 1
    assert "agent     second answer (" in terminal.text


def test_following_from_the_middle_of_a_step_shows_it_as_it_comes(gateway: GatewayProcess) -> None:
    cli = CommandLine(gateway.home)
    session = gateway.create("slow 0.6 a b c\nhang")
    asked = gateway.until_event(session, "ModelRequested")[-1]["version"]
    with cli.terminal("sessions", "log", session, "--follow", "--after", str(asked)) as terminal:
        terminal.until("agent     a b c")
        assert "ModelResponded" not in kinds(gateway.events(session))
        terminal.interrupt()


def test_following_marks_a_cut_answer_as_partial(gateway: GatewayProcess) -> None:
    cli = CommandLine(gateway.home)
    session = gateway.create("slow 0.6 a b c\nhang")
    with cli.terminal("sessions", "log", session, "-f") as terminal:
        terminal.until("agent     a b c")
        gateway.kill9()
        gateway.start_and_let_go()
        terminal.until("turn      Turn 1 is done.")
    entries = [line[17:] for line in terminal.text.splitlines()]
    assert any(line.startswith("partial   a") and "— cut: the gateway was killed" in line for line in entries)
    assert any(line.startswith("resumed   Turn 1 resumed after ") for line in entries)
    whole = len(entries) - entries[::-1].index("agent     a b c")
    assert [line.startswith("          done") for line in entries[whole:]] == [True, False], entries


def test_show_lists_turns_and_the_queue(shared: GatewayProcess, cli: CommandLine) -> None:
    session = cli.json("run", "slow 300 a b", "--detach")["session"]
    cli.ok("send", session, "say later")
    shared.until_event(session, "TurnStarted")
    shown = cli.ok("sessions", "show", session[:10])
    assert session in shown
    assert "waiting in the queue" in shown
    assert "say later" in shown
    cli.ok("stop", session)
    until(lambda: "say later" not in cli.ok("sessions", "show", session), "the queue is empty")
    shared.until_rest(session)


def test_queued_messages_are_withdrawn_by_number_or_from_the_end(shared: GatewayProcess, cli: CommandLine) -> None:
    session = cli.json("run", "slow 300 a b", "--detach")["session"]
    shared.until_event(session, "TurnStarted")
    for text in ("say one", "say two", "say three"):
        cli.ok("send", session, text)
    first, *_ = numbers = [message["version"] for message in cli.json("sessions", "show", session)["queue"]]
    none_such = cli("sessions", "withdraw", session, "1")
    waiting = f"Message 1 is not in the queue of this session. Waiting: {', '.join(map(str, numbers))}."
    assert (none_such.returncode, waiting in none_such.stderr) == (4, True)
    assert f"{first}  queue" in cli.ok("sessions", "show", session)
    assert cli.ok("sessions", "withdraw", session, str(first)) == f"{session}: withdrew the message: say one\n"
    assert cli("sessions", "withdraw", session, str(first)).returncode == 4, "no other message has its number now"
    assert "say three" in cli.ok("sessions", "withdraw", session)
    assert [message["text"] for message in cli.json("sessions", "show", session)["queue"]] == ["say two"]
    cli.ok("sessions", "withdraw", session)
    nothing = cli("sessions", "withdraw", session)
    assert (nothing.returncode, "No message waits in the queue" in nothing.stderr) == (4, True)
    cli.ok("stop", session)
    shared.until_rest(session)


def test_rename_archive_restore(cli: CommandLine) -> None:
    session = cli.json("run", "say x")["session"]
    assert cli.ok("sessions", "rename", session, "A {new} title") == f"{session}: renamed to “A {{new}} title”\n"
    assert "A {new} title" in cli.ok("sessions")
    cli.ok("sessions", "archive", session)
    assert "A {new} title" not in cli.ok("sessions")
    assert "A {new} title" in cli.ok("sessions", "list", "--archived")
    cli.ok("sessions", "restore", session)
    assert "A {new} title" in cli.ok("sessions")


def test_search_finds_any_language(cli: CommandLine) -> None:
    session = cli.json("run", "say schöne grüße, 你好吗")["session"]

    def found(text: str) -> bool:
        return session in {hit["session"] for hit in cli.json("sessions", "search", text)["hits"]}

    for text in ("grüße", "你好吗"):
        until(partial(found, text), "it is found")


def test_delete_shows_what_will_be_deleted_and_asks(cli: CommandLine) -> None:
    session = cli.json("run", "say x")["session"]
    done = cli("sessions", "delete", session)
    assert done.returncode == 2
    assert (
        f"Delete {session} “say x” with 6 events and the outputs of the commands that it waited for, for good?"
        in done.stderr
    )
    assert "--yes" in done.stderr
    with cli.terminal("sessions", "delete", session) as terminal:
        terminal.until("for good? [y/N]")
        terminal.type("n\n")
        assert terminal.wait() == 1
    assert "Nothing was deleted." in terminal.text
    with cli.terminal("sessions", "delete", session) as terminal:
        terminal.until("for good? [y/N]")
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert cli("sessions", "show", session).returncode == 4


def test_export_as_markdown_and_as_json_lines(shared: GatewayProcess, cli: CommandLine, tmp_path: Path) -> None:
    session = cli.json("run", "say grüße")["session"]
    assert "grüße" in cli.ok("sessions", "export", session)
    file = tmp_path / "out.jsonl"
    cli.ok("sessions", "export", session[:8], "--format", "jsonl", "-o", str(file))
    assert [json.loads(line) for line in file.read_text().splitlines()] == shared.events(session)
    done = cli("sessions", "export", session, "-o", str(tmp_path / "no" / "such" / "dir"))
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr


def test_a_reader_that_leaves_early_is_no_error(cli: CommandLine) -> None:
    session = cli.json("run", "\n".join(["say a line of text"] * 3_000))["session"]
    reading = cli.spawn("sessions", "log", session)
    assert reading.stdout is not None and reading.stderr is not None
    os.read(reading.stdout.fileno(), 100)
    reading.stdout.close()
    assert reading.stderr.read() == ""
    reading.stderr.close()
    reading.wait(PATIENCE)


def test_a_session_continues_with_another_profile(gateway: GatewayProcess) -> None:
    cli = CommandLine(gateway.home)
    with (gateway.home / "config.toml").open("a") as config:
        config.write('[profiles.second]\nmodel = "demo"\n')
    session = cli.json("run", "--profile", "demo", "say hello")["session"]
    assert "Give --profile, --model or both." in cli("sessions", "agent", session).stderr
    assert "nobody" in cli("sessions", "agent", session, "--profile", "nobody").stderr
    assert cli.json("sessions", "show", session)["session"]["profile"] == "demo"
    assert cli.ok("sessions", "agent", session, "--profile", "second") == "continues with profile second\n"
    assert cli.json("send", "--wait", session, "say again")["profile"] == "second"
    chosen = cli.json("sessions", "agent", session, "--model", "demo")
    assert (chosen["profile"], chosen["model"]) == ("second", "demo")


def test_an_answer_that_names_none_of_the_choices_is_reported_as_a_text(
    shared: GatewayProcess, cli: CommandLine
) -> None:
    question = 'call question {"text": "Which?", "choices": ["left", "right"]}'
    for said, meant, reported in (("2", "right", ""), ("7", "7", "with the text “7”, which is none of the choices")):
        session = cli.json("run", "--profile", "demo", question, "--detach")["session"]
        shared.until_event(session, "WaitOpened")
        assert reported in (answered := cli.ok("answer", session, said))
        assert ("choices" in answered) == bool(reported)
        (answer,) = of_kind(shared.until_event(session, "WaitAnswered"), "WaitAnswered")
        assert answer["answer"] == meant
        shared.until_rest(session)
