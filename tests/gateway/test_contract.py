"""The OpenAPI document is the contract: schemathesis asks for everything that it allows and forbids.

Every second request about a session is about one that exists, so that not all of them end with 404.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings

from holdfast.gateway.openapi import describe
from holdfast.gateway.server import PARTS
from tests.e2e.gateway import GatewayProcess
from tests.eventually import PATIENCE

REFUSED = ["400", "401", "403", "404", "405", "409", "410", "413"]
ACCEPTED = ["2xx", "404", "409", "410"]
CHECKS = {
    "negative_data_rejection": {"expected-statuses": REFUSED},
    "positive_data_acceptance": {"expected-statuses": ACCEPTED},
}
# A blank text, a profile and a directory that do not exist are right by their shape and wrong by their meaning.
BY_MEANING = {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, "400"]}}
CONFIG = {
    "generation": {"allow-extra-parameters": False, "with-security-parameters": False},
    "checks": CHECKS,
    "operations": [{"include-method": method, "checks": BY_MEANING} for method in ("POST", "PATCH")],
}
DOCUMENT = describe(PARTS)
number = count()


def operations(*, every_boundary: bool) -> Any:
    """Return the routes to try; every boundary of every field makes about forty requests of each."""
    phases = {"coverage": {"enabled": every_boundary}}
    config = schemathesis.Config.from_dict(CONFIG | {"phases": phases})
    schema = schemathesis.openapi.from_dict(DOCUMENT, config=config)
    return schema.exclude(path=["/v1/shutdown", "/v1/restart", "/v1/login"])


def with_examples(count: int) -> settings:
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@operations(every_boundary=False).parametrize()
@with_examples(5)
def test_contract(case: schemathesis.Case[Any], gateway: GatewayProcess) -> None:
    check(case, gateway)


def check(case: schemathesis.Case[Any], gateway: GatewayProcess) -> None:
    if "id" in (case.path_parameters or {}) and next(number) % 2:
        case.path_parameters["id"] = gateway.create()
    case.call_and_validate(gateway.url, headers={"Authorization": f"Bearer {gateway.token}"}, timeout=PATIENCE)


def test_the_document_is_what_the_gateway_serves(gateway: GatewayProcess) -> None:
    assert gateway.get("/v1/openapi.json") == DOCUMENT
    assert DOCUMENT["security"] == [{"bearer": []}]
    assert DOCUMENT["paths"]["/healthz"]["get"]["security"] == []
