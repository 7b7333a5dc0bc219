"""The OpenAPI document is the contract: schemathesis asks for everything that it allows and forbids.

Every second request about a session is about one that exists, so that not all of them end with 404.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
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
@with_examples(10)
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


def parameters() -> list[str]:
    """What can be asked of each path, within which limits, and what is meant when it is left out."""
    found = []
    for path, operations in sorted(describe(PARTS)["paths"].items()):
        for method, operation in operations.items():
            for one in operation["parameters"]:
                if one["in"] == "query":
                    required = " required" if one["required"] else ""
                    shape = msgspec.json.encode(one["schema"], order="sorted").decode()
                    found.append(f"{method.upper()} {path} {one['name']}{required} {shape}")
    return found


def test_every_parameter_has_the_limits_and_the_default_that_it_had(request: pytest.FixtureRequest) -> None:
    path = Path(__file__).parents[1] / "golden" / "parameters.txt"
    if request.config.getoption("--regenerate"):
        path.write_text("\n".join(parameters()) + "\n")
    assert parameters() == path.read_text().splitlines(), "if it is meant: --regenerate"
