"""What a typed line means: a message, a slash command, or the answer to an open question. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from holdfast.cli.chat import background, card_words
from holdfast.domain.transcript_items import WaitItem

_SLASH = re.compile(r"/([a-z]+(?:-[a-z]+)*)(?:\s+(.*))?\Z", re.DOTALL)
_WORDS = {"y": "allow", "yes": "allow", "n": "deny", "no": "deny"}


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command: what it takes (in brackets what may be left out), and what it does."""

    name: str
    takes: str
    does: str


COMMANDS = (
    SlashCommand("help", "", "this list"),
    SlashCommand("sessions", "", "the sessions, newest first"),
    SlashCommand("resume", "ID", "go to another session"),
    SlashCommand("new", "", "begin a new session here"),
    SlashCommand(
        "reset", "[note]", "a new chapter with an empty context; with `note` the agent first writes a hand-over note"
    ),
    SlashCommand("undo-reset", "", "let the model see the chapter before again"),
    SlashCommand("compact", "[TEXT]", "make what the model sees shorter by a summary; TEXT says what matters"),
    SlashCommand("fork", "[VERSION]", "go on in a copy of this session, up to a version of it"),
    SlashCommand("rename", "TITLE", "give the session another title"),
    SlashCommand("steer", "TEXT", "say it now: it joins the turn after the calls in flight"),
    SlashCommand("interrupt", "TEXT", "stop the turn and say it"),
    SlashCommand("stop", "", "stop the turn (Ctrl-C); queued messages stay"),
    SlashCommand("undo", "", "take the last turn out of what the model sees"),
    SlashCommand("open", "[N]", "all of a tool call (Ctrl-O: of the last one)"),
    SlashCommand("thinking", "[N]", "what it thought (Ctrl-T: the last time)"),
    SlashCommand(
        "tasks", "[VERB ID]", "what runs in the background; /tasks history, log, show, stop, kill, wait, pin, prune"
    ),
    SlashCommand("stale", "", "what is running in the background and nobody seems to need"),
    SlashCommand("background", "PROMPT", "let an agent do it in the background; this session is notified when it ends"),
    SlashCommand("bg", "PROMPT", "the same; a verb of /tasks behind it is that verb: /bg status"),
    SlashCommand("board", "[NAME]", "the cards that agents work on, by column"),
    SlashCommand("card", "VERB [ID] …", f"a card: {', '.join(card_words.VERBS)}"),
    SlashCommand("why", "", "what it is doing or waiting for, and at whose request"),
    SlashCommand("inbox", "", "everything that waits for a person, in all sessions"),
    SlashCommand("context", "", "what the model sees, and about how large it is"),
    SlashCommand("model", "[NAME]", "the models, or go on with another (`default`: the profile's own)"),
    SlashCommand("models", "", "the models that were detected on this machine"),
    SlashCommand("profile", "[NAME]", "the profiles, or go on with another"),
    SlashCommand("profiles", "[VERB …]", "the profiles: list, show, add, default"),
    SlashCommand("devices", "[VERB …]", "the browsers that are signed in: list, revoke"),
    SlashCommand("export", "[FILE]", "write the conversation to a file (.md or .jsonl)"),
    SlashCommand("start", "", "start a gateway when none runs"),
    SlashCommand("detach", "", "make the running turn a task, and leave"),
    SlashCommand("quit", "", "leave (Ctrl-D); the work goes on"),
)
_BY_NAME = {verb.name: verb for verb in COMMANDS}

CHANGES = ("resume", "new", "fork", "profile", "model", "rename", "undo", "reset", "undo-reset", "compact")
"""What is typed behind one of these is meant for what comes of it, so it waits."""


@dataclass(frozen=True, slots=True)
class Message:
    """Something to say to the agent."""

    text: str


