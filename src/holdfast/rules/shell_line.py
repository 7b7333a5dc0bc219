"""A shell command line, read by a parser: its simple commands, its redirections, and what makes it hard to judge.

Nothing is run or expanded. A word whose value is only known when it runs (`$x`, `*`, `~`) is not `exact`. Whatever is
not plainly a list of simple commands (a substitution, a loop, a function, a syntax error) is an *obstacle*: a rule that
allows commands does not allow such a line. Simple commands are collected from everywhere, also from inside of
substitutions, loops and functions, so that a rule that denies a command finds it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

MAX_LENGTH = 8_000
MAX_BRACKETS = 300
"""Characters that open something. Many of them make the parser slow, and no person reads such a line."""
MAX_DEPTH = 100

_SIMPLE = """
    program list pipeline command command_name word number string string_content raw_string concatenation
    redirected_statement file_redirect file_descriptor subshell compound_statement negated_command variable_assignment
    variable_name comment
"""
_WORDS = ("word", "number", "string", "raw_string", "ansi_c_string", "concatenation")
_PLAIN = frozenset(_SIMPLE.split())
"""What a line may consist of that is nothing but a list of simple commands."""
_OPERATORS = frozenset({";", "&&", "||", "|", "|&", "&", "\n", "(", ")", "{", "}", "!", '"', "="})
_REDIRECTIONS = frozenset({">", ">>", ">|", "<", "&>", "&>>", ">&", "<&", ">&-", "<&-"})
_OBSTACLES = {
    "command_substitution": "it has a command substitution",
    "process_substitution": "it has a process substitution",
    "simple_expansion": "it has a variable",
    "expansion": "it has a variable",
    "arithmetic_expansion": "it has an arithmetic expansion",
    "function_definition": "it defines a function",
    "heredoc_redirect": "it has a here-document",
    "herestring_redirect": "it has a here-string",
    "ansi_c_string": "it has a string with escapes ($'…')",
    "brace_expression": "it has a brace expansion",
    "declaration_command": "it changes variables",
    "unset_command": "it changes variables",
}
_HARMLESS_VARIABLE = re.compile(r"(LANG|LANGUAGE|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES|CI)\Z")
_HARMLESS_VALUE = re.compile(r"[A-Za-z0-9_.@:+-]*\Z")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
_PUNCTUATION = "();<>|&"


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command after its quotes are removed."""

    text: str
    exact: bool = True
    """False when its value is known only at run time."""
    may_be_option: bool = False
    """It is not exact, and what it becomes could begin with a dash or be several words."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """The words of one command, without redirections and assignments."""

    words: tuple[Word, ...]

    @property
    def texts(self) -> list[str]:
        """The words as plain text."""
        return [word.text for word in self.words]


@dataclass(frozen=True, slots=True)
class Redirection:
    """A file that is read or written."""

    target: Word
    writes: bool


@dataclass(slots=True)
class CommandLine:
    """What was found in a line."""

    commands: list[SimpleCommand] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    obstacles: list[str] = field(default_factory=list)
    """Why no rule that allows commands can allow it; empty when it is a list of simple commands."""
    documents: list[str] = field(default_factory=list)
    """The text of here-documents and here-strings, and the values of assignments: other commands may run them."""
    readable: bool = True
    """False when the parser did not understand it: then there may be commands that were not found."""

    def add_obstacle(self, reason: str) -> None:
        """Note it once."""
        if reason not in self.obstacles:
            self.obstacles.append(reason)


_LANGUAGE = Language(tree_sitter_bash.language())


@lru_cache(maxsize=64)
def read_line(text: str) -> CommandLine:
    """Parse a command line. It never fails: what cannot be read is said to be so."""
    if len(text) > MAX_LENGTH:
        return _unreadable(f"it is longer than {MAX_LENGTH} characters")
    if sum(map(text.count, "([{$<`")) > MAX_BRACKETS:
        return _unreadable(f"it has more than {MAX_BRACKETS} brackets")
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return _unreadable("it is no text")
    if "\0" in text:
        return _unreadable("it has a NUL character")
    if "\\\n" in text:
        return _joined_lines(text)
    line = CommandLine()
    if any(not char.isprintable() and char not in "\n\t" for char in text):
        line.add_obstacle("it has characters that cannot be seen")
    root = Parser(_LANGUAGE).parse(data).root_node
    if root.has_error:
        line.readable = False
        line.add_obstacle("its syntax is not understood")
    tokens = list(_walk(root, line))
    if not line.obstacles and not _agrees(text, tokens):
        line.readable = False
        line.add_obstacle("it can be read in more than one way")
    if not line.commands:
        line.add_obstacle("it has no command")
    return line


def _joined_lines(text: str) -> CommandLine:
    """Parse a line that continues after a backslash, which the parser takes for the end of a word.

    Where the backslash may be part of a quotation, a comment or a document, it is not known what is joined.
    """
    joined = read_line(text.replace("\\\n", ""))
    if not re.search(r"['#]|<<|\\\\", text):
        return joined
    return replace(joined, obstacles=[*joined.obstacles, "it can be read in more than one way"], readable=False)


def _unreadable(reason: str) -> CommandLine:
    return CommandLine(obstacles=[reason], readable=False)


def _walk(root: Node, line: CommandLine) -> Iterator[str]:
    """Note what each node means for the line; yields every word in order."""
    todo = [(root, 0)]
    while todo:
        node, depth = todo.pop()
        if depth > MAX_DEPTH:
            line.readable = False
            line.add_obstacle(f"it is nested more than {MAX_DEPTH} deep")
            continue
        _note(node, line)
        if (part := _token(node)) is not None:
            yield part
        todo += [(child, depth + 1) for child in reversed(node.children)]


def _note(node: Node, line: CommandLine) -> None:
    kind = node.type
    if node.is_named and kind not in _PLAIN:
        line.add_obstacle(_OBSTACLES.get(kind, "it is more than a list of simple commands"))
    elif not node.is_named and kind not in _OPERATORS and kind not in _REDIRECTIONS:
        line.add_obstacle("it is more than a list of simple commands")
    if kind == "((":  # arithmetic for one shell, a command within a command for another
        line.readable = False
    if kind == "command":
        line.commands.append(_command(node))
    elif kind in ("declaration_command", "unset_command", "test_command"):
        line.commands.append(SimpleCommand(tuple(Word(part) for part in _text(node).split())))
    elif kind == "redirected_statement":
        _words_behind_redirections(node, line)
    elif kind == "variable_assignment":
        _assignment(node, line)
    elif kind == "file_redirect":
        _redirection(node, line)
    elif kind == "heredoc_body":
        line.documents.append(_text(node))
    elif kind == "herestring_redirect":
        line.documents += [_word(child).text for child in node.named_children]
    elif kind == "comment" and _line_before(node).strip():
        line.add_obstacle("it has a comment behind a command")


def _token(node: Node) -> str | None:
    """The text of a node that is one token for every reader of shell lines; None for all others."""
    parent = node.parent
    above = parent.type if parent is not None else ""
    if node.type in _WORDS and above not in ("concatenation", "variable_assignment"):
        return _word(node).text
    if node.type in ("file_descriptor", "variable_assignment") or (not node.is_named and node.type in ("!", "{", "}")):
        return _assigned(node) if node.type == "variable_assignment" else _text(node)
    return None


def _agrees(text: str, tokens: list[str]) -> bool:
    """Whether a second, simpler reader finds the same words. Where two disagree, the shell may be a third."""
    without_comments = "\n".join("" if part.lstrip().startswith("#") else part for part in text.split("\n"))
    reader = shlex.shlex(without_comments, posix=True, punctuation_chars=_PUNCTUATION)
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t\n", True, ""
    try:
        found = list(reader)
    except ValueError:
        return False
    return _without_punctuation(found) == _without_punctuation(tokens)


def _without_punctuation(tokens: list[str]) -> list[str]:
    return [token for token in tokens if not token or token.strip(_PUNCTUATION)]


def _command(node: Node) -> SimpleCommand:
    words = []
    for child in node.children:
        if child.type == "command_name":
            words += [_word(child.children[0]) if child.children else Word("", exact=False)]
        elif child.is_named and child.type not in ("variable_assignment", "file_redirect", "herestring_redirect"):
            words.append(_word(child))
    return SimpleCommand(tuple(words))


def _assignment(node: Node, line: CommandLine) -> None:
    name, _, value = _assigned(node).partition("=")
    line.documents.append(value)
    in_front = node.parent is not None and node.parent.type == "command"
    if not in_front:
        line.add_obstacle("it changes variables")
    elif not _HARMLESS_VARIABLE.match(name) or not _HARMLESS_VALUE.match(value):
        line.add_obstacle(f"it sets {name} for a command")


def _assigned(node: Node) -> str:
    name, _, _ = _text(node).partition("=")
    values = [_word(child).text for child in node.named_children[1:]]
    return f"{name}={''.join(values)}"


def _redirection(node: Node, line: CommandLine) -> None:
    operator = next((child.type for child in node.children if not child.is_named), "")
    targets = _targets(node)
    if operator in (">&", "<&") and len(targets) == 1 and targets[0].exact and targets[0].text.rstrip("-").isdecimal():
        return  # a copy of a descriptor
    if operator in (">&-", "<&-") and not targets:
        return
    if len(targets) != 1 or operator not in _REDIRECTIONS or operator == "<&":
        line.add_obstacle("it has a redirection that is not understood")
        return
    line.redirections.append(Redirection(targets[0], writes=operator != "<"))


def _words_behind_redirections(node: Node, line: CommandLine) -> None:
    """In `env >file rm` the parser takes `rm` for another target; the shell takes it for a word of the command."""
    words = [word for child in node.children if child.type == "command" for word in _command(child).words]
    known = len(words)
    todo = [child for child in node.children if child.type != "command"]
    while todo:
        child = todo.pop(0)
        if child.type == "file_redirect":
            words += _targets(child)[1:]
        elif child.type == "heredoc_redirect":
            words += [_word(part) for part in child.named_children if part.type in _WORDS]
            todo += [part for part in child.named_children if part.type in ("file_redirect", "heredoc_redirect")]
    if len(words) > known:
        line.commands.append(SimpleCommand(tuple(words)))


def _targets(node: Node) -> list[Word]:
    return [_word(child) for child in node.named_children if child.type != "file_descriptor"]


def _line_before(node: Node) -> str:
    """Return the text before a node in its line."""
    root = node
    while root.parent is not None:
        root = root.parent
    data = root.text or b""
    # the root may begin behind white space
    return data[: node.start_byte - root.start_byte].rpartition(b"\n")[2].decode(errors="replace")


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


# --- words --------------------------------------------------------------------------------------


def _word(node: Node) -> Word:
    match node.type:
        case "word" | "number" | "test_operator":
            return _bare(_text(node))
        case "raw_string":
            return Word(_text(node)[1:-1])
        case "string" if all(child.type == "string_content" for child in node.named_children):
            return Word(re.sub(r'\\([$`"\\\n])', _escaped, _text(node)[1:-1]))
        case "ansi_c_string":
            return Word(_decoded(_text(node)[2:-1]), exact=False, may_be_option=True)
        case "concatenation":
            return _joined(node)
        case _:
            return Word(_text(node), exact=False, may_be_option=True)


def _joined(node: Node) -> Word:
    parts = [_word(child) if child.is_named else _bare(_text(child)) for child in node.children]
    text = "".join(part.text for part in parts)
    quoted = all(child.type in ("string", "raw_string") for child in node.children)
    if not quoted and _has_brace_expansion(_text(node)):
        return Word(text, exact=False, may_be_option=True)
    first = next((part for part in parts if part.text), Word(""))
    exact = all(part.exact for part in parts)
    return Word(text, exact, not exact and (not first.exact or first.text.startswith("-")))


def _bare(raw: str) -> Word:
    """A word without quotes; a backslash takes the meaning of the next character away."""
    text = re.sub(r"\\(.)", _escaped, raw, flags=re.DOTALL)
    plain = re.sub(r"\\.", "", raw, flags=re.DOTALL)
    if _has_brace_expansion(raw) or "$" in plain or "`" in plain:
        return Word(text, exact=False, may_be_option=True)
    if found := re.search(r"[*?\[]", plain):
        return Word(text, exact=False, may_be_option=found.start() == 0 or raw.startswith("-"))
    return Word(text, exact=not raw.startswith("~"))


def _has_brace_expansion(raw: str) -> bool:
    return "{" in raw and "}" in raw and ("," in raw or ".." in raw)


def _escaped(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _decoded(raw: str) -> str:
    """The inside of $'…'."""

    def one(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "xuU" and len(code) > 1:
            return chr(min(int(code[1:], 16), 0x10FFFF))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        if code[0] == "c" and len(code) > 1:
            return chr(ord(code[1]) & 0x1F)
        return _ESCAPES.get(code, code)

    hexadecimal = r"x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}"
    return re.sub(rf"\\({hexadecimal}|[0-7]{{1,3}}|c.|.)", one, raw, flags=re.DOTALL)
