"""A gateway that is started so many hours later: `late_gateway.py HOME PORT OPTIONS HOURS`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.e2e.serve import die_with_parent, options


def main() -> int:
    home, port, given, hours = sys.argv[1:]
    die_with_parent()
    from holdfast.app import serve
    from holdfast.config import Home

    now, uptime = time.time_ns, time.clock_gettime_ns
    time.time_ns = lambda: now() + 3600 * int(hours) * 10**9
    time.clock_gettime_ns = lambda clock: uptime(clock) + 3600 * int(hours) * 10**9
    return serve(Home(Path(home)), port=int(port) if port else None, background=True, timings=options(given).timings)


if __name__ == "__main__":
    sys.exit(main())
