"""The keeper of one command: starts it, holds what it needs, records its end.

    standby ── keeper ── command ── …

The keeper server forks this, or the gateway runs this file alone, by its path. The order comes on stdin (never on disk:
it holds the environment). This process prepares the spool directory and forks the keeper, which forks the command
behind a gate. The gate opens when the `claim` is durable. The claim identifies the command, and it is linked into
place, which succeeds once: a supervisor that links its own first has cancelled this start, and may make it anew in
another directory of that name. If the gate is closed and not opened, the process behind it records ECANCELED: nothing
ran here and nothing will.

The command holds the output itself, so that no byte goes through a keeper; for a command that needs pipes, the kernel
moves the bytes between them and the files (`CommandPipes`). Keeper and standby are both subreapers: what
a command leaves behind becomes their child, and if the keeper is killed, the command becomes the child of the standby,
which does the rest with the same code. An end is looked at, recorded, and only then reaped, so that no exit code is
lost with a killed keeper. Both stay until the last descendant is gone, and sleep in `sigwaitinfo` meanwhile: an idle
command costs no CPU.

Nothing of the package is imported, and `_signal`, `_ctypes` and `marshal` instead of `signal`, `ctypes` and `json`:
that halves the memory and the time to start of something that exists once per command.
"""

from __future__ import annotations

import _ctypes
import _signal  # type: ignore[import-not-found]
import errno
import fcntl
import gc
import marshal
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing the typing module would take longer than everything here
    from typing import Any, NoReturn

RECORD_BYTES = 512
BLOCK = 4096
BURST_SECONDS = 0.02
"""The pause between two looks at an output that grows: in that time a disk takes 80 MB at best (4 GB/s)."""
POLL_SECONDS = 0.25
"""The pause where the kernel does not say that an output grows."""
RETRY_SECONDS = 1.0
RETRIES = 600
"""How often a record is written that the disk refuses."""
OOM_SCORE = "500"
PIPE_BYTES = 1 << 20
DESCRIPTORS = 1 << 16
"""More than a process has open."""
DIRECTORY = 3
"""The descriptor of the spool directory: a path may name another one by the time that we look."""
PR_SET_CHILD_SUBREAPER = 36
F_DUPFD_CLOEXEC = 1030
GATE = """
never() { printf 'never %s' "$1" >&5; exit 127; }
echo $$ >&4
exec 4>&-
read -r go <&3 || never 'ECANCELED its keeper ended before it began'
command -v "$1" >/dev/null || never "2 $1: No such file or directory"
exec "$@" 3<&- 5>&- 6>&-
""".replace("ECANCELED", str(errno.ECANCELED))
"""For the shell in a sandbox: write its pid, wait at the gate, run the command; or write why it cannot."""
FS_IOC_UNRESVSP64 = 0x4030582B


def read(path: str) -> bytes:
    """Read the beginning of a file, with the fewest system calls."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, BLOCK)
    finally:
        os.close(file)


def boot_id() -> str:
    """Identify this boot: pids and start ticks mean nothing in another one."""
    return read("/proc/sys/kernel/random/boot_id").decode().strip()


def start_ticks(pid: int) -> int:
    """Return when a process began, in ticks since the boot: with the pid, this identifies it."""
    text = read(f"/proc/{pid}/stat")
    return int(text[text.rindex(b")") + 2 :].split()[19])


def punch(file: int, start: int, end: int) -> None:
    """Give the blocks of a range back; the size and all offsets stay as they are."""
    order = sys.byteorder
    numbers = [(0, 8), (start, 8), (end - start, 8), (0, 24)]
    fcntl.ioctl(file, FS_IOC_UNRESVSP64, b"".join(number.to_bytes(size, order) for number, size in numbers))


def sync_directory(path: str) -> None:
    """Make names durable."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


