"""Requests fit: whatever a turn reads, what the model sees stays below the limit, whole, and with its assignment."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.domain.commands import UndoTurn
from holdfast.domain.compaction import Compact, Trim, size_after_summary
from holdfast.domain.context_limits import CompactionRules
from holdfast.domain.events.chapter import SummaryFailed, SummaryWritten
from holdfast.domain.events.parts import Call, Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.session import ModelFailed, ModelRequested, ModelResponded, ToolCallFinished
from holdfast.domain.history import AgentMessage, Message, ToolResult, UserMessage, message_size
from holdfast.domain.next_step import Ask, Begin, CallModel, Finish, Join, Partial, TurnLimits, closing_events
from holdfast.domain.reset import NotDue
from holdfast.domain.session import Session
from holdfast.domain.session_fold import fold
from holdfast.domain.summary import fit_to_budget, messages_covered
from holdfast.domain.why import why_chapter
from tests.domain.book import ID, Book
from tests.domain.steps import next_step

FIXED = 300
"""Tokens of instructions and tools."""
TOO_LONG = Problem(code="context_too_long", message="The conversation is too long: prompt is too long.")


@dataclass
class Turns(Book):
    """A worker whose model reads files; `requests` is what it was sent."""

    rules: CompactionRules = field(default_factory=lambda: CompactionRules(threshold=8_000, limit=10_000))
    window: int = 0
    """What the model takes by its own count, which may be less than the limit; 0 is everything."""
    counts: bool = True
    """Whether the provider says how many tokens it counted."""
    requests: list[list[Message]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        Book.__init__(self)

    def run(self, text: str, reads: list[list[str]]) -> Finish:
        """One turn: each step reads these texts; then it is done."""
        self.say(text)
        limits, left = TurnLimits(steps=10_000, compaction=self.rules), list(reads)
        for _ in range(20 * len(reads) + 50):
            match next_step(self.session, limits, now=self.now):
                case Begin():
                    self.begin()
                case Join():
                    self.join()
                case Trim(event):
                    assert event.tokens_after < event.tokens_before and event.results
                    self.write(event)
                case Compact() as step:
                    self.write(self.summary(step))
                case CallModel() as step:
                    self._ask(step, left)
                case Finish() as end:
                    self.write(*closing_events(self.session, end, Partial(), now=self.now))
                    return end
                case other:
                    raise AssertionError(other)
        raise AssertionError("it does not come to an end")

    def _ask(self, step: CallModel, left: list[list[str]]) -> None:
        context = self.session.visible_messages()
        self.requests.append(context)
        self.sizes.append(sum(map(message_size, context)) + FIXED)
        asked = ModelRequested(
            turn=step.turn,
            step=step.step,
            attempt=step.attempt,
            model="m",
            context_version=self.session.version,
            fixed_tokens=FIXED,
        )
        self.write(asked)
        if self.window and self.sizes[-1] > self.window:
            self.write(ModelFailed(turn=step.turn, step=step.step, problem=TOO_LONG))
            return
        texts = left.pop(0) if left else []
        calls = [Call(call=f"{step.turn}.{step.step}.{n}", tool="read", arguments="{}") for n in range(len(texts))]
        said = ModelResponded(
            turn=step.turn,
            step=step.step,
            text="" if calls else "all was read",
            thinking="",
            calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            usage=Usage(input_tokens=self.sizes[-1], output_tokens=3) if self.counts else Usage(),
            duration_ms=1,
        )
        self.write(said)
        for call, output in zip(calls, texts, strict=True):
            done = ToolCallFinished(
                turn=step.turn, call=call.call, tool="read", outcome="done", output=output, duration_ms=1
            )
            self.write(done)

    def summary(self, step: Compact) -> SummaryWritten:
        fact = SummaryWritten(
            covers_turn=step.covers,
            covers_step=step.covers_step,
            summary="in short " * 10,
            source="digest" if step.digest else "model",
            model="m",
            tokens_before=self.session.size,
            tokens_after=0,
            reason=step.reason,
        )
        return replace(fact, tokens_after=size_after_summary(self.session, fact))


def check_whole(context: list[Message], assignment: str) -> None:
    called = [call.call for one in context if isinstance(one, AgentMessage) for call in one.calls]
    answered = [one.call for one in context if isinstance(one, ToolResult)]
    assert called == answered, "a call was torn from its result"
    assert assignment in [one.text for one in context if isinstance(one, UserMessage)], "what it is to do is gone"


text = st.builds(lambda size, letter: letter * size, st.integers(0, 30_000), st.sampled_from("xé語"))
steps = st.lists(st.lists(text, min_size=1, max_size=4), max_size=14)


@settings(max_examples=40, deadline=None)
@given(turns=st.lists(steps, min_size=1, max_size=3), counts=st.booleans(), window=st.sampled_from([0, 0, 4_000]))
def test_no_request_exceeds_the_limit_and_none_is_torn(turns: list[list[list[str]]], counts: bool, window: int) -> None:
    book = Turns(counts=counts, window=window)
    for number, reads in enumerate(turns, 1):
        before = len(book.requests)
        end = book.run(f"read all of part {number}", reads)
        assert end.outcome == "done", end.reason
        for context in book.requests[before:]:
            check_whole(context, f"read all of part {number}")
    assert max(book.sizes) <= 10_000
    results = [one.output for one in book.session.messages if isinstance(one, ToolResult)]
    assert results == [one for reads in turns for step in reads for one in step], "the originals stay"


@settings(max_examples=30, deadline=None)
@given(reads=steps)
def test_a_worker_that_takes_over_sees_the_same_and_what_was_trimmed_stays_trimmed(reads: list[list[str]]) -> None:
    book = Turns()
    book.run("read", reads)
    session, short = Session(ID), set[str]()
    for record in book.records:
        session = fold(session, [record])
        now = {one.call for one in session.visible_messages() if isinstance(one, ToolResult) and one.characters}
        there = {one.call for one in session.visible_messages() if isinstance(one, ToolResult)}
        assert short & there <= now, "a result came back"
        short |= now
    assert session == fold(Session(ID), book.records) == book.session
    assert session.compute_visible() == session.visible_history, "put together anew it is the same"


def test_old_results_are_trimmed_in_large_parts_before_anything_is_summarised() -> None:
    """A provider's cache holds from one trim to the next."""
    book = Turns()
    book.run("read", [["x" * 4_000]] * 12)
    kinds = [type(record.event).__name__ for record in book.records]
    assert kinds.count("ToolResultsTrimmed") == 1 and "SummaryWritten" not in kinds
    [trim] = [record.event for record in book.records if type(record.event).__name__ == "ToolResultsTrimmed"]
    assert trim.results >= 4 and trim.tokens_after <= 4_200  # type: ignore[union-attr]
    note = next(one for one in book.requests[-1] if isinstance(one, ToolResult))
    assert "4,000 characters" in note.output and '{"call": "1.1.0"}' in note.output
    why = " ".join(one.text for one in why_chapter(book.session, NotDue(), now=book.now))
    assert "tool results up to step" in why and "over 8000" in why and "`recall`" in why


