"""An external agent in the sandbox: it stores its own sessions and reads its own log-in, and nothing else of the kind.

It must not read the Holdfast home, the keys or the log-ins of other agents, and must not write where another program,
or the same agent outside of the sandbox, would obey it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal

import pytest

from holdfast.domain.errors import Rejected
from holdfast.domain.events.task import AgentProcess, SandboxSpec, TaskStarted
from holdfast.external_agent_files import FILES
from holdfast.external_agents import CATALOGUE
from holdfast.profiles import Profiles
from holdfast.tasks.defaults import CommandDefaults
from holdfast.tasks.sandbox import SandboxPolicy
from tests.actors import person
from tests.attacks.test_sandbox_keeps_commands_in import WORD, Machine
from tests.bubblewrap import needs_bubblewrap
from tests.eventually import PATIENCE

ON = SandboxPolicy("on")


class AgentMachine(Machine):
    """A user with the log-ins of all agents."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for name, files in FILES.items():
            for path in (self.user / one for one in files.credentials):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"the log-in of {name}: {WORD}")

    def run_agent(self, name: str, command: str, *, session: str = "0123456789abcdef") -> str:
        policy = self.sandbox.for_agent(ON, FILES[name])
        spec = self.sandbox.spec(policy, workspace=self.project, own=None, session=session)
        assert isinstance(spec, SandboxSpec)
        words = [*self.sandbox.arguments(spec), "--chdir", str(self.project), "--", "/bin/sh", "-c", command]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
        print(f"$ {command}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> AgentMachine:
    return AgentMachine(tmp_path)


def test_the_files_of_every_agent_are_known() -> None:
    assert set(FILES) == set(CATALOGUE)
    for files in FILES.values():
        assert all(path.startswith(".") and ".." not in path for path in (*files.writes, *files.credentials))


@needs_bubblewrap
@pytest.mark.parametrize("name", FILES)
def test_an_agent_reads_its_own_log_in_and_no_other_key(machine: AgentMachine, name: str) -> None:
    others = [str(path) for path in machine.secrets]
    others += [
        str(machine.user / path) for other, files in FILES.items() if other != name for path in files.credentials
    ]
    everything = f"ls -R {machine.home}; find {machine.user} -type f -exec cat {{}} +"
    said = machine.run_agent(name, f"cat {' '.join(others)}; {everything}")
    assert f"the log-in of {name}: {WORD}" in said
    assert said.count(WORD) == len(FILES[name].credentials)


@needs_bubblewrap
@pytest.mark.parametrize("name", FILES)
def test_an_agent_stores_its_sessions_and_writes_nothing_else(machine: AgentMachine, name: str) -> None:
    for directory in FILES[name].writes:
        state = machine.user / directory / "state"
        machine.run_agent(name, f"mkdir -p {state} && echo kept > {state}/x")
        assert (machine.user / directory / "state" / "x").read_text() == "kept\n"
    foreign = [files.writes[0] for other, files in FILES.items() if other != name]
    targets = [machine.user / path for path in (*foreign, ".bashrc", ".claude.json", ".config/autostart")]
    machine.run_agent(name, "; ".join(f"mkdir -p {path}; echo bad > {path}; echo bad > {path}/x" for path in targets))
    machine.run_agent(name, f"echo bad > {machine.home}/config.toml; rm -rf {machine.home}/run")
    assert not [path for path in targets if path.is_file() or (path / "x").exists()]
    assert machine.secrets[0].read_text() == WORD and not (machine.home / "config.toml").exists()


@needs_bubblewrap
@pytest.mark.parametrize("name", FILES)
def test_an_agent_cannot_change_what_it_obeys_outside_of_the_sandbox(machine: AgentMachine, name: str) -> None:
    machine.run_agent(name, "true")  # what was not there is made, so that it can be closed
    before = {path: _content(machine.user / path) for path in FILES[name].programs}
    for path in (machine.user / one for one in before):
        machine.run_agent(
            name,
            f"echo bad > {path}; echo bad > {path}/bad; rm -rf {path}; mv {path} {path}.old; ln -sf /tmp/bad {path}; "
            f"mv {path.parent} {path.parent}.old; umount {path}; echo bad > {path}",
        )
    assert {path: _content(machine.user / path) for path in before} == before


def _content(path: Path) -> object:
    assert not path.is_symlink()
    return sorted(one.name for one in path.iterdir()) if path.is_dir() else path.read_text()


@needs_bubblewrap
def test_settings_that_are_a_link_cannot_be_closed_so_the_agent_is_refused(machine: AgentMachine) -> None:
    (machine.user / "dotfiles").write_text("{}")
    (machine.user / ".claude" / "settings.json").symlink_to(machine.user / "dotfiles")
    with pytest.raises(Rejected, match=r"settings\.json is a symbolic link"):
        machine.sandbox.for_agent(ON, FILES["claude"])


def confined(machine: AgentMachine, policy: SandboxPolicy, *, session: str = "a" * 16) -> TaskStarted:
    """The process of Claude Code in this session, as it is started."""
    defaults = CommandDefaults(machine.home, Profiles(machine.home / "config.toml"), 0o022, machine.sandbox)
    needs = AgentProcess(session=session, env={}, variables=[], piped=False)
    started = TaskStarted(
        task=session, task_kind="process", title="x", command="x", cwd="/", by=person("ann"), agent=needs
    )
    return defaults.confine(started, policy, workspace=machine.project, own=None, agent=FILES["claude"])


@needs_bubblewrap
def test_agents_of_two_sessions_do_not_see_the_temporary_files_of_each_other(machine: AgentMachine) -> None:
    found = [confined(machine, ON, session=letter * 16).sandbox for letter in "ab"]
    assert [one and one.tmp for one in found] == [str(machine.home / "tmp" / (letter * 16)) for letter in "ab"]


@needs_bubblewrap
@pytest.mark.parametrize("policy", [ON, SandboxPolicy("auto"), SandboxPolicy("off", network=False)])
def test_an_agent_that_is_started_in_a_sandbox_has_its_own_files(machine: AgentMachine, policy: SandboxPolicy) -> None:
    found = confined(machine, policy).sandbox
    assert found is not None
    assert found.opened == [str(machine.user / name) for name in FILES["claude"].credentials]


@pytest.mark.parametrize(("mode", "path"), [("off", "/usr/bin:/bin"), ("auto", "/nowhere")])
def test_without_a_sandbox_nothing_is_made_for_an_agent(
    machine: AgentMachine, mode: Literal["off", "auto"], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path)  # where bubblewrap is, or not
    before = set(machine.user.rglob("*"))
    assert confined(machine, SandboxPolicy(mode)).sandbox is None
    assert set(machine.user.rglob("*")) == before
