"""A rule allows `git *`, another denies `rm *`. An agent tries to run something else, or `rm`, all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.rules.shell_line import MAX_LENGTH, read_line
from holdfast.settings import Policy
from tests.attacks.rules import policy

GIT: dict[str, Policy] = {"terminal:git *": "allow"}
NO_RM: dict[str, Policy] = {"*": "allow", "terminal:rm *": "deny"}


@pytest.mark.parametrize(
    "line",
    [
        "git status",
        "  git   status  ",
        "git log --oneline -5 | git shortlog",
        "git add src/*.py && git commit -m 'a; b $(c)'",
        'git commit -m "x > y"',
        "git diff 2>&1",
        "git fetch >/dev/null 2>&1",
        "git status; git log &",
        "git status\ngit log\n",
        "# what is new\ngit status",
        "(git status; git log)",
        "{ git status; }",
        "! git diff --quiet",
        "LC_ALL=C git log",
        "git show stash@{0}",
        r"git add a\ b",
        "git log --format='%h::%s'",
        "git --no-pager log",
        "git log \\\n  --oneline",
    ],
)
def test_plain_commands_are_allowed(line: str) -> None:
    assert policy(line, GIT) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "git status; id",
        "git status\nid",
        "git status && id",
        "git status || id",
        "git status | sh",
        "git status & id",
        "git status |& id",
        "git log $(id)",
        "git log `id`",
        'git log "$(id)"',
        "git log <(id)",
        "git log > >(id)",
        "git log ${x:-$(id)}",
        "git log $((a[$(id)]))",
        "git $X",
        "git log $X",
        "$GIT status",
        "git log --output=/etc/cron.d/x",
        "git diff --outpu=x",
        "git init --template=/tmp/x",
        "git -c alias.x='!id' x",
        "git -calias.x='!id' x",
        "git --config-env=alias.x=X x",
        "git --exec-path=/tmp/evil status",
        "git -C /tmp/evil status",
        "git --git-dir=/tmp/evil status",
        "git x",
        "git config alias.x '!id'",
        "git bisect run id",
        "git rebase --exec id HEAD~1",
        "git submodule foreach id",
        "git difftool -x id",
        "git grep -Oid x",
        "git fetch --upload-pack=id .",
        "git fetch --upload-p=id .",
        "git push --receive-pack id .",
        "PATH=/tmp/evil git status",
        "LD_PRELOAD=/tmp/evil.so git status",
        "GIT_SSH_COMMAND=id git fetch",
        "GIT_EXTERNAL_DIFF=id git diff",
        "PATH=/tmp/evil; git status",
        "export PATH=/tmp/evil; git status",
        "git() { id; }; git status",
        "function git { id; }; git status",
        "alias git=id; git status",
        "hash -p /tmp/evil git; git status",
        "read PATH < x; git status",
        "printf -v PATH /tmp/evil; git status",
        "eval git status",
        ". ./evil; git status",
        "trap id EXIT; git status",
        "/tmp/evil/git status",
        "./git status",
        "~/git status",
        "g*t status",
        "{git,status}",
        "git $'status\\x3bid'",
        'git $"status"',
        "git status > /etc/passwd",
        "git status > notes",
        "git status >> ../x",
        "git status 2> .git/hooks/pre-commit",
        "git log < /etc/passwd",
        "git log <<EOF\nid\nEOF",
        "git log <<< id",
        "git status >& /tmp/x",
        "git status >&$X",
        "git status # harmless\rid",
        "git status\r\nid",
        "git status\x0bid",
        "git\xa0status; id",
        "git add *",
        "git add ?x",
        "git add {--all,x}",
        "git push --e=./evil origin",
        "git init --t=./evil x",
        "git init --separate-git-dir=x",
        "git apply --unsafe-paths x",
        "git format-patch -o /etc HEAD~1",
        "git fetch ext::id",
        "git status '",
        "git status (",
        "if git status; then id; fi",
        "for x in a; do git status; done",
        "[[ -f x ]] && git status",
        "sudo git status",
        "env git status",
        "xargs git status",
        "time git -c a=b status",
        "sh -c 'git status'",
        "",
        "   ",
        "# git status",
        "git status \x00 id",
        "git status " + "x" * MAX_LENGTH,
        "git log " + "(" * 2_000,
        "git log " + "$(" * 5_000,
        "a=(" * 2_000,
        "git \udcff",
    ],
)
def test_whatever_else_is_in_the_line_is_asked_for(line: str) -> None:
    assert policy(line, GIT) == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "rm x",
        "rm",
        "/bin/rm x",
        "./rm x",
        "\t rm x",
        r"\rm x",
        r"r\m x",
        "'r'm x",
        "r''m x",
        '"rm" x',
        "'rm' x",
        "$'\\x72m' x",
        "$'\\162m' x",
        "rm\\\n x",
        "r\\\nm x",
        "ls; rm x",
        "ls\nrm x",
        "ls && rm x",
        "ls | rm x",
        "ls & rm x",
        "cd x && rm y",
        "(rm x)",
        "{ rm x; }",
        "! rm x",
        "X=1 rm x",
        ">out rm x",
        "env X=1 rm x",
        "env >out rm x",
        "env <<E rm x\nE",
        "env <<E >out rm x\nE",
        "env -i rm x",
        "/usr/bin/env rm x",
        "sudo rm x",
        "sudo -u root rm x",
        "sudo env rm x",
        "nohup rm x &",
        "time rm x",
        "command rm x",
        "builtin rm x",
        "exec rm x",
        "nice -n 5 rm x",
        "timeout 5 rm x",
        "busybox rm x",
        "xargs rm < x",
        "ls | xargs -n1 rm",
        "find . -exec rm {} +",
        "find . -name x -execdir /bin/rm {} \\;",
        "sh -c 'rm x'",
        'bash -lc "ls; rm x"',
        "sh -c 'sh -c \"rm x\"'",
        "env sh -c 'rm x'",
        "eval rm x",
        "eval 'r''m x'",
        "echo $(rm x)",
        "echo `rm x`",
        'echo "a $(rm x) b"',
        "echo ${x:-$(rm y)}",
        "cat <(rm x)",
        "if true; then rm x; fi",
        "while true; do rm x; done",
        "for x in *; do rm $x; done",
        "case x in x) rm y;; esac",
        "f() { rm x; }; f",
        "cat <<EOF\n$(rm x)\nEOF",
        "sh <<EOF\nrm x\nEOF",
        "bash <<< 'rm x'",
        "git -c alias.x='!rm y' x",
        "docker run x rm y",
        "ssh host rm x",
        "ssh host 'rm x'",
        "watch 'rm x'",
        "coproc rm x",
        "trap 'rm x' EXIT",
        "rm x; echo 'unfinished",
        "env -S'rm x'",
        "env -Srm x",
        "env -iS'rm x'",
        "su -c'rm x'",
        "script -qc'rm x' /dev/null",
        "BASH_ENV='$(rm x)' bash -c :",
    ],
)
def test_promise_a_denied_command_is_found_anywhere_in_a_line(line: str) -> None:
    assert policy(line, NO_RM) == "deny"
    assert (
        policy(line, {"*": "allow", "terminal:*": "allow", "terminal:rm x": "allow", "terminal:rm": "deny"}) == "deny"
    )


@pytest.mark.parametrize(
    "line",
    [
        "$RM x",
        "${RM} x",
        "$(echo rm) x",
        "r? x",
        "/bin/r[m] x",
        "{rm,x}",
        "echo rm x | sh",
        "echo cm0geA== | base64 -d | sh",
        "sh ./script",
        ". ./script",
        'sh -c "$X"',
        "eval $X",
        "xargs -I{} {} x < names",
        "python3 -c 'import os; os.system(\"rm x\")'",
        "python3 -c \"__import__('os').system(chr(114)+'m x')\"",
        "perl -e 'unlink \"x\"'",
        "alias l=rm\nl x",
        "perl -e'unlink \"x\"'",
        "python3 -c'import os'",
        "echo code | python3",
        "python3 - < code",
        "ssh host < script",
        "tmux send-keys r m ' ' x",
        "x='$(rm y)'; echo \"${x@P}\"",
        "x='a[$(rm y)]'; echo $((x))",
        "EDITOR='rm x' git commit",
        "tar -I'rm x' -cf a b",
        "git rebase -x'rm x' HEAD~1",
        "sort --compress-program=rm x",
        "unknown-launcher rm x",
        "unknown-launcher 'rm x'",
        "x" * (MAX_LENGTH + 1),
        "echo '",
        "echo \x00",
        "a=(" * 2_000,
    ],
)
def test_in_doubt_about_a_denied_command_somebody_is_asked(line: str) -> None:
    assert policy(line, NO_RM) == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "ls -la",
        "echo $HOME | tr a b",
        "for x in *; do echo $x; done",
        "farm x",
        "rmdir x",
        "ls -lrm",
        "a=1; echo $a",
        "ls > x",
    ],
)
def test_a_rule_that_denies_one_command_leaves_the_others_alone(line: str) -> None:
    assert policy(line, NO_RM) == "allow"


@pytest.mark.parametrize(
    ("line", "rules", "expected"),
    [
        ("git push", {"terminal:git *": "allow", "terminal:git push *": "ask"}, "ask"),
        ("git -C x push -f", {"*": "allow", "terminal:git push *": "deny"}, "deny"),
        ("git status", {"terminal:git *": "ask", "terminal:git status *": "allow"}, "allow"),
        ("git status -s", {"terminal:git status": "allow"}, "ask"),
        ("git status", {"terminal:git status": "allow"}, "allow"),
        ("git status", {"terminal:git *": "deny", "terminal:git status *": "allow"}, "deny"),
        ("git status", {"terminal": "deny", "terminal:git *": "allow"}, "allow"),
        ("git status; id", {"terminal": "deny", "terminal:git *": "allow"}, "deny"),
        ("git log $(id)", {"terminal": "deny", "terminal:git *": "allow"}, "deny"),
        ("anything $(at all)", {"terminal": "allow"}, "allow"),
        ("anything $(at all)", {"terminal:*": "allow"}, "ask"),
        ("anything at all", {"terminal:*": "allow"}, "allow"),
        ("sh -c 'git push'", {"*": "allow", "terminal:git push *": "ask"}, "ask"),
        ("make && make lint", {"terminal:make && make lint": "allow"}, "allow"),
        ("make && make lint; id", {"terminal:make && make lint": "allow"}, "ask"),
        ("echo *", {"terminal:echo [*]": "allow"}, "allow"),
        ("echo x", {"terminal:echo [*]": "allow"}, "ask"),
        ("cat docs/a", {"terminal:cat docs/*": "allow"}, "allow"),
        ("cat docs/../a", {"terminal:cat docs/**": "allow"}, "ask"),
        ("cat docs/a b", {"terminal:cat docs/*": "allow"}, "ask"),
        ("cat docs/*", {"terminal:cat docs/*": "allow"}, "ask"),
        ("rm --x.tmp", {"terminal:rm *.tmp": "allow"}, "ask"),
        ("time git status", {"terminal:git *": "allow", "terminal:time *": "allow"}, "allow"),
        ("time id", {"terminal:git *": "allow", "terminal:time *": "allow"}, "ask"),
        ("sudo id", {"terminal:sudo *": "allow"}, "ask"),
        ("sudo systemctl restart x", {"terminal:sudo systemctl *": "allow"}, "allow"),
        ("sudo sh -c id", {"terminal:sudo sh *": "allow"}, "ask"),
        ("timeout 5 id", {"terminal:timeout 5 *": "allow"}, "ask"),
        ("timeout 5 pytest -q", {"terminal:timeout 5 pytest *": "allow"}, "allow"),
        ("bash ci/test.sh -v", {"terminal:bash ci/test.sh *": "allow"}, "allow"),
        ("bash -c id", {"terminal:bash *": "allow"}, "ask"),
        ("find . -name x", {"terminal:find *": "allow"}, "allow"),
        ("find . -exec id +", {"terminal:find *": "allow"}, "ask"),
        ("find . -delete", {"terminal:find *": "allow"}, "ask"),
        ("ls", {}, "ask"),
        ("ls", {"*": "deny"}, "deny"),
        ("ls", {"write:docs/*": "allow"}, "ask"),
    ],
)
def test_which_rule_wins(line: str, rules: dict[str, Policy], expected: Policy) -> None:
    assert policy(line, rules) == expected


def test_redirections_stay_in_the_workspace_and_follow_the_rules_for_files(tmp_path: Path) -> None:
    rules: dict[str, Policy] = {
        "terminal:echo *": "allow",
        "terminal:cd *": "allow",
        "write:out/*": "allow",
        "read:.env": "deny",
    }
    (tmp_path / "out").mkdir()
    (tmp_path / "outside").symlink_to("/etc")
    expected: dict[str, Policy] = {
        "echo x > out/a": "allow",
        "echo x >> ./out/../out/a": "allow",
        "echo x > a": "ask",
        "echo x > out/../../a": "ask",
        "echo x > outside/passwd": "ask",
        "echo x > out/$X": "ask",
        "cd /tmp; echo x > out/a": "ask",
        "echo x < out/a": "allow",
        "echo x < .env": "ask",
        "echo x > out/.git/config": "ask",
        "echo x > /dev/tcp/host/80": "ask",
    }
    assert {line: policy(line, rules, cwd=tmp_path) for line in expected} == expected
    assert policy("echo x > out/.git/config", rules | {"write:**": "allow"}, cwd=tmp_path) == "ask"


def test_what_was_granted_for_the_session_joins_the_rules_and_overrides_no_denial() -> None:
    rules: dict[str, Policy] = {"terminal:git *": "allow", "terminal:rm *": "deny", "terminal:npm *": "ask"}
    assert policy("git status && npm test", rules) == "ask"
    assert policy("git status && npm test", rules, granted=("terminal:npm test",)) == "allow"
    assert policy("rm x", rules, granted=("terminal:rm *", "terminal:rm x")) == "deny"
    assert policy("git log $(date)", rules, granted=("terminal:git log $(date)",)) == "allow"


def test_a_line_within_the_bounds_is_read_quickly_whatever_is_in_it() -> None:
    for piece in ("a=(", "${", "<<a ", "<<<(", "[[ (", "case a in (", "$((", "`", "((", '"$('):
        assert read_line((piece * MAX_LENGTH)[:MAX_LENGTH]).obstacles


@pytest.mark.parametrize("count", [60, 120, 1_000])
def test_what_is_nested_too_deep_to_be_read_is_never_allowed(count: int) -> None:
    assert policy("{ " * count + "rm x" + "; }" * count, NO_RM) != "allow"


@pytest.mark.parametrize("count", [10, 1_998, 2_500, 9_000])
def test_a_command_line_that_is_too_long_to_check_is_never_allowed(count: int) -> None:
    for command in ("rm x", "sh script"):
        assert policy("env " + "a " * count + command, NO_RM) != "allow"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("git push", "deny"),
        ("/usr/bin/git push", "deny"),
        ("git -C x push", "deny"),
        ("git --no-pager push origin", "deny"),
        ("git", "allow"),
        ("git --no-pager", "allow"),
        ("git status", "allow"),
        ("git status push", "allow"),
        ("gitk push", "allow"),
    ],
)
def test_a_denial_of_a_subcommand_closes_that_one_and_no_other(line: str, answer: Policy) -> None:
    assert policy(line, {"*": "allow", "terminal:git push *": "deny"}) == answer


@pytest.mark.parametrize("answer", ["deny", "ask"])
def test_a_rule_about_every_command_closes_every_command(answer: Policy) -> None:
    rules: dict[str, Policy] = {"*": "allow", "terminal:*": answer}
    assert [policy(line, rules) for line in ("ls", "git log ls", "env ls", "true; ls")] == [answer] * 4