class CappedFile:
    """A file that the command writes; what is above the cap is given back from its middle."""

    def __init__(self, name: str, head: int, tail: int) -> None:
        self.file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._head = head
        self._tail = tail
        self._punched = head

    def cap(self, tails: int) -> None:
        """Drop all but one tail once there are more than this many.

        The hole begins at the head, since readers rely on it, also if the command truncated the file and has printed
        more than before. It can do so between the look and the punch: what it prints next is in the head, which stays.
        """
        size = os.fstat(self.file).st_size
        if size < self._punched:
            self._punched = self._head
        end = (size - self._tail) // BLOCK * BLOCK
        if self._tail < 0 or size - self._punched <= tails * self._tail or end <= self._punched:
            return
        try:
            punch(self.file, self._head, end)
        except OSError:
            self._tail = -1  # a file system without holes: the supervisor sees the size and says so
            return
        self._punched = end


class CommandPipes:
    """The pipes of a command that talks to a program: what is appended to the file `stdin` is its input, and with
    `stdout` its output goes through a pipe into `output.log`.

    The kernel moves the bytes, so none is ever in a keeper alone. Keeper and standby share the open file `stdin` and so
    its position: whichever of them moves, no byte goes to the command twice.
    """

    def __init__(self, *, stdin: bool, stdout: bool) -> None:
        self.input = self.output = -1
        """The ends of the command; -1 is none."""
        self._source = self._feed = self._drain = self._target = -1
        self.closing = False
        """Whether the input is to be closed."""
        if stdin:
            self._source = os.open("stdin", os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self.input, self._feed = self._pipe()
            os.set_blocking(self._feed, False)
        if stdout:
            self._drain, self.output = self._pipe()
            os.set_blocking(self._drain, False)
            self._target = os.open("output.log", os.O_WRONLY)  # the kernel splices into no file that is appended to

    def _pipe(self) -> tuple[int, int]:
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return reader, writer

    def __bool__(self) -> bool:
        return self._feed >= 0 or self._drain >= 0

    def watch(self) -> None:
        """Ask for a SIGIO when the command writes or reads; it goes to the process that asked last."""
        for file in (self._feed, self._drain):
            if file >= 0:
                fcntl.fcntl(file, fcntl.F_SETOWN, os.getpid())
                fcntl.fcntl(file, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)

    def move(self) -> bool:
        """Move what there is, in both directions; False if the disk refused some of the output."""
        self._move_input()
        while self._drain >= 0:
            try:
                os.splice(self._drain, self._target, PIPE_BYTES, offset_dst=os.fstat(self._target).st_size)
            except BlockingIOError:
                break
            except OSError:
                return False  # the disk is full: the command waits in its write
        return True

    def _move_input(self) -> None:
        try:
            while self._feed >= 0 and os.splice(self._source, self._feed, PIPE_BYTES):
                continue
        except OSError:
            return  # the pipe is full, until the command reads

    def close_input(self) -> bool:
        """Close the input if that was asked for and all of it was moved: what moves the rest needs an open end."""
        if (
            self._feed < 0
            or not self.closing
            or os.lseek(self._source, 0, os.SEEK_CUR) < os.fstat(self._source).st_size
        ):
            return False
        os.close(self._feed)
        self._feed = -1
        return True


class Keeper:
    """A keeper or its standby: holds the files, reaps, caps outputs, records the end."""

    def __init__(self, order: dict[str, Any], path: str) -> None:
        self._order = order
        self._path = path
        self._command = 0
        """Its pid, once the directory is claimed for it; the standby reads it from the claim."""
        self._standby = os.getpid()
        self._recorded = False
        """Whether this process has recorded the end of the command."""
        self._record_file = os.open("exit.pre", os.O_RDWR | os.O_CREAT, 0o600)
        os.pwrite(self._record_file, b" " * (RECORD_BYTES - 1) + b"\n", 0)
        os.fsync(self._record_file)
        head, tail = order["head"], order["tail"]
        self._outputs = [CappedFile("output.log", head, tail)]
        if order["stderr"] == "apart":
            self._outputs.append(CappedFile("stderr.log", head, tail))
        self._stdin = -1
        if order["stdin"] == "pipe":
            os.mkfifo("stdin", 0o600)
            self._stdin = os.open("stdin", os.O_RDWR)  # a writer, too: nobody's death is the end of the input
            fcntl.fcntl(self._stdin, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._pipes = CommandPipes(stdin=order["stdin"] == "file", stdout=order["stdout"] == "pipe")
        self._directory = os.open(".", os.O_RDONLY)

    def start(self, report: int) -> None:
        """Fork the command behind its gate, claim the directory, open the gate."""
        subreaper()
        reader, gate = os.pipe()
        pid_reader, pid_writer = os.pipe()
        command = os.fork()
        if command == 0:
            self._become_command(gate, reader, pid_writer, report)
        os.close(reader)
        os.close(pid_writer)
        if self._order["sandbox"]:
            command = self._wait_for_sandbox(command, pid_reader)
        os.close(pid_reader)
        if self._claim(command):
            self._command = command
            write_if_open(gate, "g\n")
        os.close(gate)
        os.close(report)

    def _claim(self, command: int) -> bool:
        """Write down durably which process the command is; False if somebody else has claimed the directory."""
        lines = (
            f"pid {command} {start_ticks(command)}",
            f"keeper {os.getpid()} {start_ticks(os.getpid())}",
            f"standby {self._standby} {start_ticks(self._standby)}",
            f"boot {boot_id()}",
            f"task {self._order['task']}",
            f"head {self._order['head']}",
            f"tail {self._order['tail']}",
            f"began {time.time():.6f}",
        )
        file = os.open("claim.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(file, "\n".join(lines).encode() + b"\n")
        os.fsync(file)
        os.close(file)
        try:
            os.link("claim.new", "claim")
        except FileExistsError:
            return False
        os.unlink("claim.new")
        os.fsync(self._directory)
        sync_directory("..")
        # a directory that was put away held another claim before, and lost its name
        return os.path.samestat(os.stat(self._path), os.fstat(self._directory))

    def _wait_for_sandbox(self, builder: int, pid_reader: int) -> int:
        """Wait until the sandbox is built and the shell in it waits at the gate; return the pid of that shell.

        The program that builds it stays as the parent of the command and would report its end in its own way, so it is
        killed: then the command is a child of the keeper, as any other. If the builder fails, it counts as the command.
        """
        pid = b""
        while not pid.endswith(b"\n") and (piece := os.read(pid_reader, 32)):
            pid += piece
        if pid.endswith(b"\n"):
            os.kill(builder, _signal.SIGKILL)
            os.waitpid(builder, 0)
            return int(pid)
        os.waitid(os.P_PID, builder, os.WEXITED | os.WNOWAIT)
        if not os.pread(self._record_file, 6, 0).startswith(b"never "):
            with open("output.log", "rb") as file:
                words = file.read(RECORD_BYTES).decode("utf-8", "replace")
            self._note_failure(f"the sandbox could not be set up: {words}", 0)
        return builder

    def _become_command(self, gate: int, reader: int, pid_writer: int, report: int) -> NoReturn:
        """Wait at the gate, then run the command in this process; what prevents it goes into the exit record."""
        order, argv = self._order, self._order["argv"]
        try:
            os.close(gate)
            os.setsid()
            if not order["sandbox"] and os.read(reader, 1) != b"g":
                self._fail("its keeper ended before it began", errno.ECANCELED)
            stdin, stdout = self._pipes.input, self._pipes.output
            if stdin < 0:
                stdin = os.open("stdin" if self._stdin >= 0 else os.devnull, os.O_RDONLY)
            if stdout < 0:
                stdout = self._outputs[0].file
            for file, number in ((stdin, 0), (stdout, 1), (self._outputs[-1].file, 2)):
                os.dup2(file, number)
            default_signals()
            os.umask(order["umask"])
            limit_open_files(order["open_files"])
            prefer_as_oom_victim()
            try:
                os.chdir(order["cwd"])
            except OSError as error:
                self._fail(f"the working directory {order['cwd']}: {error.strerror}", error.errno)
            if order["sandbox"]:
                wanted = (reader, pid_writer, self._record_file, report)
                files = [fcntl.fcntl(file, F_DUPFD_CLOEXEC, 10) for file in wanted]  # above those that they become
                self._record_file = files[2]
                for number, file in enumerate(files, 3):
                    os.dup2(file, number)
                argv = [*order["sandbox"], "--", "/bin/sh", "-c", GATE, "sh", *argv]
            execute(argv, order["env"])
        except OSError as error:
            self._fail(f"{argv[0]}: {error.strerror}", error.errno)
        except BaseException as error:
            self._fail(f"{type(error).__name__}: {error}", 0)

    def _fail(self, reason: str, number: int | None) -> NoReturn:
        """End this process, in which the command did not begin: the reason is recorded in place of an exit code."""
        try:
            self._note_failure(reason, number)
        finally:
            os._exit(127)

    def _note_failure(self, reason: str, number: int | None) -> None:
        text = f"never {number or 0} " + " ".join(reason.split())
        os.pwrite(self._record_file, text.encode("utf-8", "replace")[: RECORD_BYTES - 1], 0)

    def wait(self, keeper: int = 0) -> None:
        """Wait until the last descendant is gone. The standby gives its keeper, and takes over when that dies."""
        while self._reap(keeper):
            if self._command == 0:
                self._next_signal({_signal.SIGCHLD, _signal.SIGUSR1}, None)
                self._pipes.close_input()
                continue
            seconds = None if self._watch_growth() else POLL_SECONDS
            if not self._move():
                seconds = POLL_SECONDS
            self._cap(2)
            number = self._next_signal({_signal.SIGCHLD, _signal.SIGUSR1, _signal.SIGIO}, seconds)
            if number == _signal.SIGIO and not self._pipes:
                self._next_signal({_signal.SIGCHLD, _signal.SIGUSR1}, BURST_SECONDS)

    def _move(self) -> bool:
        """Move what is in the pipes; a keeper that closes the input has its standby close its end, too."""
        moved = self._pipes.move()
        if self._pipes.close_input() and os.getppid() == self._standby:  # else the standby is dead, or this process
            os.kill(self._standby, _signal.SIGUSR1)
        return moved

    def _cap(self, tails: int) -> None:
        for output in self._outputs:
            output.cap(tails)

    def _watch_growth(self) -> bool:
        """Ask for one SIGIO when an output grows next; False where the kernel has no such thing."""
        self._pipes.watch()
        try:
            # keeper and standby share the open directory, and the kernel would go on to signal a keeper that is dead
            fcntl.fcntl(self._directory, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(self._directory, fcntl.F_NOTIFY, fcntl.DN_MODIFY)
        except OSError:
            return False
        return True

    def _next_signal(self, signals: set[int], seconds: float | None) -> int:
        """Wait for one of these signals, all of which are blocked; 0 if there was none in time."""
        found = _signal.sigwaitinfo(signals) if seconds is None else _signal.sigtimedwait(signals, seconds)
        number: int = found.si_signo if found is not None else 0
        if number == _signal.SIGUSR1 and self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1
        elif number == _signal.SIGUSR1:
            self._pipes.closing = True
        return number

    def _reap(self, keeper: int) -> bool:
        """Record the end of the command before it is reaped, reap the others; False when no child is left."""
        while True:
            try:
                child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self._pipes.move()
                self._cap(1)
                return False
            if child is None:
                return True
            if keeper and self._command == 0:
                self._command = self._claimed(keeper)
            if child.si_pid == self._command and not self._recorded:
                status = child.si_status if child.si_code == os.CLD_EXITED else -child.si_status
                self._pipes.move()
                self._cap(1)  # first, so that the record says how much was dropped
                self._record(status, "standby" if keeper else "keeper")
                self._recorded = True
            elif child.si_pid != keeper and (self._recorded or os.path.exists("exit")):
                self._note_left(child)
            os.waitpid(child.si_pid, 0)

    def _note_left(self, child: Any) -> None:
        """Write down how a process ended that the command had left behind; as many as fit into a block."""
        status = child.si_status if child.si_code == os.CLD_EXITED else -child.si_status
        try:
            file = os.open("left", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            if os.fstat(file).st_size < BLOCK:
                os.write(file, f"{child.si_pid} {status} {time.time():.6f}\n".encode())
            os.close(file)
        except OSError:
            return  # then it is not known

    def _claimed(self, keeper: int) -> int:
        """Read the pid of the command, if this keeper has claimed the directory."""
        try:
            file = os.open("claim", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            text = os.read(file, BLOCK).decode("utf-8", "replace")
            os.close(file)
            lines = dict(line.split(" ", 1) for line in text.splitlines())
        except (OSError, ValueError):
            return 0
        if lines.get("keeper", "").split(" ")[0] != str(keeper):
            return 0
        return int(lines["pid"].split(" ")[0])

    def _record(self, status: int, by: str) -> None:
        """Write the end into the file that was prepared for it: in place, fsync, rename, fsync of the directory."""
        for _ in range(RETRIES):
            try:
                if os.path.exists("exit"):
                    return
                record = os.pread(self._record_file, RECORD_BYTES, 0).partition(b"\n")[0]
                if not record.startswith(b"never ") and not record.endswith((b" keeper", b" standby")):
                    text = f"ended {status} {time.time():.6f} {by}\n"
                    os.pwrite(self._record_file, text.encode(), 0)
                os.fsync(self._record_file)
                os.rename("exit.pre", "exit")
                os.fsync(self._directory)
                return
            except FileNotFoundError:
                return  # the directory was removed
            except OSError:
                time.sleep(RETRY_SECONDS)


def subreaper() -> None:
    """Let orphans among the descendants of this process become its children."""
    itself = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
    _ctypes.call_function(_ctypes.dlsym(itself, "prctl"), (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def execute(argv: list[str], env: dict[str, str]) -> NoReturn:
    """Run the program in this process, found by `PATH`. Like `os.execvpe`, without its imports."""
    if "/" in argv[0]:
        os.execve(argv[0], argv, env)
    found: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for directory in env.get("PATH", os.defpath).split(":"):
        path = os.path.join(directory, argv[0])
        try:
            os.execve(path, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            if os.path.lexists(path):  # else we may not look into the directory, and the command may be elsewhere
                found = error
    raise found


def default_signals() -> None:
    """Reset the signals for the command: Python ignores SIGPIPE, and the parent process may have ignored more."""
    for number in _signal.valid_signals() - {_signal.SIGKILL, _signal.SIGSTOP}:
        if _signal.getsignal(number) != _signal.SIG_DFL:
            _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def limit_open_files(soft: int) -> None:
    """Lower the limit for the command: the gateway raised it for itself."""
    import resource  # here, so that a keeper without a server does not wait for it

    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def prefer_as_oom_victim() -> bool:
    """Let the kernel take a command rather than the gateway or a keeper."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(OOM_SCORE)
    except OSError:
        return False
    return True


def redirect_stdio() -> int:
    """Redirect stdio to nothing; return the descriptor of the report, which the supervisor reads until it is closed."""
    report = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.close(null)
    return report


def write_if_open(pipe: int, text: str) -> bool:
    """Write to a pipe; False if nobody reads it any longer."""
    try:
        os.write(pipe, text.encode("utf-8", "replace"))
    except OSError:
        return False
    return True


def main(directory: str) -> None:
    """Fork the keeper, and be its standby. An exception means that nothing was started, or that one of the two died."""
    os.fchdir(DIRECTORY)
    os.closerange(3, DESCRIPTORS)  # the command gets nothing that the gateway was started with
    with open(0, "rb", closefd=False) as file:
        order = marshal.load(file)
    report = redirect_stdio()
    os.umask(0o077)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, _signal.valid_signals())
    try:
        if os.path.exists("claim"):
            return
        this = Keeper(order, directory)
        subreaper()
        gc.disable()  # it would write to pages that keeper and standby share
        keeper = os.fork()
        if keeper == 0:
            this.start(report)
            this.wait()
            os._exit(0)
        os.close(report)
        this.wait(keeper)
    except OSError as error:
        write_if_open(report, f"{error.strerror}: {error.filename or ''}".strip(": "))
        raise


if __name__ == "__main__":
    main(sys.argv[1])
