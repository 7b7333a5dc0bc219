"""The decisions of a store on facts in memory, without any engine: order, once per command, one holder."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.errors import Conflict, Fenced, NotFound, VersionConflict
from holdfast.domain.events import Record, decode, encode
from holdfast.store.contract import Append, Appended, CommandKey, Lease, Write
from holdfast.store.decisions import (
    AppendDecision,
    HeldLease,
    StepRef,
    StoredCommand,
    check_lease,
    check_seen,
    decide_append,
    decide_claim,
)
from tests.store.conformance import AT, asked, created, responded, said

STREAMS = ("session/a", "session/b", "session/c")


@dataclass
class MemoryFacts:
    """A store in dictionaries."""

    last_seq: int = 0
    last_token: int = 0
    last_card_number: int = 0
    versions: dict[str, int] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    leases: dict[str, int] = field(default_factory=dict)
    life: int = 1
    is_draining: bool = False
    others: dict[str, HeldLease] = field(default_factory=dict)
    """The leases of other nodes that live."""
    commands: dict[str, StoredCommand] = field(default_factory=dict)
    log: list[Record] = field(default_factory=list)

    def version(self, stream: str) -> int:
        return self.versions.get(stream, 0)

    def is_deleted(self, stream: str) -> bool:
        return stream in self.deleted

    def lease(self, stream: str) -> HeldLease | None:
        token = self.leases.get(stream)
        return self.others.get(stream) if token is None else HeldLease(token, self.life)

    def command(self, id: str) -> StoredCommand | None:
        return self.commands.get(id)

    def append(self, append: Append) -> Appended:
        bodies = [[encode(event) for event in write.events] for write in append.writes]
        decision = decide_append(self, append, bodies)
        self._apply(decision)
        return decision.appended

    def _apply(self, decision: AppendDecision) -> None:
        appended = decision.appended
        for new in decision.events:
            assert decode(new.data) == new.record
            self.log.append(new.record)
            self.last_seq, self.versions[new.record.stream] = new.record.seq, new.record.version
        if decision.command is not None:
            stored = StoredCommand(
                decision.command.digest, appended.stream, appended.version, appended.seq, decision.command.reply
            )
            self.commands[decision.command.id] = stored
        if appended.lease is not None:
            self.grant(appended.lease)

    def grant(self, lease: Lease) -> None:
        self.last_token = self.leases[lease.stream] = lease.token


@st.composite
def appends(draw: st.DrawFn) -> Append:
    streams = draw(st.lists(st.sampled_from(STREAMS), min_size=1, max_size=3, unique=True))
    writes = tuple(
        Write(stream, (said(),) * draw(st.integers(0, 3)), draw(st.none() | st.integers(0, 4))) for stream in streams
    )
    key = draw(st.none() | st.builds(CommandKey, st.sampled_from("123"), st.sampled_from("xy")))
    lease = draw(st.none() | st.builds(Lease, st.sampled_from(STREAMS), st.integers(1, 4)))
    return Append(writes, AT, key, lease, draw(st.sampled_from(("", "me"))))


@settings(max_examples=40, deadline=None)
@given(st.lists(appends(), max_size=8))
def test_promise_2_whatever_is_appended_stays_in_order_once_and_with_one_holder(attempts: list[Append]) -> None:
    facts = MemoryFacts()
    answers: dict[CommandKey, Appended] = {}
    for append in attempts:
        before, holders = len(facts.log), dict(facts.leases)
        try:
            appended = facts.append(append)
        except Conflict:
            assert (len(facts.log), facts.leases) == (before, holders), "a refusal changes nothing"
            continue
        key = append.command
        if key is not None and key in answers:
            first = answers[key]
            assert appended.duplicate
            assert (appended.stream, appended.version, appended.seq) == (first.stream, first.version, first.seq)
            assert (len(facts.log), facts.leases) == (before, holders), "a retry changes nothing"
            continue
        if key is not None:
            answers[key] = appended
        if append.lease is not None:
            assert holders[append.lease.stream] == append.lease.token
        assert appended.records == tuple(facts.log[before:])
        assert appended.version == facts.version(append.writes[0].stream)
        if appended.lease is not None:
            assert appended.lease.token > max(holders.values(), default=0), "tokens only grow"
    assert [record.seq for record in facts.log] == list(range(1, len(facts.log) + 1))
    for stream in STREAMS:
        versions = [record.version for record in facts.log if record.stream == stream]
        assert versions == list(range(1, len(versions) + 1))


def test_a_command_that_is_known_is_answered_before_anything_is_checked() -> None:
    facts, key = MemoryFacts(), CommandKey("c", "d")
    write = Write("session/a", (created("a"), said()), 0)
    first = facts.append(Append((write, Write("session/b", (created("b"),))), AT, key))
    assert (first.version, first.seq, facts.last_seq) == (2, 2, 3), "where the first write ended"
    again = facts.append(Append((write,), AT, key, lease=Lease("session/a", 99), claim="me"))
    assert (again.version, again.seq, again.duplicate, again.lease) == (2, 2, True, None)
    with pytest.raises(Conflict, match="another command"):
        facts.append(Append((write,), AT, CommandKey("c", "other")))


def test_a_deleted_stream_is_not_written_again() -> None:
    facts = MemoryFacts(deleted={"session/a"})
    with pytest.raises(VersionConflict, match="was deleted"):
        facts.append(Append((Write("session/a", (created("a"),)),), AT))


def test_a_later_claim_fences_the_holder() -> None:
    facts = MemoryFacts()
    old = decide_claim(facts, "session/a")
    facts.grant(old)
    check_lease(facts, old)
    facts.grant(decide_claim(facts, "session/a"))
    with pytest.raises(Fenced):
        check_lease(facts, old)


def test_promise_2_a_stream_is_taken_over_only_when_the_life_of_its_node_has_ended() -> None:
    facts = MemoryFacts(others={"session/a": HeldLease(7, life=2)}, last_token=7)
    with pytest.raises(Conflict, match="Another node works on session/a"):
        decide_claim(facts, "session/a")
    with pytest.raises(Conflict, match="Another node"):
        facts.append(Append((Write("session/a", (said(),)),), AT, claim="me"))
    facts.append(Append((Write("session/a", (said(),)),), AT))  # what is said needs no lease
    facts.others.clear()
    assert decide_claim(facts, "session/a") == Lease("session/a", 8)


def test_the_end_of_a_step_ends_its_text_so_far() -> None:
    facts = MemoryFacts()
    events = (asked(), responded(step=1), said())
    append = Append((Write("session/a", events),), AT)
    decision = decide_append(facts, append, [[msgspec.json.encode(event) for event in events]])
    assert decision.ended_steps == (StepRef("session/a", 1, 1),)


def test_nobody_has_seen_more_than_there_is() -> None:
    facts = MemoryFacts(versions={"session/a": 3})
    check_seen(facts, "session/a", 3)
    with pytest.raises(Conflict, match="ends at version 3"):
        check_seen(facts, "session/a", 4)
    with pytest.raises(NotFound):
        check_seen(facts, "session/b", 0)
