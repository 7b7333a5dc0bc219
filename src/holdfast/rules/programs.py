"""Programs that start other programs, or that a rule should not allow with any arguments."""

from __future__ import annotations

import re
from posixpath import basename


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS = _names("sh bash dash zsh ksh mksh ash fish csh tcsh rbash pwsh")
TRANSPARENT = _names("time nohup command builtin nice setsid")
"""Wrappers that run the words after them as they are, when there is no option in between."""
_WRAPPERS = """
    env sudo doas su runuser pkexec exec ionice stdbuf setarch linux32 linux64 unshare nsenter xargs parallel
    watch script busybox toybox coproc eval strace ltrace valgrind systemd-run setpriv bwrap firejail proot
    fakeroot dbus-run-session xvfb-run
"""
WRAPPERS = dict.fromkeys(TRANSPARENT | _names(_WRAPPERS), 0) | dict.fromkeys(
    _names("timeout chroot flock taskset chrt ssh"), 1
)
"""Programs whose purpose is to start another one, and how many words come before its name."""
_OTHER_LAUNCHERS = """
    find fd trap entr gdb perf start-stop-daemon capsh tmux screen at batch crontab uv uvx npx bunx pnpx pipx
    poetry pipenv direnv docker podman kubectl nix nix-shell numactl prlimit
"""
LAUNCHERS = SHELLS | frozenset(WRAPPERS) | _names(_OTHER_LAUNCHERS)
"""What they start may be among their arguments: as words, or as a line for a shell."""
CODE = _names("python pypy perl ruby node nodejs deno bun php lua luajit tclsh Rscript julia osascript groovy scala")
"""Programs that take code of another language among their arguments."""
_TOOLS_THAT_RUN_THINGS = """
    expect awk gawk mawk nawk sed gsed ed ex vi vim nvim emacs jshell ghci irb psql mysql sqlite m4 bc dc make
    gmake cmake ninja just task rake gradle mvn ant bazel npm yarn pnpm cargo go tar rsync scp sftp git-shell
    man less more pager gcc cc clang ld java ansible terraform openssl zip curl wget dd tee
    pip apt apt-get brew gh gem conda mamba dnf yum pacman snap flatpak helm dpkg rpm mount umount logrotate run-parts
    pytest tox nox coverage pre-commit mypy pylint jest vitest mocha eslint prettier tsc tsx ts-node webpack vite rollup
    c++ g++ clang++ rustc javac kotlin swift dotnet ghc mix elixir iex erl escript R octave gnuplot
    tex latex pdflatex xelatex lualatex nano pico micro view rvim vimdiff emacsclient tig hg svn ctags
    rg sort split csplit uniq shuf iconv xxd tree patch cp mv ln install truncate unzip cpio bsdtar ar
    nc ncat netcat socat telnet ftp lftp ip aws gcloud az rclone ffmpeg yt-dlp aria gpg ssh-keygen ssh-add mongo
    mongosh redis-cli mysqldump pg_dump vagrant packer puppet holdfast
"""
INTERPRETERS = CODE | _names(_TOOLS_THAT_RUN_THINGS)
"""With the right arguments they run code, start programs, write files anywhere, or approve what an agent asks for."""
_BUILTINS = """
    . source eval exec trap alias unalias shopt set enable hash bind complete compgen compopt fc history read
    mapfile readarray getopts let unset export declare typeset local readonly coproc wait popd pushd caller
"""
CHANGE_THE_SHELL = _names(_BUILTINS)
"""Builtins that change what the commands behind them mean, or that run something that is not in the line."""
_OF_GIT = """
    add apply blame branch cat-file check-ignore checkout cherry cherry-pick clean commit count-objects describe
    diff diff-tree fetch for-each-ref format-patch gc init log ls-files ls-tree merge merge-base mv notes pull
    push reflog reset restore rev-list rev-parse revert rm shortlog show show-ref stash status switch tag
    worktree version whatchanged
"""
_GIT_COMMANDS = _names(_OF_GIT)
"""Commands of git itself, which no alias can replace, and which start nothing that their arguments name."""
_GIT_RUNS = (
    "--exec",
    "--upload-pack",
    "--receive-pack",
    "--open-files-in-pager",
    "--extcmd",
    "--ext-diff",
    "--textconv",
    "--output",
    "--output-directory",
    "--template",
    "--separate-git-dir",
    "--unsafe-paths",
)
"""Options that make git start a program, or write a file anywhere."""
_GIT_OPTIONS = _names("--no-pager -P --version --no-optional-locks --literal-pathspecs")
SUBCOMMANDS = _names("git systemctl")
"""Programs whose second word is a subcommand: a rule for any arguments names it, too."""


