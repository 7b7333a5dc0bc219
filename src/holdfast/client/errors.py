"""What can go wrong between a client and its gateway.

HoldfastError                   every error: a message and a hint
└── ClientError
    ├── GatewayNotRunning       nobody listens there, or somebody else does
    ├── ConnectionLost          the connection was cut, or the gateway is about to end: it may work again later
    │   └── GatewayNotAnswering its process is there and answers nobody
    ├── GatewayAway             it was waited for as long as the caller's patience lasted
    ├── StartFailed             a gateway could not be started
    ├── StopFailed              a gateway was asked to end and has not
    ├── ApiError                the gateway answered with an error: `status` is that of HTTP
    └── UnexpectedResponse      the gateway answered with something that this version does not know
"""

from __future__ import annotations

from holdfast.domain.errors import HoldfastError


class ClientError(HoldfastError):
    """Base of all errors between a client and its gateway."""


class GatewayNotRunning(ClientError):
    """Nobody listens, or somebody else does."""

    def __init__(self, home: object) -> None:
        super().__init__(
            f"No gateway is running in {home}.",
            hint="`holdfast restart` starts one in the background, `holdfast serve` in this terminal.",
        )


class ConnectionLost(ClientError):
    """The connection was cut, or the gateway is about to end: it may work again later."""

    def __init__(self, message: str, *, hint: str = "`holdfast status` shows whether it is running.") -> None:
        super().__init__(message, hint=hint)


class GatewayNotAnswering(ConnectionLost):
    """The process of the gateway is there and answers nobody: it is stopped, or has far too much to do."""

    def __init__(self, pid: int) -> None:
        super().__init__(
            f"The gateway (pid {pid}) does not answer.",
            hint=f"If it was suspended, `kill -CONT {pid}` continues it; it may then still carry out this command.",
        )


class GatewayAway(ClientError):
    """The gateway did not come back within the caller's patience; `resume` is the command that continues."""

    def __init__(self, seconds: float, *, resume: str = "") -> None:
        super().__init__(
            f"The gateway has been away for {seconds:.0f} s. Nothing is lost: commands keep running, and agents"
            " resume when it is back.",
            hint=f"`holdfast restart`, then {f'`{resume}`' if resume else 'repeat the command'}.",
        )


class StartFailed(ClientError):
    """A gateway could not be started; `exit_code` is that of its process, if it ended."""

    def __init__(self, message: str, *, hint: str = "", exit_code: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


class StopFailed(ClientError):
    """A gateway was asked to end and has not."""


class ApiError(ClientError):
    """The gateway answered with an error."""

    def __init__(self, status: int, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status

    @property
    def is_not_found(self) -> bool:
        """Whether it does not exist, or was deleted."""
        return self.status in (404, 410)


class UnexpectedResponse(ClientError):
    """The gateway answered with something that this version does not know."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            f"The answer of the gateway {detail}. Gateway and command line may have different versions.",
            hint="`holdfast restart` starts the gateway of this version.",
        )


class OtherVersion(UserWarning):
    """The gateway is of another version than its client."""
