"""From the id in a path, or a unique prefix of it, to the row that it names."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import HTTPConnection

from holdfast.domain.errors import NotFound
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.store.rows import CardRow, SessionRow, TaskRow, TitledWait

_ID = re.compile(r"[0-9a-f]{4,32}\Z")


class TaskConvertor(StringConvertor):
    """What may be the id of a task; the nouns beside it are not."""

    regex = r"(?!(?:agents|prune|search|stale)(?:/|$))[^/]+"


register_url_convertor("task", TaskConvertor())


def _checked(prefix: str, noun: str, *, hint: str) -> str:
    if not _ID.match(prefix):
        raise NotFound(f"{prefix[:80]!r} is not the id of a {noun}.", hint=hint)
    return prefix


async def find_session(at: Gateway, prefix: str) -> SessionRow:
    """The session that is named outside of a path."""
    return await at.store.session(_checked(prefix, "session", hint="`holdfast sessions` lists them."))


async def _session(connection: HTTPConnection, id: str) -> SessionRow:
    return await find_session(gateway_of(connection), id)


async def _task(connection: HTTPConnection, id: str) -> TaskRow:
    return await gateway_of(connection).store.task(_checked(id, "task", hint="`holdfast tasks` lists them."))


async def _card(connection: HTTPConnection, id: str) -> CardRow:
    return await gateway_of(connection).store.cards.card(_checked(id, "card", hint="`holdfast card list` lists them."))


async def find_wait(at: Gateway, prefix: str) -> TitledWait:
    """The wait that is named in a path or in an answer to it."""
    return await at.store.wait(_checked(prefix, "wait", hint="`holdfast inbox` lists what waits."))


SessionDep = Annotated[SessionRow, Depends(_session)]
TaskDep = Annotated[TaskRow, Depends(_task)]
CardDep = Annotated[CardRow, Depends(_card)]