def program(word: str) -> str:
    """The name of a program without its directory."""
    return basename(word.rstrip("/")) or word


def family(word: str) -> str:
    """The name of a program without its directory and its version: `python` for `/usr/bin/python3.11`."""
    name = program(word)
    return re.sub(r"[-.\d]+\Z", "", name) or name


def hides_a_command(words: list[str], named: int = 0) -> str:
    """Return why the words of a simple command do not show all that it runs; empty when they do.

    The first `named` words are in the rule itself: `sudo systemctl *` names what `sudo` starts.
    """
    name, rest = program(words[0]), words[1:]
    if name in CHANGE_THE_SHELL or (name == "printf" and rest[:1] == ["-v"]):
        return f"`{name}` changes what other commands mean"
    if name in SHELLS and (named < 2 or not rest or rest[0].startswith(("-", "+"))):
        return f"`{name}` runs a text or a file" if rest else f"`{name}` runs what it reads"
    if name in ("find", "fd"):
        does = ("-exec", "-ok", "--exec", "-x", "-X", "-fprint", "-fls", "-del")
        more = next((word for word in rest if word.startswith(does)), "")
        return f"`{name} {more}` does more than search" if more else ""
    if name in TRANSPARENT and named < 2:  # the command after it needs its own rule
        return f"`{name}` has options" if rest and rest[0].startswith("-") else ""
    if name in WRAPPERS:
        before = WRAPPERS[name] + 1
        if named <= before or any(word.startswith("-") or "=" in word for word in words[1 : before + 1]):
            return f"`{name}` starts other commands"
        return hides_a_command(words[before:], named - before)
    return _git_hides(rest) if name == "git" else ""


def _git_hides(words: list[str]) -> str:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] not in _GIT_OPTIONS:
            return f"`git {words[at].partition('=')[0]}` can make git run anything"
        at += 1
    if at < len(words) and words[at] not in _GIT_COMMANDS:
        return f"`git {words[at]}` may be an alias, or start other commands"
    if words[at : at + 1] == ["format-patch"] and any(re.match(r"-[a-zA-Z0-9]*o", word) for word in words):
        return "`git format-patch -o` can write files anywhere"
    for word in words[at:]:
        if words[at] in ("fetch", "pull", "push") and re.match(r"[A-Za-z][\w+.-]*::", word):
            return f"`git {words[at]} {word.partition('::')[0]}::` can make git run a program"
        name = word.partition("=")[0]
        if len(name) > 2 and any(option.startswith(name) for option in _GIT_RUNS):  # git takes abbreviations
            return f"`git … {name}` can make git run programs or write files anywhere"
    return ""


def wrapped_command(words: list[str]) -> list[str]:
    """The command that a transparent wrapper runs, if these words are one."""
    return words[1:] if program(words[0]) in TRANSPARENT and words[1:2] and not words[1].startswith("-") else []


def may_be_allowed_with_any_arguments(words: list[str]) -> bool:
    """Whether a person can be offered a rule for this program with any arguments."""
    name = program(words[0])
    if name in LAUNCHERS | CHANGE_THE_SHELL or INTERPRETERS & {name, family(name)} or "/" in words[0]:
        return False
    return not hides_a_command(words)
