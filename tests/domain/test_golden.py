"""The wire is frozen: an example of every event and every command, byte for byte.

A file in tests/golden is what some released Holdfast has written or sent. It must be readable for
ever. After adding a kind or a field with a default:

    pytest tests/domain/test_golden.py --regenerate

and then read the diff: new files and new fields are fine, a changed or vanished one is a broken promise.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from holdfast.domain.commands import (
    AdoptSession,
    AnswerWait,
    AnyCommand,
    ArchiveBoard,
    ArchiveCard,
    ArchiveSession,
    BlockCard,
    ChooseAgent,
    ChooseMode,
    ChooseNode,
    CommentCard,
    CompactSession,
    CompleteCard,
    CreateBoard,
    CreateCard,
    CreateSession,
    DeleteSession,
    DetachTurn,
    DismissFailure,
    EditCard,
    FollowCard,
    ForkSession,
    LinkCard,
    MoveCard,
    PauseBoard,
    PinSession,
    RenameSession,
    RepeatTurn,
    ResetSession,
    RestoreSession,
    ResumeBoard,
    RetryCard,
    ReviseInput,
    SendMessage,
    SetResetPolicy,
    SetSessionTell,
    StopCard,
    StopTurn,
    UnblockCard,
    UndoReset,
    UndoTurn,
    UnlinkCard,
    WithdrawInput,
)
from holdfast.domain.events import AnyEvent, Record, decode, decode_many, encode
from holdfast.domain.events.actor import THE_RESET_CLOCK, RunActor
from holdfast.domain.events.card import (
    BoardArchived,
    BoardCreated,
    BoardPaused,
    BoardResumed,
    CardBlocked,
    CardCommented,
    CardCompleted,
    CardCreated,
    CardEdited,
    CardFollowed,
    CardLinked,
    CardMoved,
    CardUnblocked,
    CardUnlinked,
    RunAssigned,
    RunFinished,
    RunHeartbeat,
    RunReminded,
    RunStarted,
)
from holdfast.domain.events.chapter import (
    Blocker,
    ChapterOpened,
    ChapterRejoined,
    ResetPolicy,
    ResetPolicySet,
    ResetPostponed,
    SummaryFailed,
    SummaryRequested,
    SummaryStarted,
    SummaryWritten,
    Survivor,
    ToolResultsTrimmed,
)
from holdfast.domain.events.external_agent import (
    AgentAttached,
    AgentPlanned,
    AskedField,
    DriverOutputRead,
    OwedRequest,
    PlanEntry,
    SessionAdopted,
)
from holdfast.domain.events.parts import Call, Grant, Usage
from holdfast.domain.events.problem import Problem
from holdfast.domain.events.run_binding import RunBound, RunReleased
from holdfast.domain.events.session import (
    AgentChosen,
    FailureDismissed,
    InputReceived,
    InputRevised,
    InputsJoined,
    InputWithdrawn,
    ModeChosen,
    ModelFailed,
    ModelInterrupted,
    ModelRequested,
    ModelResponded,
    NodeChosen,
    NoteReceived,
    SessionArchived,
    SessionCreated,
    SessionPinned,
    SessionRenamed,
    SessionRestored,
    SessionTellSet,
    StopRequested,
    ToolCallFinished,
    ToolCallStarted,
    TurnBackgrounded,
    TurnFinished,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    TurnUndone,
    WaitAnswered,
    WaitOpened,
)
from holdfast.domain.events.system import (
    GatewayStarted,
    GatewayStopped,
    NodeDrained,
    NodeEnded,
    SessionDeleted,
    StaleListed,
)
from holdfast.domain.events.task import (
    CommandKilled,
    ProcessStarted,
    SandboxSpec,
    TaskBackgrounded,
    TaskFinished,
    TaskLifetimeSet,
    TaskPinned,
    TaskPruned,
    TaskResumed,
    TaskStarted,
    TaskStopRequested,
    TaskTellSet,
)
from holdfast.domain.task_commands import (
    PinTask,
    PruneTasks,
    RerunTask,
    SetTaskTell,
    StartAgent,
    StartCommand,
    StopTask,
    WriteTask,
)
from tests.actors import person

GOLDEN = Path(__file__).parents[1] / "golden"
ID = "0123456789abcdef"
PROBLEM = Problem(code="rate_limit", message="The model is overloaded.", hint="It is tried again in a minute.")

CARD = "0a1b2c3d"
SURVIVOR = Survivor(
    task=ID,
    title="python3 -m http.server",
    pid=7,
    activity="serving not in use",
    evidence="cpu 0%",
    age_ms=86_400_000,
    rule="on_live_process = hand_over",
)
EVENTS: list[AnyEvent] = [
    SessionCreated(session=ID, profile="demo", cwd="/home/ann", title="say hi", by=person("cli")),
    SessionRenamed(title='Grüße, 世界 "quoted" \\ \n\t\u2028 🦀', by=person("web")),
    AgentChosen(profile="coder", model="openai:gpt", by=person("cli")),
    ModeChosen(mode="read", by=person("web")),
    NodeChosen(node="gpu", by=person("web")),
    TurnUndone(turn=3, by=person("cli")),
    SessionArchived(by=person("cli")),
    SessionRestored(by=person("cli")),
    InputReceived(input="c1", text="say hi\nread a.txt", mode="steer", by=person("cli")),
    StopRequested(turn=1, by=person("web")),
    SessionPinned(pinned=True, by=person("web")),
    SessionTellSet(tell="always", by=person("web")),
    FailureDismissed(turn=2, by=person("cli")),
    InputRevised(input="c1", by=person("web"), text="say hello", mode="steer", place=2),
    InputWithdrawn(input="c1", by=person("web")),
    WaitAnswered(
        turn=1,
        wait="0a1b2c3d4e5f",
        answer="always",
        by=person("cli"),
        grant=Grant(scope="profile", rule="write:docs/*"),
        note="go on",
    ),
    TurnStarted(turn=1, inputs=["c1", "c2"], profile="demo"),
    InputsJoined(turn=1, inputs=["c3"]),
    TurnSuspended(turn=1, interruption="shutdown", reason="the gateway was shut down"),
    TurnResumed(turn=1, attempt=2, interruption="crash", reason="the gateway was killed or crashed", away_ms=12_345),
    WaitOpened(
        turn=1,
        wait="0a1b2c3d4e5f",
        purpose="approval",
        reason="write docs/a.md needs a permission",
        call="1.2.0",
        choices=["allow", "deny"],
        until=1_790_000_000_000,
        default="deny",
        pattern="write:docs/*",
    ),
    TurnFinished(turn=1, outcome="failed", reason="The model is overloaded.", problem=PROBLEM),
    ModelRequested(turn=1, step=2, attempt=1, model="demo", context_version=17),
    ModelResponded(
        turn=1,
        step=2,
        text="hi",
        thinking="hm",
        calls=[Call(call="1.2.0", tool="read", arguments='{"path": "a.txt"}')],
        finish_reason="tool_calls",
        usage=Usage(input_tokens=12, output_tokens=3),
        duration_ms=250,
        thinking_ms=180,
    ),
    ModelInterrupted(turn=1, step=2, text="h", thinking="", reason="stopped by cli"),
    ModelFailed(turn=1, step=2, problem=PROBLEM, text="h"),
    ToolCallStarted(turn=1, call="1.2.0", tool="read", effect="pure"),
    ToolCallFinished(turn=1, call="1.2.0", tool="read", outcome="unknown", output="…", duration_ms=7),
    NoteReceived(text="The background command 0123456789abcdef (make) ended as done: exit code 0.", task=ID),
    TurnBackgrounded(turn=1, task=ID, by=person("cli")),
    TaskStarted(
        task=ID,
        task_kind="process",
        title="make test",
        command="make test",
        cwd="/home/ann",
        by=person("cli"),
        argv=["make", "test"],
        session=ID,
        call="1.2.0",
        lifetime="until",
        until=1_790_000_000_000,
        notify=True,
        sandbox=SandboxSpec(writable=["/home/ann"], network=False, tmp="/home/ann/.holdfast/tmp/0123456789abcdef"),
    ),
    ProcessStarted(task=ID, pid=4711),
    TaskBackgrounded(task=ID, reason="it took longer than 120 s"),
    TaskLifetimeSet(task=ID, lifetime="persist", by=person("cli")),
    StaleListed(tasks=[ID], reasons=["serving not in use, and its session is archived"]),
    RunBound(card=CARD, run=2, cwd="/work", card_number=118),
    RunReleased(card=CARD, run=2, card_number=118),
    BoardCreated(board="default", title="Board", by=person("cli")),
    BoardPaused(board="default", by=person("web")),
    BoardResumed(board="default", by=person("web")),
    BoardArchived(board="default", by=person("web")),
    CardCreated(
        card=CARD,
        board="default",
        title="Release 1.2",
        body="say hi",
        by=person("cli"),
        status="todo",
        profile="coder",
        workspace="worktree:/home/ann/project",
        priority=5,
        parents=["0badcafe"],
        resume="auto",
        max_runtime_ms=3_600_000,
        max_attempts=2,
        session=ID,
        number=118,
    ),
    CardEdited(card=CARD, by=person("web"), title="Release 1.3", priority=1),
    CardCommented(card=CARD, comment="c1", text="blue\nplease", by=person("ann")),
    CardLinked(card=CARD, parent="0badcafe", by=person("cli")),
    CardUnlinked(card=CARD, parent="0badcafe", by=person("cli")),
    CardFollowed(card=CARD, session=ID, following=True, by=person("cli")),
    CardMoved(card=CARD, status="scheduled", reason="moved by cli", by=person("cli"), at=1_700_000_000_000),
    CardBlocked(
        card=CARD,
        block_kind="needs_input",
        reason="which colour?",
        by=RunActor(card="0a1b2c3d", run=1, card_number=118),
        run=1,
    ),
    CardUnblocked(card=CARD, by=person("web"), fresh=True, reason="web wants it tried again"),
    CardCompleted(
        card=CARD,
        summary="done",
        by=RunActor(card="0a1b2c3d", run=2, card_number=118),
        run=2,
        metadata={"tag": "v1.2"},
        artifacts=["dist/a.whl"],
    ),
    RunStarted(
        card=CARD,
        run=2,
        session=ID,
        task=ID,
        profile="coder",
        resumed_run=1,
        after_turn=3,
        workspace="/home/ann/.holdfast/workspaces/0a1b2c3d",
        workspace_state="a worktree, clean",
        fresh_reason="",
    ),
    RunAssigned(card=CARD, node="gpu"),
    RunReminded(card=CARD, run=2),
    RunHeartbeat(card=CARD, run=2, note="tests run"),
    RunFinished(
        card=CARD,
        run=2,
        outcome="failed",
        reason="The quota is used up.",
        failure="quota",
        uses_attempt=False,
        progress=True,
        retry_at=1_700_000_000_000,
        until_turn=4,
        unread_comments=["c2"],
    ),
    ResetPolicySet(policy=ResetPolicy(mode="idle", idle_minutes=30, max_postpone="1h"), by=person("web")),
    ResetPostponed(
        rule="idle",
        due_at=1_700_000_000_000,
        until=1_700_007_200_000,
        next_check=1_700_000_030_000,
        blockers=[
            Blocker(
                by="process",
                reason="process 1 pid 7 'make' working (cpu 71%), age 3 h 10 min",
                task=ID,
                pid=7,
                command="make -j8",
                age_ms=11_400_000,
                activity="working",
                evidence="cpu 71%",
            )
        ],
    ),
    ChapterOpened(
        chapter=2,
        rule="daily",
        reason="the daily hour has come (at_hour = 4)",
        by=THE_RESET_CLOCK,
        due_at=1_700_000_000_000,
        kept=[SURVIVOR],
        stopped=[msgspec.structs.replace(SURVIVOR, rule="its lifetime is the chapter")],
        hand_over="We were about to release 1.2.",
        hand_over_from="model",
        notify=False,
    ),
    ChapterRejoined(chapter=2, by=person("web")),
    SummaryRequested(instructions="keep the file names", by=person("cli")),
    ToolResultsTrimmed(
        covers_turn=8,
        covers_step=12,
        above=400,
        keep=0,
        results=31,
        tokens_before=104_000,
        tokens_after=48_000,
        reason="the context has about 104000 tokens, over 100000",
    ),
    SummaryStarted(covers_turn=7, attempt=1, model="demo", tokens=120_000, reason="over 100000"),
    SummaryWritten(
        covers_turn=7,
        summary="They want a release.",
        source="model",
        model="demo",
        tokens_before=120_000,
        tokens_after=9_000,
        reason="over 100000",
        usage=Usage(input_tokens=90_000, output_tokens=400, cost=0.25),
        duration_ms=4_000,
    ),
    SummaryFailed(covers_turn=7, attempt=2, problem=PROBLEM, retry_at=1_700_000_000_000),
    TaskResumed(task=ID, turn=2),
    TaskStopRequested(task=ID, by=person("cli"), reason="by force", force=True),
    TaskPinned(task=ID, pinned=True, by=person("cli")),
    TaskTellSet(task=ID, tell="never", by=person("cli")),
    TaskFinished(
        task=ID,
        outcome="stopped",
        reason="stopped by cli (by force): killed by SIGKILL",
        end=CommandKilled(signal="SIGKILL", evidence="recorded by its keeper"),
        output_bytes=6_000_000,
        dropped_bytes=800_000,
        preview="test 41 …",
        files=["a.txt"],
        survivors=["4712 sleep"],
    ),
    TaskPruned(task=ID, title="make test", state="stopped", bytes=5_200_000, by=person("cli")),
    AgentAttached(
        task="ab" * 8,
        number=2,
        agent="claude",
        version="2.1.0",
        remote="0b5e",
        how="resume",
        chapter=1,
        context="unproven",
        prompt=2001,
        reason="it does not list the session",
        steers=True,
        version_before="2.0.9",
    ),
    SessionAdopted(
        agent="codex",
        remote="01a1ed85-7d8b-74b2-ad0c-6edcda7bc361",
        file="/home/me/.codex/sessions/2026/11/18/rollout.jsonl",
        turns=12,
        by=person("cli"),
        left_out=3,
        unreadable=1,
        used=Usage(input_tokens=2_200, output_tokens=140),
    ),
    AgentPlanned(turn=2, entries=[PlanEntry(text="read the tests", state="in_progress")]),
    DriverOutputRead(
        task="ab" * 8,
        offset=4_096,
        owed=[
            OwedRequest(id="7", call="2-a", reason="allow rm?", options={"allow": "once", "deny": "no"}),
            OwedRequest(
                id="8",
                call="2-form-8",
                reason="Which colour?",
                options={},
                is_form=True,
                fields=[AskedField(name="a", kind="choice", text="Colour", options={"Red": "r"}, other="a_custom")],
                until=1_700_000_000_000,
            ),
        ],
        prompt=2001,
        steering=["c9"],
    ),
    GatewayStarted(pid=4711, version="0.1.0", boot="b7d1"),
    GatewayStopped(pid=4711, reason="SIGTERM"),
    NodeDrained(node="gpu"),
    NodeEnded(node="gpu", reason="it did not renew its life in time", heard_at=1_700_000_000_000),
    SessionDeleted(session=ID, title="say hi", events=42, by=person("cli")),
]
COMMANDS: list[AnyCommand] = [
    AdoptSession(session="01a1ed85", profile="codex", anyway=True),
    CreateSession(text="say hi", profile="demo", cwd="/home/ann", title="first"),
    SendMessage(text="and now?", mode="interrupt"),
    ReviseInput(input="c1", text="and then?", mode="steer", place=1),
    WithdrawInput(input="c1"),
    StopTurn(),
    AnswerWait(wait="0a1b2c3d4e5f", answer="deny", note="not today"),
    ChooseAgent(profile="coder", model="openai:gpt"),
    ChooseMode(mode="ask"),
    ChooseNode(node="gpu"),
    UndoTurn(),
    RepeatTurn(turn=2, text="say it better"),
    DismissFailure(),
    ForkSession(version=12, title="another way"),
    RenameSession(title="second"),
    ArchiveSession(running="stop"),
    RestoreSession(),
    PinSession(pinned=False),
    SetSessionTell(tell="never"),
    DeleteSession(running="keep"),
    DetachTurn(),
    ResetSession(running="keep", note=True),
    CreateBoard(board="default", title="Board"),
    PauseBoard(),
    ResumeBoard(),
    ArchiveBoard(),
    CreateCard(title="Release 1.2", body="say hi", profile="coder", parents=["0badcafe"], at=1_700_000_000_000),
    EditCard(title="Release 1.3", resume="fresh"),
    CommentCard(text="blue"),
    LinkCard(parent="0badcafe"),
    UnlinkCard(parent="0badcafe"),
    FollowCard(session=ID),
    MoveCard(status="ready"),
    BlockCard(reason="which colour?", kind="dependency"),
    UnblockCard(text="blue", fresh=True),
    RetryCard(text="again"),
    StopCard(reason="too long"),
    CompleteCard(summary="done"),
    ArchiveCard(),
    UndoReset(),
    SetResetPolicy(policy=ResetPolicy(mode="both", at_hour=3, timezone="Europe/Berlin")),
    CompactSession(instructions="keep the file names"),
    StartCommand(
        argv=["make", "test"],
        name="tests",
        cwd="/home/ann",
        env={"PATH": "/bin"},
        lifetime="until",
        until=1_790_000_000_000,
        session=ID,
        notify=True,
        stdin=True,
    ),
    StartAgent(prompt="say hi", profile="demo", cwd="/home/ann", title="greet", session=ID, notify=True),
    RerunTask(env={"PATH": "/bin"}),
    StopTask(force=True),
    WriteTask(text="yes\n", close=True),
    PinTask(pinned=False),
    SetTaskTell(tell="always"),
    PruneTasks(older_than_ms=604_800_000, larger_than=1_000_000, keep_last=10, state="done", confirm=True),
]
RECORD = Record(seq=1234, stream=f"session/{ID}", version=5, at=1_790_000_000_000, event=EVENTS[6])

Example = AnyEvent | AnyCommand | Record


def golden(example: Example) -> Path:
    room = "commands" if isinstance(example, AnyCommand) else "events"
    return GOLDEN / room / f"{type(example).__name__}.json"


def encoded(example: Example) -> bytes:
    return msgspec.json.encode(example) if isinstance(example, AnyCommand | Record) else encode(example)


def read(data: bytes, example: Example) -> object:
    """As the union that it belongs to."""
    shape = AnyCommand if isinstance(example, AnyCommand) else Record if isinstance(example, Record) else AnyEvent
    return msgspec.json.decode(data, type=shape)


def name(example: Example) -> str:
    return type(example).__name__


EXAMPLES: list[Example] = [*EVENTS, *COMMANDS, RECORD]


@pytest.fixture(params=EXAMPLES, ids=name)
def example(request: pytest.FixtureRequest) -> Example:
    found: Example = request.param
    if request.config.getoption("--regenerate"):
        golden(found).write_bytes(encoded(found) + b"\n")
    return found


def test_it_is_written_as_these_bytes(example: Example) -> None:
    assert encoded(example) + b"\n" == golden(example).read_bytes()


def test_these_bytes_are_read_as_it(example: Example) -> None:
    assert read(golden(example).read_bytes(), example) == example


def test_a_stored_line_is_read_alone_and_among_others() -> None:
    line = golden(RECORD).read_bytes()
    assert decode(line) == RECORD
    assert decode_many([line, line]) == [RECORD, RECORD]


def test_every_kind_has_an_example_and_every_file_belongs_to_a_kind() -> None:
    classes = {*get_args(AnyEvent), *get_args(AnyCommand), Record}
    assert {type(example) for example in EXAMPLES} == classes
    assert {path for room in ("events", "commands") for path in (GOLDEN / room).iterdir()} == set(map(golden, EXAMPLES))


def test_a_field_that_nobody_knows_is_refused(example: Example) -> None:
    body = golden(example).read_bytes().rstrip()[:-1]
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        read(body + b',"surprise":1}', example)


def fields() -> list[str]:
    """What each field may be, and what it is when it is left out: by an older version, or by a client."""
    _, structs = msgspec.json.schema_components([AnyEvent, AnyCommand])
    lines = []
    for name, struct in sorted(structs.items()):
        for field, shape in struct["properties"].items():
            shape.pop("discriminator", None)  # it names the members of a union once more
            required = " required" if field in struct["required"] else ""
            lines.append(f"{name}.{field}{required} {msgspec.json.encode(shape, order='sorted').decode()}")
    return lines


def test_every_field_has_the_limits_and_the_default_that_it_had(request: pytest.FixtureRequest) -> None:
    path = GOLDEN / "fields.txt"
    if request.config.getoption("--regenerate"):
        path.write_text("\n".join(fields()) + "\n")
    assert fields() == path.read_text().splitlines(), "if it is meant: --regenerate"