def test_steps_of_the_running_turn_are_summarised_when_notes_are_not_enough() -> None:
    """The results are short, so there is nothing to trim."""
    book = Turns()
    book.run("first", [])
    assert book.run("read on", [["x" * 399]] * 200).outcome == "done"
    made = [record.event for record in book.records if isinstance(record.event, SummaryWritten)]
    assert made and all((one.covers_turn, one.covers_step > 0) == (2, True) for one in made)
    assert max(book.sizes) <= 8_100, "at four fifths of the limit, not at the limit"
    assert len(made) <= 5, "each makes room for many steps"
    last = book.requests[-1]
    assert "of your work in turn 2 up to step" in last[0].text and last[1] == UserMessage(2, "read on")  # type: ignore[union-attr]


def test_a_result_that_does_not_fit_is_cut_and_a_message_that_does_not_fit_fails_with_what_to_do() -> None:
    book = Turns()
    assert book.run("read", [["y" * 60_000, "z" * 2_000]]).outcome == "done"
    cut, whole = [one for one in book.requests[-1] if isinstance(one, ToolResult)]
    assert cut.output.startswith("yyy") and cut.output.endswith("yyy") and "of 60,000 characters left out" in cut.output
    assert whole.output == "z" * 2_000
    asked = len(book.requests)
    end = book.run("w" * 60_000, [])
    assert end.outcome == "failed" and end.problem is not None and end.problem.code == "context_too_long"
    assert "one message of the user alone has about 15,000" in end.problem.message
    assert "Send long texts in pieces" in end.problem.hint and len(book.requests) == asked, "nobody was asked in vain"


