"""Starts a gateway as `holdfast serve` does. Constants may be made smaller where a test would wait too long:

python serve.py HOME PORT '{"holdfast.gateway.connections.UNAUTHENTICATED_SECONDS": 0.5}'
"""

from __future__ import annotations

import ctypes
import importlib
import json
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """A test that is killed leaves no gateway behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def set_constants(given: str) -> None:
    for name, value in json.loads(given).items():
        module, _, constant = name.rpartition(".")
        owner = importlib.import_module(module)
        if not hasattr(owner, constant):
            raise SystemExit(f"there is no constant {name}")
        setattr(owner, constant, value)


def main() -> int:
    home, port, constants = sys.argv[1:]
    die_with_parent()
    set_constants(constants)
    from holdfast.app import serve
    from holdfast.config import Home

    return serve(Home(Path(home)), port=int(port) if port else None, background=True)


if __name__ == "__main__":
    sys.exit(main())
