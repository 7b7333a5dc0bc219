"""The home, and the only reader of the environment. Importing this costs next to nothing."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

SIGN_IN_SECONDS = 600.0
BEFORE_THE_FIRST_START = {"run", "logs", "tasks", "lost+found"}
"""What a new home may have besides settings: what a start that did not finish has made, and what the file system puts
there. All of them are found in other directories, too.
"""
SETTINGS = ("config.toml", ".config.toml")
"""With the copies of an editor, whose names begin like this."""
DATABASES = ("holdfast.db", "search.db")


class ConfigError(Exception):
    """The settings or the home are wrong; the message says where and what to do."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything lives: `$HOLDFAST_HOME`, by default `~/.holdfast`."""

    path: Path

    @property
    def config(self) -> Path:
        """The settings; there need not be any."""
        return self.path / "config.toml"

    @property
    def database(self) -> Path:
        """Never open this with anything but SQLite."""
        return self.path / "holdfast.db"

    @property
    def run(self) -> Path:
        """What belongs to the running gateway: lock, token, address."""
        return self.path / "run"

    @property
    def lock(self) -> Path:
        """Held by the one process that owns the home."""
        return self.run / "lock"

    @property
    def token(self) -> Path:
        """The bearer token of the command line, 0600."""
        return self.run / "token"

    @property
    def address(self) -> Path:
        """Where the running gateway listens."""
        return self.run / "gateway.json"

    @property
    def starting(self) -> Path:
        """The pid of a gateway that is starting and has no address yet."""
        return self.run / "starting"

    @property
    def revocations(self) -> Path:
        """Devices whose revocation the database could not take yet. Not in `run`, which may be swept away."""
        return self.path / "revoked"

    @property
    def push_key(self) -> Path:
        """The key by which push services know this gateway, 0600."""
        return self.path / "push.pem"

    @property
    def worker_key(self) -> Path:
        """The key that signs the tokens of external workers, 0600. Not in `run`: a worker outlives its gateway."""
        return self.path / "worker.key"

    @property
    def heartbeat(self) -> Path:
        """The last sign of life of a gateway at work."""
        return self.run / "heartbeat"

    @property
    def settings_seen(self) -> Path:
        """What config.toml said when it was last the same as the settings of all nodes."""
        return self.run / "settings-seen"

    @property
    def log(self) -> Path:
        """The gateway's log, one JSON object a line."""
        return self.path / "logs" / "gateway.log"

    @property
    def tasks(self) -> Path:
        """The output of every command, one directory for each task."""
        return self.path / "tasks"

    def prepare(self) -> int:
        """Create what is missing, 0700; refuse a home that others could change. The umask that was in force."""
        self.refuse()
        umask = os.umask(0o077)
        try:
            for path in (self.path, self.run, self.log.parent, self.tasks):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"The home {self.path} cannot be created: {error.strerror}. Use another: --home DIR or HOLDFAST_HOME."
            ) from error
        self.check()
        return umask

    def check(self) -> None:
        """Refuse a home of another user or that others can write to; close one that others can read."""
        self.refuse()
        for path in self.readable_by_others():
            try:
                path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)
            except OSError as error:
                raise ConfigError(
                    f"Other users can read {path}, and its mode cannot be changed: {error.strerror}. "
                    "Use another home: --home DIR or HOLDFAST_HOME."
                ) from error

    def readable_by_others(self) -> list[Path]:
        """What of the home should be its owner's alone and is not. A link leads elsewhere and is left alone."""
        keys = (self.token, self.revocations, self.push_key, self.worker_key)
        private = (self.path, self.run, self.config, self.database, *keys)
        return [path for path in private if not path.is_symlink() and path.exists() and path.stat().st_mode & 0o077]

    def refuse(self) -> None:
        """Refuse a home of another user, one that others can write to, and what is not a home. Changes nothing."""
        for path in (self.path, self.run, self.token):
            if not path.exists():
                continue
            found = path.stat()
            if found.st_uid != os.geteuid():
                raise ConfigError(
                    f"{path} belongs to user {found.st_uid}, not to you ({os.geteuid()}). "
                    "Use another home: --home DIR or HOLDFAST_HOME."
                )
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise ConfigError(f"Other users can write to {path}. Run first: chmod 700 {path}")
        if stranger := self._file_of_others():
            raise ConfigError(
                f"{self.path} is not a Holdfast home: it holds other files, such as {stranger}. Nothing was changed. "
                "Use a new or empty directory: --home DIR or HOLDFAST_HOME."
            )

    def _file_of_others(self) -> str:
        """Return a file that shows that this directory has another purpose; empty for a home and for an empty one."""
        marks = (self.token, self.address, self.log, self.worker_key)
        if not self.path.is_dir() or any(mark.is_file() for mark in marks):
            return ""
        try:
            names = sorted(path.name for path in self.path.iterdir())
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be read: {error.strerror}.") from error
        if any(name.startswith(DATABASES) for name in names):
            return ""
        return next((name for name in names if not (name in BEFORE_THE_FIRST_START or name.startswith(SETTINGS))), "")


def write_private(path: Path, content: bytes) -> None:
    """Create a file that only its owner can read; it is in its place whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)


def find_home(given: str | None = None) -> Home:
    """The home that was asked for, by option, by environment or by default."""
    chosen = given or os.environ.get("HOLDFAST_HOME") or "~/.holdfast"
    return Home(Path(chosen).expanduser().absolute())


def no_color() -> bool:
    """Whether the person asked for plain output."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def has_screen() -> bool:
    """Whether there is a screen on which a browser can be opened."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        return False
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def in_task() -> bool:
    """Whether this process belongs to a command that a gateway keeps."""
    return bool(os.environ.get("HOLDFAST_TASK"))


def sign_in_file(run: Path, code: str) -> Path:
    """The file that leads a browser to the address with this one-time code."""
    from hashlib import sha256

    return run / f"open-{sha256(code.encode('utf-8', 'replace')).hexdigest()[:16]}.html"


def open_in_browser(run: Path, url: str) -> bool:
    """Open an address with a one-time code; every user can read the words of a process, so the code is in none.

    The browser gets a file that only this user can read and that leads there. It goes when the code is used, and what
    is left of older ones goes now.
    """
    import time
    import webbrowser
    from html import escape

    for old in run.glob("open-*.html"):
        if old.stat().st_mtime < time.time() - SIGN_IN_SECONDS:
            old.unlink(missing_ok=True)
    file = sign_in_file(run, url.rpartition("#code=")[2])
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as page:
        page.write(f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={escape(url)}">Holdfast\n')
    return webbrowser.open(file.as_uri())


def environment(name: str) -> str | None:
    """A variable of the environment, if it is set and not empty."""
    return os.environ.get(name) or None


REPOSITORY = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_PREFIX"}
"""Set where a git hook started the gateway; git would work in that repository whatever the directory is."""


def command_environment(without: set[str]) -> dict[str, str]:
    """What a command inherits: all variables except keys, our own, and those of a git hook."""
    hidden = without | REPOSITORY
    return {
        name: value for name, value in os.environ.items() if name not in hidden and not name.startswith("HOLDFAST_")
    }


def sendable_environment() -> dict[str, str]:
    """What a gateway that is started again from this terminal is given: all but our own names and what is no UTF-8."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return {name: value for name, value in given.items() if _is_utf8(name + value)}


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def own_environment() -> dict[str, str]:
    """All of it, for a command that a person starts from here."""
    return dict(os.environ)
