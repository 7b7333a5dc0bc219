"""The policy of a profile for a command line: `allow`, `ask` or `deny`.

A rule such as `terminal:git status *` is about one simple command, word by word. A last word `*` matches any
further words; a `*` inside of a word matches a part of it, as in a path.

- **deny** finds its command anywhere: under another path, quoted, behind `env` or `sudo`, in `sh -c '…'`, in
  substitutions, loops and functions. One that fits is enough, and nothing overrides it.
- **allow** matches a line only when each of its simple commands is allowed and there is nothing else in it.
- In doubt (a line that cannot be read, a command that is known only at run time, a denied name among the arguments)
  the user is asked, if there is any rule that denies or asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import takewhile

from holdfast.domain.rights import strictest
from holdfast.rules.patterns import literally, narrow
from holdfast.rules.programs import (
    CODE,
    LAUNCHERS,
    SHELLS,
    SUBCOMMANDS,
    family,
    hides_a_command,
    may_be_allowed_with_any_arguments,
    program,
    wrapped_command,
)
from holdfast.rules.shell_line import CommandLine, Redirection, SimpleCommand, Word, read_line
from holdfast.settings import Policy

MAX_NESTED = 4
"""How deep lines within lines (`sh -c "sh -c …"`) are read."""
MAX_STARTED = 2_000
MAX_RULE = 500
MAX_OPTIONS_TOGETHER = 6
"""How many letters may be between the dash and the value of the last option."""
INLINE_TOGETHER = re.compile(r"-[A-Za-z]*[ceErp].")
INLINE_CODE = re.compile(r"-\w*[ceEr]\Z|--(eval|command|execute|print|run)\b")
PLAIN_WORD = re.compile(r"[\w./:=@%+,-]*\Z")
READERS = SHELLS | {"xargs", "parallel"}
"""Programs that run what they read."""
TYPISTS = {"tmux", "screen", "xdotool", "ydotool"}
"""Programs that type into other programs."""


@dataclass(frozen=True, slots=True)
class CommandRules:
    """The rules about commands by policy, and the policy when none matches."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    otherwise: Policy = "ask"
    granted: Collection[str] = field(default_factory=tuple)
    """What a person allowed for the session; it comes before the rules that ask."""


def line_policy(text: str, rules: CommandRules, may_redirect: Callable[[Redirection], bool]) -> Policy:
    """The policy for one command line."""
    if not (rules.allow or rules.ask or rules.deny or rules.granted):
        return rules.otherwise
    line = read_line(text)
    started = StartedCommands(line)
    if any(is_denied_by(pattern, words) for pattern in rules.deny for words in started.all()):
        return "deny"
    if _is_literally(text, rules) and (line.readable or not rules.deny):
        return "allow"
    found: list[Policy] = [_command_policy(command, rules) for command in line.commands]
    if line.obstacles or not all(map(may_redirect, line.redirections)):
        found.append(rules.otherwise)
    closing = (*rules.deny, *rules.ask)
    if (closing and started.hidden) or any(map(started.mentions, closing)):
        found.append("ask")
    if any(is_denied_by(pattern, words) for pattern in rules.ask for words in started.indirect):
        found.append("ask")
    return strictest(found)


def _is_literally(text: str, rules: CommandRules) -> bool:
    """Whether a rule is this very line, character by character."""
    return any(literal(pattern) == text for pattern in (*rules.granted, *rules.allow))


def literal(pattern: str) -> str | None:
    """Return the only text that a pattern matches; None when it has a `*` or a `?` that is not in brackets."""
    pieces = re.findall(r"\[.\]|.", pattern, re.DOTALL)
    if any(piece in ("*", "?") for piece in pieces):
        return None
    return "".join(piece[1] if len(piece) == 3 else piece for piece in pieces)


def _command_policy(command: SimpleCommand, rules: CommandRules) -> Policy:
    """The longest pattern wins; at the same length, the one that asks."""
    if any(_opens(pattern, command.words) for pattern in rules.granted):
        return "allow"
    opening = [pattern for pattern in rules.allow if _opens(pattern, command.words)]
    closing = [pattern for pattern in rules.ask if is_denied_by(pattern, command.texts)]
    if not opening:
        return "ask" if closing else rules.otherwise
    if max(map(len, opening)) <= max(map(len, closing), default=-1):
        return "ask"
    if wrapped_command(command.texts) and all(_named(pattern) < 2 for pattern in opening):
        return _command_policy(SimpleCommand(command.words[1:]), rules)
    return "allow"


