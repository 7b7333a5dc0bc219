"""The number of files that the gateway may have open: as many as it can get; commands get what it was started with."""

from __future__ import annotations

import resource

INHERITED = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
"""The limit that this process was started with. Commands start with it: some programs cannot cope with a large one."""
ENOUGH = 65_536


def raise_limit() -> int:
    """Raise the limit to the hard limit, but no further than is useful; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft == resource.RLIM_INFINITY or wanted <= soft:
        return ENOUGH if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def restore_limit() -> None:
    """Restore the inherited limit, before a restart of the program raises it again."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (INHERITED, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
