"""The sandbox of agents' commands: only the workspace is writable; keys and the Holdfast home are hidden.

`sandbox_for` decides whether a command gets a sandbox and what it may write; the log has that with the start of the
task. `SandboxBuilder.arguments` turns it into a call of bubblewrap, which runs the command. There is no PID
namespace, so that signals, activity and re-attaching after a restart work as usual. The user namespace keeps a command
from reading the memory and the environment of other processes, such as the gateway.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from holdfast.domain.errors import Rejected
from holdfast.domain.events.task import SandboxSpec
from holdfast.external_agent_files import CREDENTIALS, AgentFiles
from holdfast.git import GitFailed, find_repository

SandboxMode = Literal["auto", "on", "off"]
STRICTNESS: dict[SandboxMode, int] = {"off": 0, "auto": 1, "on": 2}
PROBE_SECONDS = 10.0
OFF = "the profile turns it off"
KEYS = (
    *(
        ".holdfast",
        ".ssh",
        ".gnupg",
        ".aws",
        ".azure",
        ".kube",
        ".docker",
        ".config/gcloud",
        ".config/gh",
        ".config/hub",
        ".config/op",
    ),
    *(".netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".config/git/credentials", ".gem/credentials"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gradle/gradle.properties", ".pgpass"),
    *(".my.cnf", ".s3cfg", ".boto", ".vault-token", ".terraform.d", ".config/rclone", ".config/sops", ".config/age"),
    *(*CREDENTIALS, ".password-store", ".Xauthority"),
    *(".local/share/keyrings", ".local/share/kwalletd", ".config/1Password", ".config/Bitwarden", ".config/KeePassXC"),
    *(
        ".mozilla",
        ".thunderbird",
        ".config/google-chrome",
        ".config/chromium",
        ".config/BraveSoftware",
        ".config/vivaldi",
    ),
    *(".config/microsoft-edge", ".config/opera", "snap/firefox", "snap/chromium", ".var/app", ".bitcoin", ".electrum"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".node_repl_history"),
)
"""Files and directories of the user's home that commonly contain keys, browser sessions or shell history."""
STARTUP = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile"),
    *(".config/fish", ".config/autostart", ".config/systemd", ".config/environment.d", ".config/git", ".gitconfig"),
    *(".inputrc", ".tmux.conf", ".vimrc", ".vim", ".config/nvim", ".emacs", ".emacs.d", ".xprofile", ".xsessionrc"),
    *(".zlogin", ".pam_environment", ".local/bin", "bin"),
)
"""Files and directories of the user's home from which other programs start commands."""
SYSTEM_KEYS = (Path("/etc/shadow"), Path("/etc/gshadow"), Path("/etc/sudoers"), Path("/run"))
"""System files with keys, and `/run` with the sockets of services outside of the sandbox, such as Docker and D-Bus."""
OPEN_IN_RUN = ("systemd/resolve", "resolvconf", "NetworkManager", "nscd", "current-system", "booted-system", "wrappers")
DEVICES = ("dri", "kfd", "nvidia*")
"""Graphics cards, which many programs use for computing."""
SIGNS = ("Read-only file system", "EROFS", "Permission denied", "EACCES", "Operation not permitted")
NETWORK_SIGNS = ("Could not resolve", "Temporary failure in name resolution", "Network is unreachable", "ENETUNREACH")


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """The sandbox settings of a profile."""

    mode: SandboxMode = "auto"
    network: bool = True
    writable: tuple[Path, ...] = ()
    """Writable paths besides the working directory."""
    opened: tuple[Path, ...] = ()
    """Files with keys that are not hidden."""
    closed: tuple[Path, ...] = ()
    """What stays read-only in writable paths."""

    def limited_by(self, mode: SandboxMode, *, network: bool) -> SandboxPolicy:
        """Return the policy that is as strict as both."""
        stricter = max(self.mode, mode, key=STRICTNESS.__getitem__)
        return replace(self, mode=stricter, network=self.network and network)


def sandbox_for(
    policy: SandboxPolicy, *, problem: str, writable: Sequence[Path], read_only: Sequence[Path], tmp: Path
) -> SandboxSpec | str:
    """Return the sandbox of a command, or why it has none. `Rejected` if it must have one and `problem` prevents it."""
    if policy.mode == "off" and policy.network:
        return OFF
    if problem:
        if policy.mode == "auto" and policy.network:
            return problem
        demand = 'sandbox = "on"' if policy.mode == "on" else "network = false"
        raise Rejected(
            f"The command was not started: its profile has {demand}, but there is no sandbox here ({problem}).",
            hint="Install bubblewrap or change the profile; `holdfast doctor` checks whether it works.",
        )
    return SandboxSpec(
        writable=[str(path) for path in dict.fromkeys(writable)],
        read_only=[str(path) for path in read_only],
        opened=[str(path) for path in policy.opened],
        network=policy.network,
        tmp=str(tmp),
    )


