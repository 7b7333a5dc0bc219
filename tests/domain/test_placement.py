"""Which nodes fit, by name, label and profile, and the explanation while none is there."""

from __future__ import annotations

from holdfast.domain.placement import KnownNode, Placement

A = KnownNode("a", frozenset({"linux"}))
B = KnownNode("b", frozenset({"gpu", "linux"}))
AWAY = KnownNode("c", frozenset({"ci"}), takes_work=False, lives=False, silent_ms=300_000)
DRAINED = KnownNode("d", frozenset({"ci"}), takes_work=False, silent_ms=10)


def fitting(placement: Placement) -> str:
    return "".join(node.name for node in (A, B, AWAY) if placement.fits(node))


def test_name_means_one_node_and_label_every_node_that_has_it() -> None:
    assert fitting(Placement()) == "abc"
    assert fitting(Placement(node="a")) == "a"
    assert fitting(Placement(node="linux")) == "ab"
    assert fitting(Placement(node="mars")) == ""


def test_profile_and_card_must_agree() -> None:
    assert fitting(Placement(allowed=("gpu", "c"))) == "bc"
    assert fitting(Placement(node="linux", allowed=("gpu", "c"))) == "b"
    assert fitting(Placement(node="linux", allowed=("gpu",), bound_to="a")) == ""


def test_wait_says_which_node_is_away_and_since_when() -> None:
    assert Placement(node="linux").why_waits([A, B, AWAY]) == ""
    assert Placement(node="c").why_waits([A, AWAY]) == "It waits for node c, which was last seen 5 min 0 s ago."
    both = Placement(node="ci").why_waits([A, AWAY, DRAINED])
    assert both == "It waits for node c, which was last seen 5 min 0 s ago or node d, which is being drained."
    bound = Placement(bound_to="c", bound_because="its directory /x is there")
    assert (
        bound.why_waits([A, AWAY])
        == "It waits for node c, which was last seen 5 min 0 s ago (its directory /x is there)."
    )


def test_wait_for_a_node_that_does_not_exist_says_all_conditions() -> None:
    why = Placement(node="gpu", profile="coder", allowed=("ci",)).why_waits([A])
    assert why == (
        "It waits for a node that is called or labelled gpu and is one of ci (`nodes` of profile coder), and there is"
        " none (`holdfast nodes` lists them)."
    )
