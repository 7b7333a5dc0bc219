"""The real command line in a process of its own: through pipes, or on a terminal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import holdfast
from tests.e2e.fork_server import Child, cli_fork_server
from tests.e2e.gateway import until
from tests.eventually import PATIENCE

PROGRAM = [sys.executable, "-m", "holdfast"]
SCRIPT = Path(holdfast.__file__).with_name("__main__.py")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class CommandLine:
    """Calls of `holdfast` on one home."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def environment(self, **more: str) -> dict[str, str]:
        private = ("HOLDFAST_HOME", "NO_COLOR", "COLUMNS", "LINES", "LC_ALL", "PYTHONDONTWRITEBYTECODE")
        kept = {name: value for name, value in os.environ.items() if name not in private}
        ours = {"HOLDFAST_HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        return kept | ours | more

    def __call__(
        self, *arguments: str | bytes, stdin: bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Forked from a process that has imported everything, unless a program that starts anew could differ."""
        words = [one for one in arguments if isinstance(one, str)]
        if env is None and len(words) == len(arguments):
            script = [str(SCRIPT), *words]
            code, stdout, stderr = cli_fork_server().run(script, stdin=stdin, env=self.environment(), timeout=PATIENCE)
        else:
            code, stdout, stderr = self._run_anew(arguments, stdin, env or {})
        out, err = stdout.decode(), stderr.decode()
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(["holdfast", *arguments], code, out, err)

    def _run_anew(
        self, arguments: tuple[str | bytes, ...], stdin: bytes, env: dict[str, str]
    ) -> tuple[int, bytes, bytes]:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            input=stdin,
            capture_output=True,
            env=self.environment(**env),
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def ok(self, *arguments: str, **more: Any) -> str:
        """What it prints; it must succeed."""
        done = self(*arguments, **more)
        assert done.returncode == 0, done
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """What it prints with --json; it must succeed."""
        return json.loads(self.ok(*arguments, "--json"))

    def spawn(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(**env),
        )

    def show(
        self,
        *arguments: str,
        cwd: Path | None = None,
        columns: int = 80,
        rows: int = 40,
        echo: bool = True,
        env: Mapping[str, str],
    ) -> tuple[Child, int]:
        """Start it on a pseudo-terminal, and return our end too; anew, unless the environment is the usual one."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if not echo:
            mode = termios.tcgetattr(theirs)
            mode[3] &= ~termios.ECHO
            termios.tcsetattr(theirs, termios.TCSANOW, mode)
        command = [*PROGRAM[1:], *arguments] if env else [str(SCRIPT), *arguments]
        environment = self.environment(**env)
        server, terminal = cli_fork_server(), os.ttyname(theirs)
        child = server.show(command, terminal=terminal, env=environment, cwd=cwd, anew=bool(env))
        os.close(theirs)
        return child, ours

    @contextlib.contextmanager
    def terminal(self, *arguments: str, columns: int = 80, **env: str) -> Iterator[Terminal]:
        """The command on a terminal of that width."""
        terminal = Terminal(self.show(*arguments, columns=columns, env=env))
        try:
            yield terminal
        finally:
            terminal.close()


class Terminal:
    """A command on a pseudo-terminal; what it wrote so far is in `raw`."""

    def __init__(self, shown: tuple[Child, int]) -> None:
        self.process, self._ours = shown
        self._bytes = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # a closed terminal is an error to read from
            while piece := os.read(self._ours, 65_536):
                self._bytes += piece

    @property
    def raw(self) -> str:
        return self._bytes.decode("utf-8", "replace").replace("\r\n", "\n")

    @property
    def text(self) -> str:
        """Without colours."""
        return ESCAPE.sub("", self.raw)

    def until(self, text: str) -> str:
        until(lambda: text in self.text, f"the terminal shows {text!r}")
        return self.text

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def wait(self) -> int:
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        os.close(self._ours)


def new_home(path: Path) -> Path:
    """A home whose gateway takes any free port."""
    path.mkdir(mode=0o700)
    (path / "config.toml").write_text("[gateway]\nport = 0\n")
    return path


def rest_of(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it still prints until it ends; also what was read ahead of a line, which `communicate` would lose."""
    assert process.stdout is not None and process.stderr is not None
    with process.stdout as out, process.stderr as err:
        rest = out.read(), err.read()
    process.wait(PATIENCE)
    return rest


def end_gateway(home: Path) -> None:
    """End the gateway that the command line started in this home, by its pid."""
    try:
        pid = int(json.loads((home / "run" / "gateway.json").read_text())["pid"])
    except FileNotFoundError:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def pid_of(home: Path) -> int:
    return int(json.loads((home / "run" / "gateway.json").read_text())["pid"])
