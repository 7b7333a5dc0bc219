"""A shell in the sandbox tries to read the gateway's token and keys, and to write outside of its workspace.

Run by hand, it shows what the person sees: pytest -s tests/attacks/test_sandbox_keeps_commands_in.py
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from holdfast.domain.errors import Rejected
from holdfast.domain.events.task import SandboxSpec, TaskStarted
from holdfast.profiles import Profiles
from holdfast.tasks.defaults import CommandDefaults
from holdfast.tasks.sandbox import SandboxBuilder, SandboxPolicy, explain_failure, git_paths, sandbox_for
from tests.actors import person
from tests.bubblewrap import needs_bubblewrap
from tests.e2e.gateway import of_kind, until
from tests.e2e.tasks import home_with_commands, start, task, tasks_of, until_over
from tests.eventually import PATIENCE

WORD = "no such thing in here"


class Machine:
    """A home of Holdfast, a home of a user, a project, and whoever works there."""

    def __init__(self, root: Path) -> None:
        self.home, self.user, self.project = root / "holdfast", root / "user", root / "project"
        for path in (self.home / "run", self.user / ".ssh", self.user / ".config" / "gcloud", self.project):
            path.mkdir(parents=True)
        self.secrets = [self.home / "run" / "token", self.user / ".ssh" / "id_ed25519", self.user / ".netrc"]
        self.secrets.append(self.user / ".config" / "gcloud" / "key")
        for secret in self.secrets:
            secret.write_text(WORD)
        self.sandbox = SandboxBuilder(self.home, user_home=self.user)

    def run(self, command: str, *, cwd: Path | None = None, own: Path | None = None, **policy: object) -> str:
        """What a command of an agent prints."""
        where = cwd or self.project
        given = SandboxPolicy(**policy)  # type: ignore[arg-type]  # as a profile would name them
        spec = self.sandbox.spec(given, workspace=where, own=own, session="0123456789abcdef")
        assert isinstance(spec, SandboxSpec)
        words = [*self.sandbox.arguments(spec), "--chdir", str(where), "--", "/bin/sh", "-c", command]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
        print(f"$ {command}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@needs_bubblewrap
def test_keys_and_the_token_cannot_be_read(machine: Machine) -> None:
    names = " ".join(map(str, machine.secrets))
    assert WORD not in machine.run(f"cat {names}; ls -lR {machine.home}; find {machine.user} -type f -exec cat {{}} +")
    above = machine.project.parent  # and not either where they lie in the workspace itself
    assert WORD not in machine.run(f"cat {names}; umount {machine.home}; cat {names}", cwd=above)
    assert WORD not in machine.run(f"unshare -Urm sh -c 'umount -l {machine.home}; cat {names}'", cwd=above)


@needs_bubblewrap
def test_the_environment_and_the_files_of_other_processes_cannot_be_read(machine: Machine) -> None:
    env = os.environ | {"MY_KEY": WORD}
    with subprocess.Popen(["sleep", "60"], env=env, cwd=machine.home / "run") as other:
        try:
            said = machine.run(
                f"cat /proc/{other.pid}/environ /proc/{other.pid}/cwd/token /proc/{other.pid}/root{machine.secrets[0]}"
            )
        finally:
            other.kill()
    assert WORD not in said and "Permission denied" in said


@needs_bubblewrap
def test_only_the_workspace_its_tmp_and_named_paths_can_be_written(machine: Machine, tmp_path: Path) -> None:
    outside = [
        tmp_path / "outside",
        machine.user / ".bashrc",
        machine.home / "config.toml",
        Path("/etc/holdfast-attack"),
    ]
    said = machine.run("; ".join(f"echo x > {path}" for path in (*outside, "/proc/sys/kernel/printk")))
    assert "Read-only file system" in said and not any(path.exists() for path in outside)
    named = tmp_path / "named"
    named.mkdir()
    machine.run(f"echo x > {named}/a; echo x > b; echo kept > /tmp/c", writable=(named,))
    assert (named / "a").exists() and (machine.project / "b").exists() and not Path("/tmp/c").exists()
    assert machine.run("cat /tmp/c") == "kept\n"  # the next command of the session finds it


@needs_bubblewrap
def test_the_holdfast_home_is_never_opened_but_for_a_cards_workspace(machine: Machine) -> None:
    card = machine.home / "workspaces" / "c0ffee"
    card.mkdir(parents=True)
    assert WORD not in machine.run(f"cat {machine.secrets[0]}; echo x > {card}/done; echo y > ../y", cwd=card, own=card)
    assert (card / "done").exists() and not (card.parent / "y").exists()
    run = machine.home / "run"
    assert WORD not in machine.run("cat token", cwd=machine.project, writable=(machine.home, run))


@needs_bubblewrap
def test_a_home_as_workspace_keeps_its_keys_and_what_it_runs(machine: Machine) -> None:
    """What is hidden does not come back under another name, and no shell of the user runs what was written."""
    home = machine.user / "deep" / "holdfast"
    (home / "run").mkdir(parents=True)
    (home / "run" / "token").write_text(WORD)
    machine.sandbox = SandboxBuilder(home, user_home=machine.user)
    (machine.user / ".bashrc").write_text("true\n")
    (machine.user / ".holdfast").mkdir()
    (machine.user / ".holdfast" / "token").write_text(WORD)  # of another gateway
    machine.run("mv .config renamed; mv deep renamed2; echo evil >> .bashrc; mv .bashrc x", cwd=machine.user)
    machine.run("echo evil > .bashrc; mkdir new", cwd=machine.user)
    assert (machine.user / ".bashrc").read_text() == "true\n" and (machine.user / "new").exists()
    names = "renamed/gcloud/key renamed2/holdfast/run/token .holdfast/token"
    assert WORD not in machine.run(f"cat {names}; find . -type f -exec cat {{}} +", cwd=machine.user)


@needs_bubblewrap
def test_without_a_network_nothing_can_be_reached(machine: Machine) -> None:
    assert "lo" in machine.run("cat /proc/net/dev", network=False)
    assert "eth" not in machine.run("cat /proc/self/net/dev", network=False)


@needs_bubblewrap
def test_a_worktree_can_commit_and_change_no_hook(machine: Machine, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    who = "git -c user.name=ann -c user.email=ann@example.org"
    subprocess.run(
        f"cd {machine.project} && git init -q && {who} commit -q --allow-empty -m one && git worktree add -q {tree}",
        shell=True,
        check=True,
        env={"PATH": os.environ["PATH"], "HOME": str(machine.user)},
    )
    common = machine.project / ".git"
    machine.run(f"echo a > a; git add a; {who} commit -qm two; echo x > {common}/hooks/post-commit", cwd=tree)
    log = subprocess.run(["git", "-C", tree, "log", "--format=%s"], capture_output=True, text=True, check=True)
    assert log.stdout == "two\none\n" and not (common / "hooks" / "post-commit").exists()
    (machine.project / "below").mkdir()
    for where in (tree, machine.project / "below"):
        for name in ("config", "commondir", "modules", "worktrees/tree/commondir", "../x"):
            assert "Read-only" in machine.run(f"echo x >> {common}/{name}", cwd=where)
    assert not (common / "commondir").exists()


def test_a_git_file_of_an_agent_opens_nothing(machine: Machine) -> None:
    target = machine.user / "repository"
    subprocess.run(["git", "init", "-q", target], check=True)
    for named in (target / ".git", machine.user, Path("/etc")):
        (machine.project / ".git").write_text(f"gitdir: {named}\n")
        assert git_paths(machine.project) == ([], [])


def test_where_there_is_none_it_is_refused_or_said() -> None:
    where = {"problem": "bwrap is not installed", "writable": [], "read_only": [], "tmp": Path("/tmp")}
    assert sandbox_for(SandboxPolicy("auto"), **where) == "bwrap is not installed"  # type: ignore[arg-type]
    assert sandbox_for(SandboxPolicy("off"), **where) == "the profile turns it off"  # type: ignore[arg-type]
    for demand in ({"mode": "on", "network": True}, {"mode": "auto", "network": False}):
        with pytest.raises(Rejected, match=r"was not started: its profile has .* \(bwrap is not installed\)"):
            sandbox_for(SandboxPolicy(**demand), **where)  # type: ignore[arg-type]
    strict = SandboxPolicy("off").limited_by("on", network=False)
    assert (strict.mode, strict.network) == ("on", False)


class NotInstalled(SandboxBuilder):
    problem = "bwrap is not installed"


@pytest.mark.parametrize("known", [False, True])
def test_a_command_that_was_accepted_with_a_sandbox_is_not_started_without_it(machine: Machine, known: bool) -> None:
    """Such as after a restart on a machine that has lost its bubblewrap."""
    builder = NotInstalled(machine.home) if known else None
    defaults = CommandDefaults(machine.home, Profiles(machine.home / "config.toml"), 0o022, builder)
    started = TaskStarted(
        task="0123456789abcdef", task_kind="process", title="make", command="make", cwd="/", by=person("ann")
    )
    assert defaults.spec(started, {}).sandbox == ()
    with pytest.raises(Rejected, match="must run in a sandbox, which is not possible now"):
        defaults.spec(msgspec.structs.replace(started, sandbox=SandboxSpec(writable=["/"])), {})


def test_a_profile_says_whether_its_commands_have_a_sandbox(machine: Machine) -> None:
    without = NotInstalled(machine.home)
    assert without.in_words("off", network=True) == "the profile turns it off"
    assert without.in_words("auto", network=True) == "none: bwrap is not installed"
    for demand in (without.in_words("on", network=True), without.in_words("auto", network=False)):
        assert demand == "none, so its commands are refused: bwrap is not installed"


@needs_bubblewrap
def test_a_profile_says_that_its_commands_have_a_sandbox(machine: Machine) -> None:
    assert machine.sandbox.in_words("auto", network=True) == "in force, with network"
    assert machine.sandbox.in_words("on", network=False) == "in force, without network"


def test_a_failure_explains_itself() -> None:
    spec = SandboxSpec(writable=["/work"], network=False)
    assert "can write to /work and its own /tmp" in explain_failure("touch: Read-only file system", spec)
    assert "network = false" in explain_failure("curl: (6) Could not resolve host: example.org", spec)
    assert explain_failure("Tests failed", spec) == ""


@needs_bubblewrap
def test_promise_3_a_shell_in_the_sandbox_is_killed_and_found_again(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with home_with_commands(tmp_path / "home") as gateway:
        gateway.start()
        attack = f"cat {gateway.home}/run/token; echo x > {tmp_path}/outside; echo x > /etc/holdfast-attack"
        session = gateway.create(
            f"sh {attack}; echo begun > begun; until [ -e go ]; do sleep 0.02; done; echo over; exit 7", cwd=work
        )
        until(lambda: (work / "begun").exists() or None, "the command has begun")
        [found] = until(
            lambda: [row for row in tasks_of(gateway, session) if row["pid"]] or None, "the log knows its process"
        )
        gateway.kill9()
        gateway.start()
        assert task(gateway, found["id"])["pid"] == found["pid"]
        (work / "go").touch()
        ended = until_over(gateway, found["id"])
        assert (ended["state"], ended["exit_code"]) == ("failed", 7)
        said = [record["output"] for record in of_kind(gateway.until_rest(session), "ToolCallFinished")]
        assert gateway.token not in said[0] and "over" in said[0] and "This command ran in a sandbox" in said[0]
        assert not (tmp_path / "outside").exists() and not Path("/etc/holdfast-attack").exists()
        why = [one["text"] for one in gateway.get(f"/v1/tasks/{found['id']}/why")["sentences"]]
        assert any("It has a sandbox" in sentence for sentence in why), why

        session = gateway.create("sh sleep 600", cwd=work)
        [running] = until(lambda: [one for one in tasks_of(gateway, session) if one["pid"]], "it runs")
        gateway.command("POST", f"/v1/tasks/{running['id']}/stop", {"force": False})
        assert until_over(gateway, running["id"])["state"] == "stopped"

        mine = start(gateway, f"echo x > {tmp_path}/mine", cwd=work)  # what a person starts is not held back
        assert until_over(gateway, mine)["exit_code"] == 0 and (tmp_path / "mine").exists()
