"""Which session, task or card an id names, for the commands that take any of them."""

from __future__ import annotations

from holdfast.cli.errors import CONFLICT, NOT_FOUND, CliError
from holdfast.client.client import Client
from holdfast.client.errors import ApiError
from holdfast.client.http import Json, quote


def resolve_id(client: Client, id: str) -> dict[str, str]:
    """Return the session, the task or the card that an id names; an agent task and its session have the same id.

    The whole id of one of them names that one, even if it is the beginning of another id.
    """
    found = {noun: known for noun in ("session", "task", "card") if (known := _find(client, noun, id))}
    found = {noun: known for noun, known in found.items() if known == id} or found
    if not found:
        raise CliError(
            f"There is no session, task or card {id.upper() if id.startswith('hf-') else id}.",
            hint="`holdfast sessions`, `holdfast tasks history` and `holdfast card list` list them.",
            code=NOT_FOUND,
        )
    if len(set(found.values())) > 1:
        listed = " and of ".join(f"{noun} {known}" for noun, known in found.items())
        raise CliError(f"{id} is the beginning of {listed}.", hint="Use more characters of the ID.", code=CONFLICT)
    return found


def _find(client: Client, noun: str, id: str) -> str:
    """Return the whole id; empty when there is none. A deleted one is an error."""
    try:
        found: Json = client.get(f"/v1/{noun}s/{quote(id)}")
    except ApiError as error:
        if error.status != 404:
            raise
        return ""
    return str((found if noun == "task" else found[noun])["id"])
