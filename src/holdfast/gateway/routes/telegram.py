"""Telegram: the bot, and the people who may use it, who are listed in the settings."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.config import ConfigError
from holdfast.domain.errors import NotFound, Rejected
from holdfast.edit_settings import SettingsChange, add_telegram_person, remove_telegram_person
from holdfast.gateway.openapi import Routes
from holdfast.gateway.requests import parse_body, person_name
from holdfast.gateway.responses import json_response
from holdfast.gateway.state import Gateway, gateway_of
from holdfast.notify.telegram.people import paired_person
from holdfast.schemas.telegram import PairPerson, RemovePerson, TelegramPerson, TelegramStatus, TelegramStranger

routes = Routes("telegram")


@routes.get("/v1/telegram", TelegramStatus)
async def show_telegram(request: Request) -> Response:
    """Show the bot, what is wrong with it, the people who may use it, and the strangers who asked to."""
    return json_response(_status(gateway_of(request)))


@routes.post("/v1/telegram/pair", TelegramStatus, body=PairPerson)
async def pair_person(request: Request) -> Response:
    """Let the person with this code talk to agents, and with `approve` answer approvals."""
    gateway = gateway_of(request)
    given = await parse_body(request, PairPerson)
    bot = gateway.notify.telegram
    if bot.token_problem:
        raise Rejected(bot.token_problem, hint="docs/telegram.md says how to set it up.")
    person = paired_person(bot.settings.token(), given.code, now=gateway.clock.now())
    if person is None:
        hint = "Write to the bot again: it sends a code that is good for an hour."
        raise NotFound("Nobody has this code, or it is too old.", hint=hint)
    await _edit(request, add_telegram_person(person, approve=given.approve))
    await gateway.notify.updates.welcome(person)
    return json_response(_status(gateway), status=202)


@routes.post("/v1/telegram/remove", TelegramStatus, body=RemovePerson)
async def remove_person(request: Request) -> Response:
    """Let a person neither talk nor approve any longer. What was said stays."""
    gateway = gateway_of(request)
    given = await parse_body(request, RemovePerson)
    settings = gateway.notify.telegram.settings
    if given.person not in {*settings.allow, *settings.approvers}:
        raise NotFound(f"{given.person} is not let in.", hint="`holdfast telegram` lists who is.")
    await _edit(request, remove_telegram_person(given.person))
    return json_response(_status(gateway), status=202)


async def _edit(request: Request, change: SettingsChange) -> None:
    try:
        await gateway_of(request).profiles.edit(change, by=person_name(request))
    except ConfigError as error:
        raise Rejected(str(error), hint="SettingsChange `allow` and `approvers` in [telegram] by hand.") from error


def _status(gateway: Gateway) -> TelegramStatus:
    bot, updates = gateway.notify.telegram, gateway.notify.updates
    settings = bot.settings
    known = sorted({*settings.allow, *settings.approvers})
    return TelegramStatus(
        is_on=bot.is_on,
        bot=updates.account.username if updates.account is not None and bot.is_on else "",
        problem=updates.state.problem,
        since=updates.state.since,
        people=[
            TelegramPerson(
                id=id, name=bot.names.get(id, ""), talks=id in settings.allow, approves=id in settings.approvers
            )
            for id in known
        ],
        strangers=[
            TelegramStranger(id=id, name=name, at=at)
            for id, (name, at) in updates.strangers.items()
            if id not in settings.allow
        ],
    )
