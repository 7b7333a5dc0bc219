"""A gateway with the token of a bot in its environment: `telegram_gateway.py HOME PORT OPTIONS TOKEN`."""

from __future__ import annotations

import os
import sys

from tests.e2e.serve import main

if __name__ == "__main__":
    os.environ["TELEGRAM_TOKEN"] = sys.argv.pop()
    sys.exit(main())
