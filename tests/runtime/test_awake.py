"""Ages in time that the machine was awake, also between two looks."""

from __future__ import annotations

from holdfast.lifecycle.awake import Awake


class Machine:
    """Two clocks that a test moves."""

    def __init__(self) -> None:
        self.awake = 100.0
        self.boot = 100.0

    def pass_(self, seconds: float, *, asleep: float = 0.0) -> None:
        self.awake += seconds
        self.boot += seconds + asleep

    @property
    def ages(self) -> Awake:
        return Awake(lambda: self.awake, lambda: self.boot)


def test_time_goes_on_between_two_looks() -> None:
    machine = Machine()
    ages = machine.ages
    ages.look(1_000_000)
    assert ages.age("fresh", 999_000) == 1_000
    machine.pass_(7)
    assert ages.age("fresh", 999_000) == 8_000
    assert ages.elapsed(999_000) == 8_000


def test_sleep_between_two_looks_does_not_count() -> None:
    machine = Machine()
    ages = machine.ages
    ages.look(1_000_000)
    assert ages.age("fresh", 999_000) == 1_000
    machine.pass_(2, asleep=3_600)
    assert ages.age("fresh", 999_000) == 3_000
    assert ages.elapsed(999_000) == 3_000
    ages.look(1_000_000 + 3_602_000)
    assert ages.age("fresh", 999_000) == 3_000
    assert ages.elapsed(999_000) == 3_000