class SandboxBuilder:
    """Builds sandboxes with bubblewrap, if that is installed and works."""

    def __init__(self, home: Path, *, user_home: Path | None = None) -> None:
        self.home = home.resolve()
        self.tmp = self.home / "tmp"
        self._user_home = (user_home or Path.home()).resolve()

    @cached_property
    def problem(self) -> str:
        """Why sandboxes do not work here; empty if they do. Tested once; blocks, so call it in a thread first."""
        program = shutil.which("bwrap")
        if program is None:
            return "bubblewrap (the program bwrap) is not installed"
        for network in (True, False):
            words = [*_base(program, network=network), "--", "/bin/sh", "-c", ":"]
            try:
                done = subprocess.run(  # noqa: S603 (our own words)
                    words, capture_output=True, text=True, check=False, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return f"bubblewrap does not work here: {error}"
            if done.returncode:
                return f"bubblewrap does not work here: {' '.join(done.stderr.split()) or f'code {done.returncode}'}"
        return ""

    def in_words(self, mode: SandboxMode, *, network: bool) -> str:
        """Return a sentence about whether commands of a profile run in a sandbox."""
        if mode == "off":
            return OFF
        if self.problem:
            demanded = mode == "on" or not network
            return f"none, so its commands are refused: {self.problem}" if demanded else f"none: {self.problem}"
        return "in force, with network" if network else "in force, without network"

    def spec(self, policy: SandboxPolicy, *, workspace: Path, own: Path | None, session: str) -> SandboxSpec | str:
        """Return the sandbox of a command that works in `workspace`, or why it has none."""
        wanted = [workspace, *policy.writable]
        git_writable, git_read_only = git_paths(workspace)
        paths = [path.resolve() for path in (*wanted, *git_writable)]
        open_paths = [path for path in paths if path.exists() and path != Path("/") and self._may_write(path, own)]
        return sandbox_for(
            policy,
            problem="" if policy.mode == "off" and policy.network else self.problem,
            writable=open_paths,
            read_only=[*(git_read_only if set(git_writable) <= set(open_paths) else []), *policy.closed],
            tmp=self.tmp / session,
        )

    def for_agent(self, policy: SandboxPolicy, files: AgentFiles) -> SandboxPolicy:
        """Return the policy of the process of an external agent: it can write its own state and read its own log-in.

        Directories and settings that are not there are made, since what is not there cannot be closed. Blocks.
        """
        own = [(self._user_home / name).resolve() for name in files.writes]
        closed = [self._user_home / name for name in files.programs]
        for directory in own:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in closed:
            if path.is_symlink():
                raise Rejected(
                    f"The agent was not started: {path} is a symbolic link, which an agent in a sandbox could replace.",
                    hint='Put the file itself there, or write sandbox = "off" in the profile.',
                )
            if path.exists():
                continue
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.suffix or path.name.startswith("."):
                path.write_text("{}\n" if path.suffix == ".json" else "")
            else:
                path.mkdir(mode=0o700)
        return replace(
            policy,
            writable=(*policy.writable, *own),
            opened=tuple((self._user_home / name).resolve() for name in files.credentials),
            closed=tuple(path.resolve() for path in closed),
        )

    def _may_write(self, path: Path, own: Path | None) -> bool:
        """Return whether a path may be writable; in the Holdfast home, only the card's own workspace."""
        return not path.is_relative_to(self.home) or (own is not None and path == own.resolve())

    def arguments(self, spec: SandboxSpec) -> tuple[str, ...]:
        """Return the bubblewrap call, to which the command is appended."""
        if spec.tmp:
            Path(spec.tmp).mkdir(mode=0o700, parents=True, exist_ok=True)
        empty = self.tmp / ".empty"
        self.tmp.mkdir(mode=0o700, exist_ok=True)
        empty.touch(mode=0o400)
        mounts: dict[Path, list[str]] = {}
        if spec.tmp:
            mounts[Path("/tmp")] = ["--bind", spec.tmp, "/tmp"]  # noqa: S108
        else:
            mounts[Path("/tmp")] = ["--tmpfs", "/tmp"]  # noqa: S108
        opened = {Path(path) for path in spec.opened}
        hidden = {path: _hide(path, empty) for path in self._keys() if path.exists() and path not in opened}
        mounts |= hidden
        for name in OPEN_IN_RUN:
            if (path := Path("/run") / name).exists():
                mounts[path] = ["--ro-bind", str(path), str(path)]
        writable = [Path(path) for path in spec.writable]
        closed_to_writes = [path for path in map(Path, spec.read_only) if path.exists()] + self._startup(writable)
        for path in _between(writable, [*hidden, self.home, *closed_to_writes]):
            mounts.setdefault(path, ["--bind", str(path), str(path)])
        mounts |= {path: ["--ro-bind", str(path), str(path)] for path in closed_to_writes}
        mounts |= {path: ["--bind", str(path), str(path)] for path in writable}
        mounts[self.home] = _hide(self.home, empty)
        # deeper paths are mounted later: a workspace in a hidden directory is visible, a key in a workspace is not
        ordered = [word for path in sorted(mounts, key=lambda path: len(path.parts)) for word in mounts[path]]
        emptied = [
            path for path, words in mounts.items() if words == ["--tmpfs", str(path)] and path in {*hidden, self.home}
        ]
        closed = [word for path in emptied for word in ("--remount-ro", str(path))]
        program = shutil.which("bwrap") or "bwrap"
        return (*_base(program, network=spec.network), *ordered, *closed, "--setenv", "TMPDIR", "/tmp")  # noqa: S108

    def _keys(self) -> Iterable[Path]:
        own = (self._user_home / name for name in KEYS)
        return [path.resolve() for path in (*own, *SYSTEM_KEYS)]

    def _startup(self, writable: Sequence[Path]) -> list[Path]:
        """Return what stays read-only although the user's home is writable."""
        if not any(self._user_home.is_relative_to(path) for path in writable):
            return []
        names = (self._user_home / name for name in STARTUP)
        program = Path(sys.prefix).resolve()
        found = [path.resolve() for path in names if path.exists()]
        return [path for path in (*found, program) if path not in writable and _lies_in(path, writable)]


def _lies_in(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def _between(roots: Sequence[Path], closed: Iterable[Path]) -> list[Path]:
    """Return the directories between a writable path and a closed one in it.

    Each is mounted on itself, because a mount cannot be renamed: otherwise a command could rename a directory above a
    hidden path, and the next command would see that path under its new name.
    """
    return [path for one in closed for path in one.parents if path not in roots and _lies_in(path, roots)]


def _base(program: str, *, network: bool) -> list[str]:
    devices = sorted(str(path) for pattern in DEVICES for path in Path("/dev").glob(pattern))
    return [
        *(program, "--unshare-user", "--cap-drop", "ALL", "--new-session", "--ro-bind", "/", "/", "--dev", "/dev"),
        *(word for device in devices for word in ("--dev-bind", device, device)),
        *(() if network else ("--unshare-net",)),
    ]


def _hide(path: Path, empty: Path) -> list[str]:
    return ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", str(empty), str(path)]


def git_paths(workspace: Path) -> tuple[list[Path], list[Path]]:
    """Return what a commit in a linked worktree writes outside of it, and which part of that stays read-only.

    The rest of the repository is not writable: `config`, `hooks` and `commondir` name programs that git runs for its
    users. An agent may have written the `.git` file, so the git directory must point back at it.
    """
    workspace = workspace.resolve()
    try:
        repository = find_repository(workspace)
        if repository is None or repository.common.is_relative_to(workspace):
            return [], []
        own, common = repository.directory, repository.common
        if own.parent != common / "worktrees":
            return [], []
        back = (own / "gitdir").read_text().strip()
        if Path(back).resolve() != (repository.top / ".git").resolve():
            return [], []
    except (GitFailed, OSError, ValueError):
        return [], []
    writable = [own, *(common / name for name in ("objects", "refs", "logs"))]
    read_only = [own / name for name in ("commondir", "gitdir", "config.worktree")]
    return [path for path in writable if path.is_dir()], [path for path in read_only if path.exists()]


def explain_failure(output: str, spec: SandboxSpec) -> str:
    """Return how the sandbox may have made a command fail; empty if there is no sign of that."""
    found: list[str] = []
    if any(sign in output for sign in SIGNS):
        found.append(
            f"it can write to {', '.join(spec.writable) or 'nothing'} and its own /tmp; everything else is read-only, "
            "and files with keys are hidden. `sandbox_write` in the profile makes more writable"
        )
    if not spec.network and any(sign in output for sign in NETWORK_SIGNS):
        found.append("it has no network: the profile has `network = false`")
    return f"[This command ran in a sandbox: {'; '.join(found)}.]" if found else ""


def remove_tmp(root: Path, session: str) -> None:
    """Remove the `/tmp` of a session."""
    shutil.rmtree(root / session, ignore_errors=True)


def not_dumpable() -> None:
    """Keep other processes of the user from reading this one's environment and memory, where the keys are."""
    import ctypes

    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def sessions_with_tmp(root: Path) -> list[str]:
    """Return the sessions that have a `/tmp` of their own."""
    return [entry.name for entry in os.scandir(root) if entry.is_dir()] if root.is_dir() else []
