"""What agents may create: agents and cards, with no more rights than their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.domain.events.parts import Rights, RightsLayer
from holdfast.domain.rights import MODE_LIMITS, inherit, root_of
from holdfast.domain.session import Session
from holdfast.profiles import Profiles
from holdfast.runtime.tools.context import ToolContext, ToolFailed
from holdfast.sessions import Sessions
from holdfast.settings import DEMO
from holdfast.store.contract import Store


class Creation:
    """Grants what agents create (agents and cards): no more rights than their own, in the limits of `[agents]`.

    Every tool that starts new work asks here first. The answer is the rights of the new one, to be stored in its first
    event.
    """

    def __init__(self, store: Store, *, sessions: Sessions, profiles: Profiles) -> None:
        self._store = store
        self._sessions = sessions
        self._profiles = profiles
        self._counting = asyncio.Lock()

    def check_profile(self, profile: str, *, creator: str) -> None:
        """Refuse a profile that there is not, or that agents cannot create work for, whatever anybody allows."""
        if profile not in self._profiles.names:
            raise ToolFailed(f"There is no profile {profile!r}; there is: {', '.join(self._profiles.names)}.")
        if profile == DEMO != creator:
            raise ToolFailed(f"Agents cannot create work for the profile {DEMO}: its script runs any command.")

    @asynccontextmanager
    async def granted(self, context: ToolContext, *, profile: str) -> AsyncIterator[Rights]:
        """Yield the rights of what a call creates with a profile; no other call creates anything meanwhile.

        `ToolFailed` says why it may not.
        """
        session = await self._sessions.get(context.session)
        limits = self._profiles.settings.agents
        self.check_profile(profile, creator=session.profile)
        if session.mode_in_force != "profile" and self._profiles.driver(profile) != "builtin":
            raise ToolFailed(
                f"You may {MODE_LIMITS[session.mode_in_force]}. {profile!r} is an external agent, which carries out "
                "its calls itself, so nothing would hold it to that."
            )
        if session.rights.depth >= limits.max_depth:
            raise ToolFailed(
                f"Agents may create agents or cards {limits.max_depth} levels deep at most (`max_depth` in [agents]); "
                f"you are at level {session.rights.depth}. Do the work yourself, or report what is left."
            )
        async with self._counting:
            root = root_of(session.id, session.rights)
            running = await self._store.count_descendants(root)
            if running >= limits.max_open:
                raise ToolFailed(
                    f"{running} agents and cards created from session {root} are open, the maximum "
                    "(`max_open` in [agents]). Wait until some are done, or do the work yourself."
                )
            paths = await asyncio.to_thread(lambda: context.reachable)
            yield self._inherited_rights(session, paths)

    def _inherited_rights(self, session: Session, paths: list[Path]) -> Rights:
        """No more than its own."""
        profile = self._profiles.settings.profiles.get(session.profile)
        layer = RightsLayer(
            profile=session.profile,
            rules={"*": "deny"} if profile is None else profile.tools,
            paths=[str(path) for path in paths],
            mcp=[] if profile is None else profile.mcp,
            sandbox="on" if profile is None else profile.sandbox,
            network=profile is not None and profile.network,
            mode=session.mode_in_force,
        )
        return inherit(session.rights, session=session.id, layer=layer)
