"""What a typed line means: a message, a slash command, or the answer to an open question. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from holdfast.client.sessions import WhatRuns
from holdfast.domain.transcript_items import WaitItem

_SLASH = re.compile(r"/([a-z]+(?:-[a-z]+)*)(?:\s+(.*))?\Z", re.DOTALL)
_WORDS = {"y": "allow", "yes": "allow", "n": "deny", "no": "deny"}
_ID = re.compile(r"[0-9a-fA-F]{4,32}\Z")
TASK_WORDS = frozenset(["status", "ls", "ps", "jobs", "tasks", "logs", "output", "tail", "info", "cancel", "find"])
"""Synonyms of the verbs of /tasks. A prompt for /bg that begins with one is probably a mistake."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command: what it takes (in brackets what may be left out), and what it does."""

    name: str
    takes: str
    does: str
    runs: str = ""
    """The command of the command line that it runs; SESSION means the session of the chat."""
    changes: bool = False
    """Whether input that is typed after it waits until it is done."""


COMMANDS = (
    SlashCommand("help", "", "list the commands; /tasks --help shows the verbs of /tasks"),
    SlashCommand("sessions", "[VERB …]", "list sessions, newest first; log, show, search, policy …", "sessions"),
    SlashCommand("resume", "ID", "open another session", changes=True),
    SlashCommand("new", "", "start a new session here", changes=True),
    SlashCommand(
        "reset", "[note]", "start a new chapter; `note`: the agent first writes a hand-over note", changes=True
    ),
    SlashCommand(
        "undo-reset", "", "let the model see the previous chapter again", "sessions undo-reset SESSION", changes=True
    ),
    SlashCommand(
        "compact",
        "[TEXT]",
        "summarise what the model sees; TEXT says what matters",
        "sessions compact SESSION",
        changes=True,
    ),
    SlashCommand("fork", "[VERSION]", "continue in a copy of this session, up to a version", changes=True),
    SlashCommand("rename", "TITLE", "change the title of this session", "sessions rename SESSION", changes=True),
    SlashCommand("steer", "TEXT", "add a message to the running turn, after the current tool calls"),
    SlashCommand("interrupt", "TEXT", "stop the turn and send a message"),
    SlashCommand("stop", "", "stop the turn (Ctrl-C); queued messages stay"),
    SlashCommand("withdraw", "[N]", "withdraw the last queued message, or message N", "sessions withdraw SESSION"),
    SlashCommand("undo", "", "hide the last turn from the model", "sessions undo SESSION", changes=True),
    SlashCommand(
        "repeat",
        "[TEXT]",
        "undo the last turn and send its message again, or TEXT",
        "sessions repeat SESSION",
        changes=True,
    ),
    SlashCommand("open", "[N]", "show a tool call in full (Ctrl-O: the last one)"),
    SlashCommand("thinking", "[N]", "show what the agent thought (Ctrl-T: the last time)"),
    SlashCommand("tasks", "[VERB …]", "list background tasks; history, log, show, stop, prune …", "tasks"),
    SlashCommand("stale", "", "list running commands that nobody seems to need", "tasks stale"),
    SlashCommand("background", "PROMPT", "start an agent in the background; notify this session of its end"),
    SlashCommand("bg", "PROMPT", "the same"),
    SlashCommand("board", "[VERB …]", "show the board by columns; list, pause, resume …", "board"),
    SlashCommand("card", "[VERB …]", "list the cards; add, show, comment, unblock, retry …", "card"),
    SlashCommand("why", "[ID]", "show what a session is doing or waiting for, and why", "why"),
    SlashCommand("inbox", "[ID]", "list everything that waits for you, in all sessions", "inbox"),
    SlashCommand("answer", "ID …", "answer what waits in any session: TEXT, --allow, --deny …", "answer"),
    SlashCommand("context", "", "show what the model sees, and its size", "sessions context SESSION"),
    SlashCommand("model", "[NAME]", "list models, or switch to one (`default`: the profile's own)", changes=True),
    SlashCommand("mode", "[MODE]", "show what the agent may do, or choose: profile, ask, read", changes=True),
    SlashCommand("models", "", "show the models that were found on this machine", "models"),
    SlashCommand("profile", "[NAME]", "list profiles, or switch to one", changes=True),
    SlashCommand("profiles", "[VERB …]", "list profiles; show, add, default", "profiles"),
    SlashCommand("notify", "[VERB …]", "show where notifications go; `never`: not of this session", "notify"),
    SlashCommand("devices", "[VERB …]", "list the browsers that are signed in; revoke", "devices"),
    SlashCommand("status", "", "show the gateway, and what is running", "status"),
    SlashCommand("export", "[FILE]", "write the conversation to a file (.md or .jsonl)"),
    SlashCommand("start", "", "start a gateway if none is running"),
    SlashCommand("detach", "", "make the running turn a background task, and leave"),
    SlashCommand("quit", "", "leave (Ctrl-D); the agent continues"),
)
BY_NAME = {command.name: command for command in COMMANDS}
SPEAKING = ("steer", "interrupt", "background", "card", "export", "detach")
"""Commands about the state of this session: they wait for the commands before them."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message to the agent."""

    text: str


