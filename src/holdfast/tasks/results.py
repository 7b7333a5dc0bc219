"""The start and the result of a command, and the summary of its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from holdfast.domain.events.task import CommandExited, CommandKilled, CommandLost, TaskEnd, TaskOutcome
from holdfast.domain.task import PREVIEW, command_outcome
from holdfast.processes.command import CommandState, Ended, Lost, NeverStarted, Running
from holdfast.processes.spool import OutputFile
from holdfast.processes.supervisor import Supervisor
from holdfast.secrets import Mask
from holdfast.store.rows import TaskRow
from holdfast.tasks.plain_text import plain
from holdfast.tasks.views import signal_name, stopper

PREVIEW_BYTES = 4096


def unwritten_pid(row: TaskRow, found: CommandState, supervisor: Supervisor) -> int | None:
    """Return the process of a command that has begun, unless the log has it."""
    if row.pid is not None or isinstance(found, NeverStarted):
        return None
    return found.pid if isinstance(found, Running) else supervisor.pid(found.id)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended: outcome, reason, evidence and time."""

    outcome: TaskOutcome
    reason: str
    end: TaskEnd
    ended_at: int | None
    """None when no keeper recorded it."""


def command_result(row: TaskRow, end: Ended | Lost, *, output_problem: str) -> CommandResult:
    """Return the result of a command that had started."""
    stopped = f"stopped by {stopper(row)}" if row.stop_by else ""
    code, name, at, lost, evidence = None, "", None, "", ""
    match end:
        case Ended():
            code, name = end.code, "" if end.signal is None else signal_name(end.signal)
            evidence = f"recorded by its {end.by}"
            at = None if end.finished_at is None else int(end.finished_at * 1000)
        case Lost():
            evidence = lost = end.evidence
        case _ as never:
            assert_never(never)
    if output_problem:
        evidence += f"; {output_problem}"
    outcome, reason = command_outcome(code=code, signal=name, lost=lost, stopped=stopped)
    return CommandResult(outcome, reason, _end(code, name, evidence), at)


def _end(code: int | None, signal: str, evidence: str) -> TaskEnd:
    if signal:
        return CommandKilled(signal=signal, evidence=evidence)
    return CommandLost(evidence=evidence) if code is None else CommandExited(code=code, evidence=evidence)


@dataclass(frozen=True, slots=True)
class OutputSummary:
    """The part of an output that is stored with the end of its task."""

    size: int
    dropped: int
    preview: str
    """Its last lines."""


def summarise_output(output: OutputFile, mask: Mask) -> OutputSummary:
    """Read the output of an ended command. Blocks."""
    size = output.size()
    return OutputSummary(
        size=size,
        dropped=output.read(output.head, 1).dropped if size > output.head else 0,
        preview=mask(plain(output.tail(3, PREVIEW_BYTES).data)).strip()[-PREVIEW:],
    )
