"""What the events of boards, cards and runs do to the projections."""

from __future__ import annotations

from typing import assert_never

from holdfast.domain.events.card import (
    BoardArchived,
    BoardCreated,
    BoardEvent,
    BoardPaused,
    BoardResumed,
    CardBlocked,
    CardCommented,
    CardCompleted,
    CardCreated,
    CardEdited,
    CardEvent,
    CardFollowed,
    CardLinked,
    CardMoved,
    CardUnblocked,
    CardUnlinked,
    RunEvent,
    RunFinished,
    RunHeartbeat,
    RunReminded,
    RunStarted,
)

Change = tuple[str, dict[str, object]]


def of_board(event: BoardEvent, base: dict[str, object]) -> list[Change]:
    """The changes of one event of a board."""
    match event:
        case BoardCreated() as e:
            return [("create_board", base | {"board": e.board, "title": e.title})]
        case BoardPaused() as e:
            return [("pause_board", base | {"board": e.board, "by": str(e.by)})]
        case BoardResumed() as e:
            return [("resume_board", base | {"board": e.board})]
        case BoardArchived() as e:
            return [("archive_board", base | {"board": e.board})]
        case _ as never:
            assert_never(never)


def of_card(event: CardEvent, base: dict[str, object]) -> list[Change]:
    """The changes of one event, in order."""
    match event:
        case CardCreated() as e:
            row = {
                "board": e.board,
                "title": e.title,
                "profile": e.profile,
                "workspace": e.workspace,
                "priority": e.priority,
                "status": e.status,
                "by": str(e.by),
                "root": "" if e.rights is None else e.rights.ancestors[0],
            }
            links: list[Change] = [("link_card", {"parent": parent, "card": e.card}) for parent in e.parents]
            return [("create_card", base | row), *links]
        case CardEdited() as e:
            row = {"title": e.title, "profile": e.profile, "workspace": e.workspace, "priority": e.priority}
            return [("edit_card", base | row)]
        case CardCommented():
            return [("comment_card", base)]
        case CardLinked() as e:
            return [("touch_card", base), ("link_card", base | {"parent": e.parent})]
        case CardUnlinked() as e:
            return [("touch_card", base), ("unlink_card", base | {"parent": e.parent})]
        case CardFollowed():
            return [("touch_card", base)]
        case CardMoved() as e:
            return [_moved(base, e.status, e.reason, scheduled_at=e.at)]
        case CardBlocked() as e:
            return [_moved(base, "blocked", e.reason, kind=e.block_kind)]
        case CardCompleted() as e:
            return [_moved(base, "done", e.summary)]
        case CardUnblocked() as e:
            return [("unblock_card", base | {"reason": e.reason})]
        case run:
            return _of_run(run, base)


def _of_run(event: RunEvent, base: dict[str, object]) -> list[Change]:
    match event:
        case RunReminded():
            return [("touch_card", base)]
        case RunStarted() as e:
            run = {
                "run": e.run,
                "session": e.session,
                "task": e.task,
                "profile": e.profile,
                "resumes": e.resumed_run,
                "warning": e.fresh_reason,
                "workspace": e.workspace,
                "after_turn": e.after_turn,
            }
            return [("card_runs", base | run), ("start_run", base | run)]
        case RunHeartbeat() as e:
            return [("touch_card", base), ("note_run", base | {"run": e.run, "note": e.note})]
        case RunFinished() as e:
            end = {
                "run": e.run,
                "outcome": e.outcome,
                "failure": e.failure,
                "reason": e.reason,
                "counts": int(e.uses_attempt),
                "until_turn": e.until_turn,
                "again_at": e.retry_at,
            }
            return [("card_run_over", base | end), ("finish_run", base | end)]
        case _ as never:
            assert_never(never)


def _moved(
    base: dict[str, object], status: str, reason: str, *, kind: str = "", scheduled_at: int | None = None
) -> Change:
    return "move_card", base | {"status": status, "reason": reason, "block_kind": kind, "scheduled_at": scheduled_at}