@dataclass(frozen=True, slots=True)
class Slash:
    """A slash command; `running` is the choice to keep or stop running commands, once it was made."""

    name: str
    argument: str = ""
    running: WhatRuns | None = None

    @property
    def changes(self) -> bool:
        """Whether what is typed behind it waits for it."""
        return BY_NAME[self.name].changes

    @property
    def waits(self) -> bool:
        """Whether it waits for such a command; leaving, stopping and looking do not."""
        return self.changes or self.name in SPEAKING


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to what the turn waits for."""

    wait: str
    answer: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class InvalidInput:
    """Input that cannot be understood; `message` says what to type instead."""

    message: str


ParsedLine = ChatMessage | Slash | Answer | InvalidInput


def parse_line(text: str, wait: WaitItem | None) -> ParsedLine:
    """Parse a line; `wait` is the open question. A path is a message; `//` is a message with a leading slash."""
    stripped = text.strip()
    if stripped.startswith("//"):
        return _spoken(stripped[1:], wait)
    found = _SLASH.match(stripped)
    if found is None:
        return _spoken(text, wait)
    return _slash(found[1], (found[2] or "").strip())


def _slash(name: str, argument: str) -> Slash | InvalidInput:
    command = BY_NAME.get(name)
    if command is None:
        near = get_close_matches(name, BY_NAME, n=1)
        guess = f" Did you mean /{near[0]}?" if near else ""
        return InvalidInput(f"There is no /{name}.{guess} /help lists the commands; //{name} sends it to the agent.")
    if command.runs:
        return Slash(name, argument)
    if name in ("bg", "background"):
        return _background(argument)
    if command.takes and not command.takes.startswith("[") and not argument:
        return InvalidInput(f"/{name} needs an argument: /{name} {command.takes}")
    if name == "reset" and argument not in ("", "note"):
        return InvalidInput("/reset takes no argument, or `note`: then the agent first writes a hand-over note.")
    if not command.takes and argument:
        return InvalidInput(f"/{name} takes no argument; {argument!r} was not understood.")
    return Slash(name, argument)


def _background(prompt: str) -> Slash | InvalidInput:
    """Parse the prompt of /bg. A verb of /tasks is refused, unless `--` precedes it."""
    from holdfast.cli.commands.tasks import tasks

    first, *rest = prompt.split(None, 1) or [""]
    if first == "--" and rest:
        return Slash("background", rest[0])
    if first in ("", "--"):
        return InvalidInput("/bg needs a prompt for an agent: /bg PROMPT. /tasks lists what is running.")
    words = {*tasks.commands, *TASK_WORDS}
    is_short = not rest or _ID.match(rest[0]) is not None
    if first.lower() in words or (is_short and get_close_matches(first.lower(), words, n=1, cutoff=0.75)):
        return InvalidInput(f"/bg starts agents; for running tasks use /tasks. To start an agent: /bg -- {prompt}")
    return Slash("background", prompt)


def _spoken(text: str, wait: WaitItem | None) -> ChatMessage | Answer | InvalidInput:
    if wait is None or not wait.wants_answer:
        return ChatMessage(text)
    match wait.purpose:
        case "approval":
            return _approval(wait, text.strip())
        case "compaction" | "login" | "quota":
            return _of_choices(wait, text.strip())
        case _:
            return Answer(wait.wait, text.strip())


def _of_choices(wait: WaitItem, text: str) -> Answer | InvalidInput:
    """Parse an answer: a number or one of the choices."""
    found = _numbered(wait, text.lower())
    if found in wait.choices:
        return Answer(wait.wait, found)
    return InvalidInput(f"It waits for one of: {_listed(wait)}. /steer TEXT sends something else.")


def _numbered(wait: WaitItem, word: str) -> str:
    if word.isascii() and word.isdecimal() and 1 <= int(word) <= len(wait.choices):
        return wait.choices[int(word) - 1]
    return word


def _listed(wait: WaitItem) -> str:
    return " · ".join(f"{number} {choice}" for number, choice in enumerate(wait.choices, 1))


def _approval(wait: WaitItem, text: str) -> Answer | InvalidInput:
    """Parse an answer to an approval: a number or a word, and a note for the agent."""
    first, _, note = text.partition(" ")
    word = first.rstrip(".,:;!").lower()
    word = _numbered(wait, _WORDS.get(word, word))
    if text in wait.choices:  # an option of an external agent, in its own words
        return Answer(wait.wait, text)
    if word in wait.choices or word in wait.means:
        return Answer(wait.wait, word, note.strip())
    return InvalidInput(
        f"It waits for an approval: {_listed(wait)}. `deny REASON` gives a reason; /steer TEXT sends something else."
    )