@dataclass(frozen=True, slots=True)
class Slash:
    """A command to the chat itself; `running` is what becomes of what runs, once somebody chose."""

    name: str
    argument: str = ""
    running: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to what the turn waits for."""

    wait: str
    answer: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class InvalidInput:
    """It cannot be meant like this; `message` says what could."""

    message: str


ParsedLine = Message | Slash | Answer | InvalidInput


def parse_line(text: str, wait: WaitItem | None) -> ParsedLine:
    """What a line means while this is waited for. A path is a message; `//` says a leading slash."""
    stripped = text.strip()
    if stripped.startswith("//"):
        return _said(stripped[1:], wait)
    found = _SLASH.match(stripped)
    if found is None:
        return _said(text, wait)
    return _slash(found[1], (found[2] or "").strip())


def _slash(name: str, argument: str) -> Slash | InvalidInput:
    verb = _BY_NAME.get(name)
    if verb is None:
        near = get_close_matches(name, _BY_NAME, n=1)
        guess = f" Did you mean /{near[0]}?" if near else ""
        return InvalidInput(f"There is no /{name}.{guess} /help lists what there is; //{name} says it to the agent.")
    if name in ("bg", "background", "tasks"):
        return _of_tasks(name, argument)
    if name == "card":
        meant = card_words.card(argument)
        return InvalidInput(meant.message) if isinstance(meant, card_words.Unclear) else Slash("card", meant.words)
    if verb.takes and not verb.takes.startswith("[") and not argument:
        return InvalidInput(f"/{name} needs more: /{name} {verb.takes}")
    if name == "reset" and argument not in ("", "note"):
        return InvalidInput("/reset takes nothing, or `note`: then the agent writes a note for the next chapter first.")
    if not verb.takes and argument:
        return InvalidInput(f"/{name} takes nothing; {argument!r} was not understood.")
    return Slash(name, argument)


def _of_tasks(name: str, argument: str) -> Slash | InvalidInput:
    match background.tasks(argument) if name == "tasks" else background.background(argument):
        case background.Unclear(message=message):
            return InvalidInput(message)
        case background.Prompt(text=text):
            return Slash("background", text)
        case background.Asked(verb=verb, about=about):
            return Slash("tasks", f"{verb} {about}".rstrip())


def _said(text: str, wait: WaitItem | None) -> Message | Answer | InvalidInput:
    if wait is None or not wait.wants_answer:
        return Message(text)
    match wait.purpose:
        case "approval":
            return _approval(wait, text.strip())
        case "compaction":
            return _of_choices(wait, text.strip())
        case _:
            return Answer(wait.wait, text.strip())


def _of_choices(wait: WaitItem, text: str) -> Answer | InvalidInput:
    """A number or the words of one; nothing else is guessed."""
    found = _numbered(wait, text.lower())
    if found in wait.choices:
        return Answer(wait.wait, found)
    return InvalidInput(f"It waits for one of: {_listed(wait)}. /steer TEXT says something else.")


def _numbered(wait: WaitItem, word: str) -> str:
    if word.isascii() and word.isdecimal() and 1 <= int(word) <= len(wait.choices):
        return wait.choices[int(word) - 1]
    return word


def _listed(wait: WaitItem) -> str:
    return " · ".join(f"{number} {choice}" for number, choice in enumerate(wait.choices, 1))


def _approval(wait: WaitItem, text: str) -> Answer | InvalidInput:
    """A number or a word; what follows it is told to the agent."""
    first, _, note = text.partition(" ")
    word = first.rstrip(".,:;!").lower()
    word = _numbered(wait, _WORDS.get(word, word))
    if word in wait.choices:
        return Answer(wait.wait, word, note.strip())
    return InvalidInput(
        f"It waits for a permission: {_listed(wait)}. `deny REASON` tells why; /steer TEXT says something else."
    )


AT_ONCE = ("quit", "stop", "help")
"""Leaving, stopping the turn and asking for help never wait."""


def is_at_once(text: str) -> bool:
    """Whether it is a command that waits for nothing, whatever is going on."""
    meant = parse_line(text, None)
    return isinstance(meant, Slash) and meant.name in AT_ONCE
