"""How a command can end, and the exit code of each.

0 is good. 1 failed, 2 usage, 3 the gateway cannot be reached, 4 not found, 5 conflict, 124 the time was over (as with
`timeout`), 130 interrupted.
"""

from __future__ import annotations

from holdfast.domain.errors import Conflict, HoldfastError

FAILED = 1
USAGE = 2
UNREACHABLE = 3
NOT_FOUND = 4
CONFLICT = 5
TIMED_OUT = 124
INTERRUPTED = 130


class CliError(HoldfastError):
    """Ends the command with a message, a hint and an exit code."""

    def __init__(self, message: str, *, hint: str = "", code: int = FAILED) -> None:
        super().__init__(message, hint=hint)
        self.code = code


def exit_code(error: HoldfastError) -> int:
    """The exit code of a command that ended with this error."""
    if isinstance(error, CliError):
        return error.code
    from holdfast.client.errors import ApiError, ConnectionLost, GatewayAway, GatewayNotRunning, StartFailed

    match error:
        case ApiError(status=400 | 413):
            return USAGE
        case ApiError(status=409) | Conflict():
            return CONFLICT
        case ApiError(is_not_found=True):
            return NOT_FOUND
        case GatewayNotRunning() | ConnectionLost() | GatewayAway():
            return UNREACHABLE
        case StartFailed(exit_code=code):
            return code if code in (FAILED, USAGE) else UNREACHABLE
        case _:
            return FAILED
