"""Whether this machine can build sandboxes; where HOLDFAST_SANDBOX=must is set, it has to."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

BUBBLEWRAP = ("bwrap", "--unshare-user", "--cap-drop", "ALL", "--new-session", "--ro-bind", "/", "/", "--dev", "/dev")
MUST = os.environ.get("HOLDFAST_SANDBOX") == "must"


def _problem() -> str:
    if shutil.which("bwrap") is None:
        return "bubblewrap (bwrap) is not installed"
    done = subprocess.run([*BUBBLEWRAP, "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


PROBLEM = _problem()
needs_bubblewrap = pytest.mark.skipif(bool(PROBLEM) and not MUST, reason=f"no sandbox here: {PROBLEM}")
