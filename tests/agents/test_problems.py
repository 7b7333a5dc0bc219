"""What errors of agents mean. The messages are those that real agents sent when their model refused them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.runtime.external.acp.lines import error_problem
from holdfast.runtime.external.acp.protocol import RpcError
from holdfast.runtime.external.configuration import ExternalCommand
from holdfast.runtime.external.out_of_memory import MemoryKills, out_of_memory
from holdfast.runtime.external.problems import reset_time
from holdfast.store.rows import TaskRow

NOW = int(datetime(2026, 11, 18, 4, 0, tzinfo=UTC).timestamp() * 1000)
HOUR = 3_600_000
CODEX = "You've hit your usage limit. Visit https://example.org/usage to purchase more credits or try again at 5:59 AM."


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RpcError(code=-32000, message="Authentication required"), "agent_login"),  # claude, codex, kimi
        (RpcError(code=-32603, message="Internal error", data={"details": "401 Invalid key"}), "agent_login"),  # qwen
        (
            RpcError(code=-32603, message="Internal error: Invalid authentication credentials"),
            "agent_login",
        ),  # opencode
        (RpcError(code=401, message='{"error": {"code": "invalid_api_key"}}'), "agent_login"),  # gemini
        (RpcError(code=-32603, message="x", data={"errorKind": "authentication_failed"}), "agent_login"),
        (RpcError(code=429, message="You have exhausted your daily quota on this model."), "quota"),  # gemini
        (RpcError(code=-32603, message="API Error: Request rejected (429)", data={"errorKind": "rate_limit"}), "quota"),
        (RpcError(code=-32603, message="Internal error", data={"message": CODEX}), "quota"),
        (RpcError(code=-32603, message="x", data={"codexErrorInfo": "usageLimitExceeded"}), "quota"),
        (RpcError(code=-32603, message="Internal error"), "agent_failed"),
        (RpcError(code=-32603, message="the file a401b has 4290 lines"), "agent_failed"),
    ],
)
def test_what_an_error_means(error: RpcError, code: str) -> None:
    agent = ExternalCommand(name="codex", argv=("codex",), login="codex login")
    problem = error_problem(error, agent, now=NOW)
    assert problem.code == code
    if code == "agent_login":
        assert problem.hint == "Log in: `codex login`"


@pytest.mark.parametrize(
    ("said", "hours"),
    [
        (CODEX, 2 - 1 / 60),
        ("try again at 3:30 AM", 23.5),
        ("or try again at Nov 20th, 2026 4:00 PM.", 60),
        ("resets at 7pm (UTC)", 15),
        ("You've hit your limit · resets 6am (UTC)", 2),
        ("Claude AI usage limit reached|1795006800", None),
        ("Please retry in 7200s.", 2),
        ("try again in 2 hours and 30 minutes", 2.5),
        ("try again in 1 day 1h", 25),
        ("retry after 3600 seconds", 1),
        ("until 2026-11-18T05:00:00Z", 1),
        ("try again later", None),
        ("try again at 99 PM", None),
        ("resets at Feb 31st 4 PM", None),
        ("retry in 99999d", None),
        ("it reset at 2020-01-01T00:00:00Z", None),
    ],
)
def test_when_a_quota_resets(said: str, hours: float | None) -> None:
    found = reset_time(said, now=NOW, zone=UTC)
    if "|" in said:
        assert found == 1795006800000
    else:
        assert found == (None if hours is None else NOW + round(hours * HOUR))


def ended(**fields: Any) -> TaskRow:
    row = TaskRow("t", "process", "", "", [], "/", "", "", "", "", False, "persist", None, False, 0, 1)
    return replace(row, state="failed", reason="how it ended", **fields)


@pytest.mark.parametrize(
    ("end", "said", "killed", "expected"),
    [
        ({"signal": "SIGKILL"}, "", 1, "out of memory: the kernel"),
        ({"exit_code": 137}, "", 2, "out of memory: the kernel"),
        ({"signal": "SIGKILL"}, "", None, "perhaps for lack of memory"),
        ({"signal": "SIGKILL"}, "", 0, ""),
        (
            {"signal": "SIGABRT"},
            "FATAL ERROR: JavaScript heap out of memory\n 1: 0xb",
            0,
            "out of memory, as it reported",
        ),
        ({"exit_code": 1}, "Error: no such file", 5, ""),
        ({"signal": "SIGKILL", "stop_by": "you"}, "", 1, ""),
    ],
)
def test_lack_of_memory_is_said_with_its_evidence(
    end: dict[str, Any], said: str, killed: int | None, expected: str
) -> None:
    found = out_of_memory(ended(**end), said, killed=killed)
    assert found.startswith(expected) or expected in found if expected else found == ""


def test_processes_that_the_kernel_killed_are_counted(tmp_path: Path) -> None:
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("nr_free_pages 5\noom_kill 3\n")
    kills = MemoryKills(vmstat)
    assert kills.new() == 0
    vmstat.write_text("nr_free_pages 5\noom_kill 4\n")
    assert kills.new() == 1
    vmstat.unlink()
    assert kills.new() is None
