"""The seed of what is random in a test: printed, so that a failure can be replayed with HOLDFAST_SEED."""

from __future__ import annotations

import os
from random import SystemRandom


def new_seed() -> int:
    seed = int(os.environ.get("HOLDFAST_SEED") or SystemRandom().randrange(2**32))
    print(f"\nreplay with HOLDFAST_SEED={seed}")
    return seed