def test_results_that_do_not_fit_together_are_cut_to_the_same_length_and_fill_what_there_is() -> None:
    book = Turns()
    assert book.run("read", [["x" * 60_000, "y" * 2_000, "z" * 30_000]]).outcome == "done"
    first, whole, last = [one for one in book.requests[-1] if isinstance(one, ToolResult)]
    assert first.output.count("x") == last.output.count("z") > 10_000
    assert whole.output == "y" * 2_000
    assert 7_500 <= book.sizes[-1] <= 8_000


def test_a_refusal_is_learned_from_and_after_the_last_way_out_the_turn_fails() -> None:
    book = Turns(window=3_000)
    assert book.run("read", [["x" * 3_000]] * 20).outcome == "done"
    refused = [record.event for record in book.records if isinstance(record.event, ModelFailed)]
    assert len(refused) == 1, "once; then it keeps below that"
    end = Turns(window=200).run("read", [["x" * 3_000]] * 3)
    assert end.outcome == "failed" and end.problem is not None
    assert end.problem.message.startswith("The conversation is too long: prompt is too long. The request would have")


def test_what_an_undone_turn_had_read_does_not_count_any_more() -> None:
    book = Turns()
    book.run("read a little", [["x" * 40]])
    before = book.session.visible_messages()
    book.run("read a lot", [["y" * 9_000], ["z" * 9_000]])
    large = book.session.size
    book.tell(UndoTurn())
    assert book.session.visible_messages() == before
    assert book.session.size == FIXED + sum(map(message_size, before)) < large


def test_off_is_off() -> None:
    book = Turns(rules=CompactionRules(threshold=0, limit=0), window=10_000)
    end = book.run("read", [["x" * 4_000]] * 20)
    assert end.outcome == "failed" and end.problem is not None and "Compaction is off" in end.problem.hint
    assert not {"ToolResultsTrimmed", "SummaryWritten"} & {type(record.event).__name__ for record in book.records}
    assert [one.characters for one in book.requests[-1] if isinstance(one, ToolResult)] == [0] * 10


def test_without_a_summary_it_continues_while_it_fits_then_with_a_digest() -> None:
    book = Turns()
    limits = TurnLimits(steps=10_000, compaction=book.rules)
    book.say("read on")
    book.begin()
    failed = 0
    for _ in range(600):
        match next_step(book.session, limits, now=book.now):
            case CallModel() as step:
                book._ask(step, [["x" * 399]])
            case Compact(digest=True) as step:
                assert book.session.size > 10_000, "it fits, so all of it stays"
                book.write(book.summary(step))
                break
            case Compact() as step:
                failed += 1
                problem = Problem(code="network", message="no")
                book.write(
                    SummaryFailed(
                        covers_turn=1,
                        covers_step=step.covers_step,
                        attempt=1,
                        problem=problem,
                        retry_at=book.now + 10_000,
                    )
                )
            case Ask() | Finish() as other:
                raise AssertionError(other)
            case _:
                pass
    assert failed == 1 and book.session.chapter.provisional and book.session.size < 8_000


@settings(max_examples=60, deadline=None)
@given(reads=steps, tokens=st.integers(400, 20_000), long=st.integers(0, 40_000))
def test_the_request_for_a_summary_fits_and_names_what_was_left_out(
    reads: list[list[str]], tokens: int, long: int
) -> None:
    book = Turns(rules=CompactionRules(threshold=0, limit=0))
    book.run("語" * long + "read", reads)
    messages = messages_covered(book.session, (1, len(reads) + 1))
    fit, left_out = fit_to_budget(messages, tokens)
    assert sum(map(message_size, fit)) <= tokens + 30
    called = {call.call for one in fit if isinstance(one, AgentMessage) for call in one.calls}
    assert {one.call for one in fit if isinstance(one, ToolResult)} <= called, "a result without its call"
    assert (left_out > 0) == any("A digest of the" in getattr(one, "text", "") for one in fit)
