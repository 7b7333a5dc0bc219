"""Who did something, in words."""

from __future__ import annotations

from holdfast.client.http import Json


def by(event: Json) -> str:
    """The person, agent or service behind an event, as people read it."""
    actor = event["by"]
    match actor["type"]:
        case "person":
            return str(actor["client"])
        case "agent":
            return f"the agent of session {actor['session']}"
        case "run":
            return f"run {actor['run']} of card {actor['card']}"
        case "task":
            return f"task {actor['task']}"
        case _:
            rule = f" rule {actor['rule']}" if actor.get("rule") else ""
            asked = f", applied by {actor['asked_by']['client']}" if actor.get("asked_by") else ""
            return f"the {actor['name']}{rule}{asked}"
