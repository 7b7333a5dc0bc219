"""Questions of an agent (`elicitation/create`): a form becomes one question after the other, the answers one response.

What was asked is in the log (`OwedRequest.fields`), so the next worker after a crash asks the same, and answers once.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, isfinite
from typing import Any

import msgspec

from holdfast.domain.events.external_agent import AskedField, FieldKind, OwedRequest
from holdfast.domain.events.session import WaitAnswered
from holdfast.runtime.tools.tool import bounded

ACCEPT, SKIP, DECLINE = "accept", "skip this question", "decline to answer"
"""Choices of ours, beside those of the agent."""
CANCELLED = {"action": "cancel"}
MOST_FIELDS = 20
TEXT_SHOWN, TITLE_SHOWN = 2_000, 200
STORED = "What you answer is stored in the log, where it can be read."
YES_NO = {"yes": "true", "no": "false"}


class FormOption(msgspec.Struct, frozen=True):
    """One value of a field, with its name."""

    const: str
    title: str = ""
    description: str | None = None


class FormItems(msgspec.Struct, frozen=True, rename="camel"):
    """The values of which a field may have several."""

    enum: list[str] = []
    any_of: list[FormOption] = []


class FormField(msgspec.Struct, frozen=True, rename="camel"):
    """One field of a form, as JSON schema."""

    type: str = "string"
    title: str | None = None
    description: str | None = None
    enum: list[str] | None = None
    one_of: list[FormOption] | None = None
    items: FormItems | None = None
    minimum: float | None = None
    maximum: float | None = None
    meta: Any = msgspec.field(name="_meta", default=None)

    @property
    def is_secret(self) -> bool:
        """Whether the agent says that the answer is a secret."""
        codex = self.meta.get("codex") if isinstance(self.meta, dict) else None
        return isinstance(codex, dict) and codex.get("isSecret") is True


class Form(msgspec.Struct, frozen=True):
    """The fields of a form."""

    properties: dict[str, FormField] = {}
    required: list[str] | None = None


class ElicitationRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of `elicitation/create`."""

    mode: str = "form"
    message: str = ""
    requested_schema: Form = Form()
    meta: Any = msgspec.field(name="_meta", default=None)

    @property
    def is_asked(self) -> bool:
        """Whether it is a form that the agent waits for. Codex also asks while it continues: it would get no answer."""
        return self.mode == "form" and self._codex().get("delivery") != "async"

    @property
    def within_ms(self) -> int | None:
        """How long the agent waits for the answer, if it says so."""
        span = self._codex().get("autoResolutionMs")
        return span if isinstance(span, int) and span > 0 else None

    def _codex(self) -> dict[str, Any]:
        codex = self.meta.get("codex") if isinstance(self.meta, dict) else None
        return codex if isinstance(codex, dict) else {}


def asked_fields(request: ElicitationRequest, mask: Callable[[str], str]) -> list[AskedField]:
    """Return the questions of a form, in its order."""
    form, found = request.requested_schema, list[AskedField]()
    for name, field in list(form.properties.items())[:MOST_FIELDS]:
        kind, options = _kind(field)
        if found and kind == "text" and found[-1].options and name.startswith(f"{found[-1].name}_"):
            # for an answer of one's own, beside the options of the field before
            found[-1] = msgspec.structs.replace(found[-1], other=name)
            continue
        words = [field.title or "", field.description or "", STORED if field.is_secret else ""]
        found.append(
            AskedField(
                name=name,
                kind=kind,
                text=bounded(mask("\n".join(filter(None, words))), TEXT_SHOWN),
                options=options,
                details=[mask(one) for one in _details(field)],
                required=name in (form.required or []),
                minimum=field.minimum,
                maximum=field.maximum,
            )
        )
    return found


def _kind(field: FormField) -> tuple[FieldKind, dict[str, str]]:
    listed = field.one_of or (field.items.any_of if field.items is not None else [])
    names = field.enum or (field.items.enum if field.items is not None else [])
    options = {" ".join(one.title.split())[:TITLE_SHOWN] or one.const: one.const for one in listed}
    options |= {one: one for one in names}
    match field.type:
        case "array":
            return "choices", options
        case "boolean":
            return "boolean", YES_NO
        case "number" | "integer" as kind:
            return kind, {}
        case _:
            return ("choice" if options else "text"), options


