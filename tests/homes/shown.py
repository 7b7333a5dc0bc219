"""What a gateway shows of its home, in a form that does not depend on the names of its fields."""

from __future__ import annotations

import re

from tests.e2e.gateway import GatewayProcess, Json, until

_TIME = re.compile(r", \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")


def shown(gateway: GatewayProcess) -> Json:
    """Conversations, tasks, cards and what waits for a person, once nothing is left to do."""
    until(lambda: not _busy(gateway), "all turns are over or wait for a person")
    lists = [gateway.get("/v1/sessions", limit=100, archived=archived)["sessions"] for archived in ("false", "true")]
    tasks = gateway.get("/v1/tasks", all="true", limit=100)["tasks"]
    return {
        "sessions": {session["id"]: _session(gateway, session) for sessions in lists for session in sessions},
        "tasks": {task["id"]: _task(gateway, task) for task in tasks},
        "cards": {id: _card(gateway, id) for id in _cards(gateway)},
        "inbox": sorted([entry["kind"], entry["title"]] for entry in gateway.get("/v1/inbox")["entries"]),
    }


def _busy(gateway: GatewayProcess) -> list[str]:
    states = [session["state"] for session in gateway.get("/v1/sessions", limit=100)["sessions"]]
    return [state for state in states if state not in ("idle", "waiting")]


def _session(gateway: GatewayProcess, session: Json) -> Json:
    text = gateway.request("GET", f"/v1/sessions/{session['id']}/export").text
    return {"title": session["title"], "state": session["state"], "transcript": _TIME.sub("", text).splitlines()}


def _task(gateway: GatewayProcess, task: Json) -> Json:
    kept = ("kind", "title", "state", "exit_code", "pinned")
    output = gateway.request("GET", f"/v1/tasks/{task['id']}/output").text if task["kind"] == "process" else ""
    return {key: task[key] for key in kept} | {"output": output}


def _cards(gateway: GatewayProcess) -> list[str]:
    pages = [gateway.get("/v1/cards", archived=archived)["cards"] for archived in ("false", "true")]
    return sorted({card["id"] for page in pages for card in page})


def _card(gateway: GatewayProcess, id: str) -> Json:
    found = gateway.get(f"/v1/cards/{id}")
    card = {key: found["card"][key] for key in ("board", "title", "profile", "status")}
    runs = [[run["run"], run["session"], run["outcome"]] for run in found["runs"]]
    comments = [comment["text"] for comment in found["comments"]]
    return card | {"summary": found["summary"], "runs": runs, "comments": comments}
