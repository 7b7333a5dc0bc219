"""The typed methods on a real gateway: what is sent, and what comes back as a struct."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.client import ApiError, Client, EventReceived, GatewayNotRunning, OutputPiece
from holdfast.domain.events.actor import PersonActor
from holdfast.domain.events.session import InputReceived, SessionCreated, WaitOpened
from tests.cli.proxy import Proxy
from tests.e2e.gateway import GatewayProcess, of_kind, until

DEMO = "demo"


def test_run_returns_the_text_of_the_turn(client: Client) -> None:
    result = client.run("say hello", profile=DEMO)
    assert (result.text, result.outcome, result.turn, result.model) == ("hello", "done", 1, "demo")
    assert client.sessions.get(result.session).session.version == result.version


def test_the_context_of_a_session_has_its_texts_unless_only_its_size_is_asked_for(client: Client) -> None:
    session = client.run("say hello", profile=DEMO).session
    context = client.sessions.context(session)
    assert len(context.messages) == 2 and "hello" in str(context.messages)
    assert context.counted and context.tokens != context.characters // 4
    figures = client.sessions.context(session, texts=False)
    assert (figures.messages, figures.tokens) == ([], context.tokens)


def test_what_no_model_has_counted_yet_is_a_quarter_of_the_characters(client: Client) -> None:
    context = client.sessions.context(client.sessions.create(profile=DEMO).session)
    assert not context.counted and context.tokens == context.characters // 4 > 0


def test_a_command_with_an_id_of_the_caller_is_carried_out_once(client: Client) -> None:
    session = client.sessions.create(profile=DEMO).session
    first, again = [client.sessions.send(session, "say hello", id="my-own-id") for _ in range(2)]
    assert (first.version, first.duplicate, again.duplicate) == (again.version, False, True)


def test_a_session_without_rules_is_never_reset(client: Client) -> None:
    found = client.sessions.reset_status(client.sessions.create(profile=DEMO).session)
    assert (found.next_rule, found.next_at) == (None, None)


def test_a_failed_turn_is_a_result_and_no_exception(client: Client) -> None:
    result = client.run("fail", profile=DEMO)
    assert result.outcome == "failed"
    assert result.reason


def test_a_message_is_answered_in_its_session(client: Client) -> None:
    session = client.run("say one", profile=DEMO).session
    answer = client.wait_for_turn(client.sessions.send(session, "say two"))
    assert (answer.session, answer.turn, answer.text) == (session, 2, "two")
    assert [turn.state for turn in client.sessions.get(session[:6]).turns] == ["done", "done"]


def test_a_message_that_is_withdrawn_is_of_no_turn(client: Client) -> None:
    session = client.sessions.create('call question {"text": "Which colour?"}', profile=DEMO).session
    accepted = client.sessions.send(session, "say two")
    client.command("DELETE", f"/v1/sessions/{session}/queue/{accepted.input}")
    result = client.wait_for_turn(accepted)
    assert (result.outcome, result.turn, "withdrew the message" in result.reason) == ("stopped", 0, True)


def test_who_did_it_is_the_api_and_not_the_command_line(client: Client) -> None:
    session = client.sessions.create("say x", profile=DEMO).session
    said = next(record.event for record in client.events(session) if isinstance(record.event, InputReceived))
    assert said.by == PersonActor(client="api")


def test_a_command_whose_response_was_lost_is_carried_out_once(gateway: GatewayProcess) -> None:
    with Proxy(gateway, drop_answers=2) as proxy:
        accepted = Client(proxy.home).sessions.create("say once", profile=DEMO)
        assert proxy.posts == 3
    assert len(of_kind(gateway.events(accepted.session), "InputReceived")) == 1


def test_follow_begins_after_a_version(client: Client) -> None:
    result = client.run("say x", profile=DEMO)
    items = client.follow(result.session, after=1)
    first = next(item for item in items if isinstance(item, EventReceived))
    assert first.version == 2
    assert [record.version for record in client.events(result.session)] == list(range(1, result.version + 1))
    assert isinstance(next(client.events(result.session)).event, SessionCreated)


def test_a_question_is_answered_from_the_inbox(client: Client) -> None:
    asked = '{"text": "Which colour?"}'
    accepted = client.sessions.create(f"call question {asked}", profile=DEMO)
    waits = (item.event for item in client.follow(accepted.session) if isinstance(item, EventReceived))
    wait = next(event.wait for event in waits if isinstance(event, WaitOpened))
    assert wait in [entry.id for entry in client.inbox().entries]
    found = client.wait(wait)
    assert (found.wait.session, found.arguments) == (accepted.session, asked)
    client.answer(wait, "blue")
    assert client.wait_for_turn(accepted).outcome == "done"
    assert wait not in [entry.id for entry in client.inbox().entries]
    assert client.wait(wait).arguments == "", "nothing waits with them any more"


def test_sessions_are_listed_changed_and_deleted(client: Client) -> None:
    id = client.sessions.create(profile=DEMO, title="first title").session
    client.sessions.rename(id, "a title to look for")
    assert [row.id for row in client.sessions.list(text="title to look").sessions] == [id]
    copy = client.sessions.fork(id, title="a copy").session
    client.sessions.archive(id)
    assert id in [row.id for page in client.sessions.pages(archived=True) for row in page.sessions]
    client.sessions.restore(id)
    client.sessions.delete(copy)
    with pytest.raises(ApiError) as gone:
        client.sessions.get(copy)
    assert gone.value.is_not_found
    assert client.why(session=id).sentences


def test_a_command_is_started_followed_and_pinned(client: Client, tmp_path: Path) -> None:
    task = client.tasks.start_command("echo one; echo two; exit 3", cwd=str(tmp_path), name="two lines").task
    pieces = [item for item in client.tasks.follow_output(task) if isinstance(item, OutputPiece)]
    assert b"".join(piece.data for piece in pieces) == b"one\ntwo\n"
    ended = client.tasks.wait(task)
    assert (ended.state, ended.exit_code, ended.title) == ("failed", 3, "two lines")
    assert b"".join(piece.data for piece in client.tasks.output(task, tail=1)) == b"two\n"
    client.tasks.pin(task)
    assert client.tasks.get(task[:8]).pinned
    assert task in [row.id for row in client.tasks.list(state="failed").tasks]
    assert client.why(task=task).sentences


def test_a_list_of_arguments_is_a_command_without_a_shell(client: Client, tmp_path: Path) -> None:
    task = client.tasks.start_command(["printf", "%s", "$HOME"], cwd=str(tmp_path)).task
    client.tasks.wait(task)
    assert b"".join(piece.data for piece in client.tasks.output(task, raw=True)) == b"$HOME"


def test_a_command_that_reads_is_written_to_and_stopped(client: Client, tmp_path: Path) -> None:
    task = client.tasks.start_command(["cat"], cwd=str(tmp_path), stdin=True).task
    until(lambda: client.tasks.get(task).pid, "it runs")
    assert client.tasks.write(task, "typed\n").bytes == 6
    until(lambda: any(piece.data for piece in client.tasks.output(task)), "it was echoed")
    client.tasks.stop(task, force=True)
    assert client.tasks.wait(task).state == "stopped"


def test_cards_are_written_commented_and_moved(client: Client) -> None:
    client.boards.create("typed", title="Typed")
    assert "typed" in [board.id for board in client.boards.list().boards]
    client.boards.pause("typed")
    first = client.cards.create("first", board="typed", profile=DEMO, body="complete it").card
    second = client.cards.create("second", board="typed", profile=DEMO, parents=[first], priority=5).card
    client.cards.comment(second, "a word")
    client.cards.edit(second, title="second, renamed", priority=7)
    detail = client.cards.get(second)
    assert (detail.card.title, detail.card.priority) == ("second, renamed", 7)
    assert [comment.text for comment in detail.comments] == ["a word"]
    assert [card.id for card in detail.parents] == [first]
    page = client.cards.list(board="typed", why=True)
    assert {card.id for card in page.cards} == {first, second}
    assert page.why[first]
    client.cards.complete(first, summary="done by hand")
    assert client.cards.get(first).card.status == "done"
    client.cards.archive(second)
    assert client.cards.list(board="typed", status="archived", archived=True).cards[0].id == second


def test_a_gateway_that_never_ran_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(GatewayNotRunning):
        Client(tmp_path / "nowhere").sessions.list()


def test_a_gateway_that_restarts_is_waited_for(gateway: GatewayProcess) -> None:
    client = Client(gateway.home)
    assert client.status().pid == gateway.pid
    gateway.kill9()
    gateway.launch()
    assert client.sessions.list().sessions == []
    gateway.wait_until_up()
