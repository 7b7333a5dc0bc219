"""What only a person chooses about a session: its mode and its node."""

from __future__ import annotations

from holdfast.domain.command import SessionMode
from holdfast.domain.commands import ChooseMode, ChooseNode
from holdfast.domain.errors import Conflict, Rejected
from holdfast.domain.events.actor import Actor, is_person
from holdfast.domain.events.session import ModeChosen, NodeChosen
from holdfast.domain.session import Session


def only_people(by: Actor, act: str) -> None:
    """Refuse what can widen the rights of an agent to everybody but a person."""
    if not is_person(by):
        raise Rejected(f"Only a person can {act}.")


def choose(session: Session, command: ChooseMode | ChooseNode, by: Actor) -> ModeChosen | NodeChosen:
    """Return what was chosen."""
    return (
        _choose_mode(session, command.mode, by)
        if isinstance(command, ChooseMode)
        else _choose_node(session, command.node, by)
    )


def _choose_mode(session: Session, mode: SessionMode, by: Actor) -> ModeChosen:
    only_people(by, "choose the mode of a session")
    mode_can_be_enforced(mode, session.driver)
    if mode == session.mode:
        raise Conflict("It has this mode already.")
    return ModeChosen(mode=mode, by=by)


def mode_can_be_enforced(mode: SessionMode, driver: str) -> None:
    """Refuse a mode for an agent that carries out its calls itself."""
    if mode != "profile" and driver != "builtin":
        hint = "Set a mode of that agent in its profile (`mode` in config.toml), or use another profile."
        raise Rejected("An external agent carries out its calls itself: a mode cannot be enforced.", hint=hint)


def _choose_node(session: Session, node: str, by: Actor) -> NodeChosen:
    # the caller has checked that its directory and its agent allow that
    only_people(by, "choose the node of a session")
    if node == session.node:
        raise Conflict(f"It asks for {node} already." if node else "It may run on any node already.")
    return NodeChosen(node=node, by=by)
