"""What the rules of `[retention]` and a prune let go: ended tasks only, never a pinned one, each with its reason."""

from __future__ import annotations

import pytest

from holdfast.domain.events.task import TaskOutcome
from holdfast.lifecycle.retention import DAY_MS, outlived
from holdfast.settings import RetentionSettings
from holdfast.store.rows import EndedTask
from holdfast.tasks.prune import Prunable, Rule, chosen

NOW = 1_000 * DAY_MS


def ended(days: int, megabytes: int = 0, state: TaskOutcome = "done", dropped: int = 0) -> Prunable:
    row = EndedTask(
        id=f"{days:016x}",
        title="",
        state=state,
        version=2,
        finished_at=NOW - days * DAY_MS,
        output_bytes=(megabytes + dropped) * 1_000_000,
        dropped_bytes=dropped * 1_000_000,
    )
    return Prunable(row, megabytes * 1_000_000)


TASKS = [ended(1, 5), ended(2, 50, "failed"), ended(10, 1, dropped=900), ended(40, 30)]


@pytest.mark.parametrize(
    ("rules", "gone"),
    [
        (RetentionSettings(), {}),
        (RetentionSettings(tasks_days=10), {"tasks_days = 10": [10, 40]}),
        (RetentionSettings(tasks_count=3), {"tasks_count = 3": [40]}),
        (RetentionSettings(tasks_megabytes=56), {"tasks_megabytes = 56": [40]}),
        (RetentionSettings(tasks_days=30, tasks_count=1), {"tasks_count = 1": [2, 10], "tasks_days = 30": [40]}),
    ],
)
def test_each_task_is_deleted_by_the_first_rule_that_matches(
    rules: RetentionSettings, gone: dict[str, list[int]]
) -> None:
    found = outlived(TASKS, rules, now=NOW)
    assert {rule: [int(task.ended.id, 16) for task in tasks] for rule, tasks in found.items()} == gone


@pytest.mark.parametrize(
    ("rule", "gone"),
    [
        (Rule(), [1, 2, 10, 40]),
        (Rule(older_than_ms=2 * DAY_MS), [2, 10, 40]),
        (Rule(keep_last=3), [40]),
        (Rule(larger_than=5_000_000), [2, 40]),
        (Rule(state="failed"), [2]),
        (Rule(older_than_ms=5 * DAY_MS, larger_than=5_000_000), [40]),
        (Rule(keep_last=2, state="failed"), []),
    ],
)
def test_all_conditions_of_a_prune_must_hold(rule: Rule, gone: list[int]) -> None:
    assert [int(task.ended.id, 16) for task in chosen(TASKS, rule, now=NOW)] == gone
