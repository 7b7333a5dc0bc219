"""Ages in awake time: laptops that sleep, clocks that are set, both at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.lifecycle.awake_clock import AwakeClock

SECOND = 1_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR


@dataclass
class Laptop:
    """Three clocks: awake, since the boot, on the wall."""

    monotonic: float = 100.0
    boot: float = 100.0
    wall: int = 1_000 * DAY
    awake: AwakeClock = field(init=False)

    def __post_init__(self) -> None:
        self.awake = AwakeClock(lambda: self.monotonic, lambda: self.boot)

    def run(self, ms: int, *, every: int = 10 * SECOND, key: tuple[object, int] | None = None) -> int:
        """Awake for so long, with a look every few seconds; the age of the key in the end."""
        age = 0
        while ms > 0:
            step = min(every, ms)
            self._pass(step, awake=True)
            self.awake.tick(self.wall)
            age = self.awake.age(*key) if key is not None else 0
            ms -= step
        return age

    def sleep(self, ms: int) -> None:
        self._pass(ms, awake=False)

    def _pass(self, ms: int, *, awake: bool) -> None:
        self.monotonic += ms / 1000 if awake else 0
        self.boot += ms / 1000
        self.wall += ms


def test_time_asleep_does_not_count_as_age() -> None:
    laptop = Laptop()
    laptop.run(60 * SECOND)
    key = ("a", laptop.wall)
    assert laptop.run(HOUR, key=key) == HOUR
    laptop.sleep(8 * HOUR)
    assert laptop.awake.tick(laptop.wall) is True
    assert laptop.awake.age(*key) == HOUR
    assert laptop.awake.lost(laptop.wall - 9 * HOUR) == 8 * HOUR
    assert laptop.awake.lost(laptop.wall) == 0
    assert laptop.run(HOUR, key=key) == 2 * HOUR


@pytest.mark.parametrize("jump", [DAY, -DAY, HOUR, -HOUR])
def test_a_clock_that_is_set_makes_nobody_older_or_younger(jump: int) -> None:
    laptop = Laptop()
    laptop.run(60 * SECOND)
    since = laptop.wall
    key = ("a", since)
    laptop.run(2 * HOUR, key=key)
    started = since - 3 * DAY
    laptop.wall += jump
    assert laptop.run(10 * SECOND, key=key) == 2 * HOUR + 10 * SECOND
    true_age = 3 * DAY + 2 * HOUR + 10 * SECOND
    assert laptop.wall - started - laptop.awake.lost(started) == true_age, "the age of a command, too"
    assert laptop.run(HOUR, key=key) == 3 * HOUR + 10 * SECOND
    laptop.wall -= jump
    assert laptop.run(10 * SECOND, key=key) == 3 * HOUR + 20 * SECOND
    assert laptop.wall - started - laptop.awake.lost(started) == 3 * DAY + 3 * HOUR + 20 * SECOND


def test_what_is_new_after_a_jump_is_not_a_day_old() -> None:
    """The person spoke just before the clock was set, and nobody had looked in between."""
    laptop = Laptop()
    laptop.run(60 * SECOND)
    since = laptop.wall + 3 * SECOND
    laptop.wall += DAY
    assert laptop.run(10 * SECOND, key=("a", since)) <= 10 * SECOND


def test_across_a_restart_the_wall_clock_is_believed() -> None:
    laptop = Laptop()
    since = laptop.wall - 5 * HOUR
    laptop.awake.tick(laptop.wall)
    assert laptop.awake.age("a", since) == 5 * HOUR


def test_looking_before_the_first_round_or_between_two_changes_nothing() -> None:
    """Somebody asks `why` while the gateway starts."""
    laptop = Laptop()
    since = laptop.wall - 5 * HOUR
    assert laptop.awake.about("a", since, laptop.wall) == 5 * HOUR
    laptop.awake.tick(laptop.wall)
    assert laptop.awake.age("a", since) == 5 * HOUR
    laptop._pass(4 * SECOND, awake=True)
    born = laptop.wall
    assert laptop.awake.about("b", born, laptop.wall) == 0
    laptop._pass(6 * SECOND, awake=True)
    laptop.awake.tick(laptop.wall)
    assert laptop.awake.age("b", born) == 6 * SECOND, "not a moment older than it is"
    assert laptop.awake.about("a", since, laptop.wall) == 5 * HOUR + 10 * SECOND


steps = st.lists(
    st.tuples(st.sampled_from(["run", "sleep", "set"]), st.integers(-2 * DAY, 2 * DAY)), min_size=1, max_size=20
)


@given(steps)
def test_the_age_is_the_time_awake_whatever_happens(script: list[tuple[str, int]]) -> None:
    laptop = Laptop()
    laptop.awake.tick(laptop.wall)
    key, awake = ("a", laptop.wall), 0
    laptop.awake.age(*key)
    for what, ms in script:
        if what == "run":
            laptop.run(abs(ms) % HOUR, every=10 * SECOND, key=key)
            awake += abs(ms) % HOUR
        elif what == "sleep":
            laptop.sleep(abs(ms))
        else:
            laptop.wall += ms
    laptop.awake.tick(laptop.wall)
    assert abs(laptop.awake.age(*key) - awake) <= len(script)