def _opens(pattern: str, words: tuple[Word, ...]) -> bool:
    """Whether an `allow` pattern matches a simple command, and allows nothing more."""
    parts = pattern.split()
    if not parts or not words or not words[0].exact or any(word.may_be_option for word in words):
        return False
    fixed = parts[:-1] if parts[-1] == "*" else parts
    if len(words) < len(fixed) or (len(words) > len(fixed) and fixed is parts):
        return False
    for part, word in zip(fixed, words, strict=False):
        if not word.exact or not _is_word(part, word.text):
            return False
    return not hides_a_command([word.text for word in words], _named(pattern))


def _is_word(part: str, word: str) -> bool:
    """Whether a pattern matches a word. A `*` matches part of a path: neither an option nor `..`."""
    if part == "*" or literal(part) == word:
        return True
    if ".." in word.split("/") or (word.startswith("-") and not part.startswith("-")):
        return False
    return narrow(part).fullmatch(word) is not None


def _named(pattern: str) -> int:
    """How many words at the beginning of a pattern match only one text."""
    parts = pattern.split()
    return next((at for at, part in enumerate(parts) if literal(part) is None), len(parts))


def is_denied_by(pattern: str, words: list[str]) -> bool:
    """Whether a `deny` or `ask` pattern matches a command: with any arguments, under any path of the program,
    and with options and their values between the words that it names.
    """
    parts = [part for part in pattern.split() if part != "*"]
    if not parts or not words:
        return bool(words)
    if not _is_program(parts[0], words[0]):
        return False
    at = 1
    for part in parts[1:]:
        while at < len(words) and not fnmatchcase(words[at], part):
            if not words[at].startswith("-") and not words[at - 1].startswith("-"):
                return False
            at += 1
        if at == len(words):
            return False
        at += 1
    return True


def _is_program(part: str, word: str) -> bool:
    if fnmatchcase(word, part):
        return True
    name = program(part)
    return fnmatchcase(program(word), name) if part == name or literal(name) == name else False


class StartedCommands:
    """Everything in a line that may be run as a command, and whether something is only known when it runs."""

    def __init__(self, line: CommandLine) -> None:
        self.direct: list[list[str]] = []
        self.indirect: list[list[str]] = []
        """The commands that other commands start: after `env`, in `sh -c '…'`."""
        self.hidden = not line.readable
        """There may be a command that cannot be seen."""
        self._unknown: list[list[str]] = []
        self._arguments: list[list[str]] = []
        self._seen: set[str] = set()
        self._read(line, depth=0)

    def all(self) -> list[list[str]]:
        """Each of them by its words."""
        return [*self.direct, *self.indirect]

    def mentions(self, pattern: str) -> bool:
        """Whether arguments or texts contain words that a `deny` or `ask` pattern would match as a command."""
        parts = [part for part in pattern.split() if part != "*"]
        if not parts:
            return False
        if len(parts) > 1 and any(_is_program(parts[0], words[0]) for words in self._unknown):
            return True
        return any(is_denied_by(pattern, words[at:]) for words in self._arguments for at in range(len(words)))

    def _read(self, line: CommandLine, *, depth: int) -> None:
        for command in line.commands:
            if command.words:
                (self.indirect if depth else self.direct).append(command.texts)
                self._look_into(command, depth)
        reads_commands = any(command.words and program(command.words[0].text) in READERS for command in line.commands)
        for document in line.documents:
            self._arguments.append(_tokens(document))
            if reads_commands:
                self._within(document, depth)

    def _look_into(self, command: SimpleCommand, depth: int) -> None:
        words = command.texts
        name = program(words[0])
        uncertain = any(word.may_be_option for word in command.words[1:])
        self._arguments.append(words[1:])
        for text in words[1:]:
            if not PLAIN_WORD.match(text) or text.startswith("-"):
                self._arguments += [_tokens(text), _tokens(re.sub(r"[\\'\"]", "", text))]
            if not PLAIN_WORD.match(text):
                self._arguments += [_tokens(value) for value in _option_values(text)]
        if uncertain:
            self._unknown.append(words)
        if not command.words[0].exact or name == "alias" or _runs_what_is_not_here(words):
            self.hidden = True
        if name not in LAUNCHERS and any(program(word) in SHELLS | {"eval"} for word in words[1:]):
            self.hidden = True  # whatever it is, it is given a shell
        if name in LAUNCHERS and words[1:2] != ["-v"]:  # `command -v` only looks
            self.hidden = self.hidden or uncertain
            self._launch(words, depth)
        for word in words[1:] if name == "git" else ():
            if "!" in word:  # an alias for the shell
                self._within(word.partition("!")[2], depth)

    def _launch(self, words: list[str], depth: int) -> None:
        if len(self.indirect) + len(words) > MAX_STARTED:
            self.hidden = True
            return
        self.indirect += [words[at:] for at in range(1, len(words))]
        values = [(value, words[at + 1 :]) for at in range(1, len(words)) for value in _option_values(words[at])]
        self.indirect += [[value, *rest] for value, rest in values]
        for text in {*words[1:], *(value for value, _ in values)}:
            if not PLAIN_WORD.match(text):
                self._within(text, depth)
        self._within(" ".join(words[1:]), depth)  # also if it is one plain word: `env sh` runs what it reads

    def _within(self, text: str, depth: int) -> None:
        """A line within a line."""
        if text in self._seen:
            return
        self._seen.add(text)
        line = read_line(text)
        if depth >= MAX_NESTED or not line.readable:
            self.hidden = True
        if depth < MAX_NESTED:
            self._read(line, depth=depth + 1)


