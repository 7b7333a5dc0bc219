"""Which rights include all limits of others: such an agent may be given work without asking a person."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.domain.events.parts import Rights, RightsLayer
from holdfast.domain.rights import covers

READER = RightsLayer(profile="reader", rules={"terminal": "deny"}, paths=["/work"])
WRITER = RightsLayer(profile="writer", rules={"terminal": "allow"}, paths=["/work"])
LOOSER = RightsLayer(profile="reader", rules={"terminal": "allow"}, paths=["/"])


@pytest.mark.parametrize(
    ("limits", "profile", "layers", "covered"),
    [
        ([], "writer", [], True),
        ([READER], "writer", [READER], True),
        ([READER], "reader", [], True),
        ([READER], "writer", [], False),
        ([READER], "writer", [LOOSER], False),
        ([READER, WRITER], "writer", [READER], True),
        ([READER, WRITER], "tester", [READER], False),
    ],
    ids=["no limits", "inherited", "by its profile", "neither", "looser ones", "one each way", "one is missing"],
)
def test_limits_are_covered_by_inheritance_or_by_the_profile(
    limits: list[RightsLayer], profile: str, layers: list[RightsLayer], *, covered: bool
) -> None:
    assert covers(Rights(layers=limits), mode="profile", profile=profile, rights=Rights(layers=layers)) is covered


def test_a_stricter_mode_is_not_covered_by_the_same_profile() -> None:
    reading = msgspec.structs.replace(READER, mode="read")
    assert not covers(Rights(), mode="read", profile="reader", rights=Rights(layers=[READER]))
    assert not covers(Rights(), mode="read", profile="reader", rights=Rights())
    assert covers(Rights(), mode="ask", profile="reader", rights=Rights(layers=[reading]))
