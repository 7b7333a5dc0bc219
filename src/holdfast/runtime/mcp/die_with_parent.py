"""Starts a command that does not outlive the gateway, even if that is killed with -9.

Run as a script, standard library only: it asks the kernel for a SIGTERM at the death of its parent, which
stays in force when it then becomes the command.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import sys

PR_SET_PDEATHSIG = 1
NOT_FOUND = 127


def main() -> int:
    """The parent's pid, then the command."""
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it died before we asked
        return NOT_FOUND
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        # a directory of PATH that is closed to us says nothing about the command
        missing = isinstance(error, PermissionError) and shutil.which(command[0], mode=os.F_OK) is None
        print(f"{command[0]}: {os.strerror(errno.ENOENT) if missing else error.strerror}", file=sys.stderr)  # noqa: T201
    return NOT_FOUND


if __name__ == "__main__":
    sys.exit(main())