def _details(field: FormField) -> list[str]:
    listed = field.one_of or (field.items.any_of if field.items is not None else [])
    return [f"{one.title or one.const}: {one.description}" for one in listed if one.description]


class Question(msgspec.Struct, frozen=True):
    """What a person is asked next."""

    key: str
    """Under which the answer is found."""
    text: str
    choices: list[str]


def next_question(owed: OwedRequest, answers: Mapping[str, WaitAnswered]) -> Question | dict[str, object]:
    """Return the next question of a form; or, if all are answered or the person declines, what the agent is answered.

    An answer that does not fit is followed by the same question, with the reason.
    """
    content: dict[str, object] = {}
    for index, field in enumerate(owed.fields or [CONSENT]):
        problem, attempt = "", 0
        while (given := answers.get(key := f"{owed.call}/{index}/{attempt}")) is not None:
            if given.answer == DECLINE:
                return {"action": "decline"}
            try:
                content |= _value(field, given.answer)
                break
            except ValueError as error:
                problem, attempt = f"{error}\n\n", attempt + 1
        else:
            return Question(key, problem + _text(owed, field), _choices(field))
    return {"action": "accept", "content": {name: value for name, value in content.items() if name}}


CONSENT = AskedField(name="", kind="choice", text="", options={ACCEPT: ACCEPT}, required=True)
"""What is asked where a form has no field."""


def _text(owed: OwedRequest, field: AskedField) -> str:
    several = "Choose any number of them, separated by commas." if field.kind == "choices" else ""
    own = "Or type an answer of your own." if field.other else ""
    words = (owed.reason, field.text if field.text != owed.reason else "", *field.details, several, own)
    return "\n\n".join(filter(None, words))


def _choices(field: AskedField) -> list[str]:
    return [*field.options, *([] if field.required else [SKIP]), DECLINE]


def _value(field: AskedField, answer: str) -> dict[str, object]:
    """Return the fields that an answer fills in. `ValueError` says why it does not fit."""
    if answer == SKIP and not field.required:
        return {}
    match field.kind:
        case "text":
            return {field.name: answer}
        case "boolean":
            return {field.name: _option(field, answer) == "true"}
        case "number" | "integer":
            return {field.name: _number(field, answer)}
        case "choice":
            if field.other and answer not in field.options:
                return {field.other: answer}
            return {field.name: _option(field, answer)}
        case "choices":
            return _several(field, answer)


def _option(field: AskedField, answer: str) -> str:
    names = list(field.options)
    if answer.isdecimal() and answer not in field.options and 1 <= int(answer) <= len(names):
        answer = names[int(answer) - 1]
    if answer not in field.options:
        raise ValueError(f"{bounded(answer, TITLE_SHOWN)!r} is none of: {', '.join(names)}.")
    return field.options[answer]


def _several(field: AskedField, answer: str) -> dict[str, object]:
    if answer in field.options:  # a name may have a comma
        return {field.name: [field.options[answer]]}
    chosen, own = list[str](), list[str]()
    for part in filter(None, (part.strip() for part in answer.split(","))):
        try:
            chosen.append(_option(field, part))
        except ValueError:
            if not field.other:
                raise
            own.append(part)
    found: dict[str, object] = {field.name: list(dict.fromkeys(chosen))} if chosen else {}
    return found | ({field.other: ", ".join(own)} if own else {})


def _number(field: AskedField, answer: str) -> float | int:
    try:
        found = int(answer) if field.kind == "integer" else float(answer)
    except ValueError:
        raise ValueError(f"{bounded(answer, TITLE_SHOWN)!r} is no {field.kind}.") from None
    if not isfinite(found):
        raise ValueError(f"{answer!r} is no number.")
    least = -inf if field.minimum is None else field.minimum
    most = inf if field.maximum is None else field.maximum
    if not least <= found <= most:
        raise ValueError(f"{answer} is not between {least:g} and {most:g}.")
    return found
