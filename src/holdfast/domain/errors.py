"""The error tree. The class says who must act; the message says what to do next.

HoldfastError
├── Rejected        the caller's fault: the same request fails again
│   ├── NotFound    there is no such thing (or the prefix fits nothing)
│   ├── Gone        it was here and was deleted on request
│   ├── TooLarge    over a stated limit
│   └── Unauthorized  the credential is not valid, or no longer
├── Conflict        lost a race or contradicts an earlier command
│   ├── VersionConflict  a stream has changed since it was read: read it again and decide again
│   ├── Fenced      a later worker holds the lease: stop working
│   └── HeldElsewhere  another node has the lease: leave the work to it
├── Unavailable     may be retried: disk full, shutting down
│   ├── NotReady    for a moment: it is starting, or another program keeps the database locked
│   ├── NodeAway    another node, which alone could do it, does not answer
│   └── LostDuty    another node does this for all of them by now: leave it to that one
└── Corrupt         stored bytes do not match their checksum, or this version cannot read them: the stream stops here
"""

from __future__ import annotations


class HoldfastError(Exception):
    """Base of every error that Holdfast raises on purpose."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Rejected(HoldfastError):
    """The request is wrong and will be wrong again."""


class NotFound(Rejected):
    """There is no such thing."""


class Gone(Rejected):
    """It existed and was deleted on request."""


class TooLarge(Rejected):
    """The request is over a stated limit."""


class Unauthorized(Rejected):
    """The credential is not valid, or no longer."""


class Conflict(HoldfastError):
    """Another write was first, or an earlier command contradicts this one."""


class VersionConflict(Conflict):
    """A stream does not end at the version that the write was decided on."""


class Fenced(Conflict):
    """A later worker holds the lease of this stream."""


class HeldElsewhere(Conflict):
    """Another node has the lease of this stream."""


class Unavailable(HoldfastError):
    """It may work later; nothing was stored."""

    def __init__(self, message: str, *, hint: str = "", retry_after: int = 5) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class NotReady(Unavailable):
    """It will work in a moment; nothing was stored."""

    def __init__(self, message: str, *, hint: str = "", retry_after: int = 1) -> None:
        super().__init__(message, hint=hint, retry_after=retry_after)


class NodeAway(Unavailable):
    """Another node, which alone could do it, does not answer."""


class LostDuty(Unavailable):
    """Another node has the duty that this was part of; nothing was stored."""


class Corrupt(HoldfastError):
    """Stored bytes do not match their checksum, or this version cannot read them."""
