"""A gateway that knows the homes of the real agents of a test: `agent_gateway.py HOME PORT OPTIONS DIRECTORY`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.e2e.serve import main

if __name__ == "__main__":
    directory = Path(sys.argv.pop())
    os.environ["CODEX_HOME"] = str(directory / "home-of-codex" / ".codex")
    os.environ["CLAUDE_CONFIG_DIR"] = str(directory / "home-of-claude" / ".claude")
    sys.exit(main())