def _option_values(word: str) -> list[str]:
    """What may be the value of an option that it is written together with: `rm x` of `-Srm x` and `-iSrm x`."""
    if not word.startswith("-") or word.startswith("--"):
        return []
    return [word[at:] for at in range(2, min(len(word), MAX_OPTIONS_TOGETHER + 2))]


def _runs_what_is_not_here(words: list[str]) -> bool:
    """Whether it runs a script, what it reads, or code of another language."""
    name, rest = program(words[0]), words[1:]
    if name in SHELLS or name in ("source", "."):
        return not any(re.match(r"-\w*c", word) for word in rest)
    if name in ("xargs", "parallel"):
        return any(word.startswith(("-I", "-i", "--replace")) or "{}" in word for word in rest)
    if name == "ssh":
        return len([word for word in rest if not word.startswith("-")]) < 2
    if family(name) not in CODE:
        return name in TYPISTS and bool(rest)
    leading = list(takewhile(lambda word: word.startswith("-") and word != "-m", rest))
    return (
        any(INLINE_CODE.match(word) for word in rest)
        or any(INLINE_TOGETHER.match(word) for word in leading)
        or not rest
        or "-" in rest
    )


def _tokens(text: str) -> list[str]:
    return [token for token in re.split(r"[\s;|&()<>'\"`$,=\[\]{}\\!:]+", text) if token]


def split_rules(rules: Iterable[tuple[str, Policy]], otherwise: Policy, granted: Collection[str]) -> CommandRules:
    """Sort the patterns of one tool by policy."""
    sorted_by: dict[Policy, list[str]] = {"allow": [], "ask": [], "deny": []}
    for pattern, policy in rules:
        sorted_by[policy].append(pattern)
    return CommandRules(
        tuple(sorted_by["allow"]), tuple(sorted_by["ask"]), tuple(sorted_by["deny"]), otherwise, granted
    )


def rule_to_offer(text: str) -> str:
    """The pattern that a person can allow instead of just this line: the command with any arguments, if that lets it
    do nothing else; otherwise the very line. Empty when the line is too long for a rule.
    """
    line = read_line(text)
    if len(line.commands) == 1 and not line.obstacles and not line.redirections:
        command = line.commands[0]
        needed = 2 if program(command.texts[0]) in SUBCOMMANDS else 1
        fixed = command.texts[:needed]
        pattern = " ".join([*fixed, "*"])
        plain = len(fixed) == needed and all(re.fullmatch(r"[A-Za-z0-9][\w.+-]*", word) for word in fixed)
        if plain and may_be_allowed_with_any_arguments(command.texts) and _opens(pattern, command.words):
            return pattern
    return literally(text) if len(text) <= MAX_RULE else ""
