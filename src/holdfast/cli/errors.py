"""What can go wrong on the way to the gateway, and the exit code of each.

0 is good. 1 failed, 2 usage, 3 the gateway cannot be reached, 4 not found, 5 conflict, 124 the time was over (as with
`timeout`), 130 interrupted.
"""

from __future__ import annotations

FAILED = 1
USAGE = 2
UNREACHABLE = 3
NOT_FOUND = 4
CONFLICT = 5
TIMED_OUT = 124
INTERRUPTED = 130


class CliError(Exception):
    """Ends the command with a message, a hint and an exit code."""

    def __init__(self, message: str, *, hint: str = "", code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


class NotRunning(CliError):
    """Nobody listens, or somebody else does."""

    def __init__(self, home: object) -> None:
        super().__init__(f"No gateway is running in {home}.", hint="start it with `holdfast serve`.", code=UNREACHABLE)


class Lost(CliError):
    """The connection was cut, or the gateway is about to end: it may work again later."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="`holdfast status` shows whether it runs.", code=UNREACHABLE)


class Misunderstood(CliError):
    """An answer without something that this version expects."""

    def __init__(self, key: object) -> None:
        super().__init__(
            f"The answer of the gateway has no {key!r}: it may be of another version than this command line.",
            hint="`holdfast restart` starts the gateway of this version.",
        )


class NotAnswering(Lost):
    """The process of the gateway is there and answers nobody: it is stopped, or has far too much to do."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"The gateway (pid {pid}) does not answer.")
        self.hint = f"if it is stopped, `kill -CONT {pid}` lets it go on; what was asked may still be done then."


class Refused(CliError):
    """The gateway answered with an error."""

    def __init__(self, status: int, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint, code=_exit_code(status))
        self.status = status


def _exit_code(status: int) -> int:
    match status:
        case 400 | 413:
            return USAGE
        case 404 | 410:
            return NOT_FOUND
        case 409:
            return CONFLICT
        case _:
            return FAILED
