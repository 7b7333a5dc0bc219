"""An agent tries to write what git would run, with the tools `write` and `edit`, by every name that leads there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from holdfast.domain.events.parts import RightsLayer
from holdfast.domain.next_step import TurnLimits
from holdfast.domain.session import Session
from holdfast.models.demo import DemoModel
from holdfast.runtime.agents import Agent
from holdfast.runtime.tools import EDIT, WRITE
from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.settings import Policy

EVIL = "[core]\nfsmonitor = touch ran\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    context = tmp_path / "project"
    for words in (["init", str(context)], ["init", "--bare", str(context / "bare")]):
        subprocess.run(["git", *words], check=True, env={"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null"})
    (context / "link").symlink_to(".git")
    (context / "file-link").symlink_to(".git/config")
    (context / "linked-worktree").mkdir()
    (context / "linked-worktree" / "HEAD").write_text("ref: refs/heads/main\n")
    (context / "linked-worktree" / "commondir").write_text("../.git\n")
    (context / "half" / "objects").mkdir(parents=True)
    (context / "half" / "refs").mkdir()
    (context / "sub").mkdir()
    return context


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git/hooks/post-checkout",
        ".GIT/config",
        "sub/../.git/config",
        "link/config",
        "link/hooks/post-checkout",
        "file-link",
        "sub/.git",
        "sub/.git/config",
        "bare/config",
        "bare/hooks/post-checkout",
        "linked-worktree/config.worktree",
        "half/HEAD",
    ],
)
async def test_a_file_tool_does_not_write_what_git_runs(project: Path, path: str) -> None:
    context = ToolContext(project)
    result = await WRITE.call(context, json.dumps({"path": path, "content": EVIL}))
    assert result.outcome == "failed" and "belongs to git" in result.output
    with pytest.raises(ToolFailed, match="belongs to git"):  # so nobody is asked about it either
        WRITE.subject(context, json.dumps({"path": path, "content": EVIL}))
    target = project / path
    if target.is_file():
        old = target.read_text()
        result = await EDIT.call(context, json.dumps({"path": path, "old": old, "new": EVIL}))
        assert result.outcome == "failed" and "belongs to git" in result.output
        assert target.read_text() == old
    else:
        assert not target.exists()


@pytest.mark.parametrize("path", [".gitignore", "sub/.gitattributes", ".github/workflows/ci.yml", "HEAD", "refs/x"])
async def test_other_files_can_be_written(project: Path, path: str) -> None:
    result = await WRITE.call(ToolContext(project), json.dumps({"path": path, "content": "x"}))
    assert result.outcome == "done", result.output


@pytest.mark.parametrize(
    ("rules", "path", "done"),
    [
        ({"write:.git/**": "allow"}, ".git/config", True),
        ({"write:.git/info/*": "ask"}, ".git/info/exclude", True),
        ({"write:.git/info/*": "ask"}, ".git/config", False),
        ({"edit:.git/**": "allow"}, ".git/config", False),
        ({"write:.git/**": "deny"}, ".git/config", False),
        ({"write": "allow", "*": "allow"}, ".git/config", False),
    ],
)
async def test_a_rule_that_names_it_opens_it(project: Path, rules: dict[str, Policy], path: str, done: bool) -> None:
    agent = Agent(DemoModel(), TurnLimits(), rules=rules)
    context = agent.tool_context(Session("0", cwd=str(project)))
    result = await WRITE.call(context, json.dumps({"path": path, "content": "x"}))
    assert (result.outcome == "done") is done, result.output


async def test_a_rule_of_its_own_does_not_open_what_its_creator_could_not_write(project: Path) -> None:
    creator = RightsLayer(profile="creator", rules={"write": "allow"}, paths=[str(project)])
    agent = Agent(DemoModel(), TurnLimits(), rules={"write:.git/**": "allow"}, ancestors=(creator,))
    context = agent.tool_context(Session("0", cwd=str(project)))
    result = await WRITE.call(context, json.dumps({"path": ".git/config", "content": "x"}))
    assert result.outcome == "failed" and "belongs to git" in result.output
