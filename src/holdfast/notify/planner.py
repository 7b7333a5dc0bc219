"""From the log to the outbox: reads what was committed and plans which destinations are notified.

The position in the log moves in the transaction that adds the deliveries, so a crash in between loses nothing and
doubles nothing. Without a destination nothing is looked at, and the position follows the end of the log: a
destination that is added is notified of what happens from then on.
"""

from __future__ import annotations

from contextlib import suppress

from holdfast.clock import Clock
from holdfast.domain.errors import Gone, NotFound
from holdfast.domain.events import Record
from holdfast.domain.events.actor import PersonActor
from holdfast.domain.events.parts import NotifyChoice
from holdfast.notify.conversation import NOTICES_IN_CHAT, OF_CHATS, SHOWN_IN_CHAT, chat_messages_of
from holdfast.notify.destinations import Destinations
from holdfast.notify.notices import NOTIFYING, OF_INTEREST, OF_WORK, Notice, Subject, notice_of, settled_by
from holdfast.notify.presence import Presence
from holdfast.notify.sender import OutboxSender
from holdfast.secrets import Mask
from holdfast.store.contract import Store
from holdfast.store.log_follower import LogFollower
from holdfast.store.outbox_store import DeliveryRow, OutboxPlan, SettledMatter, delivery_id

PAGE = 500
SWEEP_SECONDS = 60.0
OF_ANYBODY = OF_INTEREST | OF_CHATS
"""For other events the settings, which say what each destination wants, need not be read."""


class Planner:
    """Follows the log and fills the outbox."""

    def __init__(
        self,
        store: Store,
        destinations: Destinations,
        sender: OutboxSender,
        *,
        presence: Presence,
        clock: Clock,
        mask: Mask,
    ) -> None:
        self._store = store
        self._destinations = destinations
        self._sender = sender
        self._presence = presence
        self._clock = clock
        self._mask = mask
        self._position = self._stored = 0
        self._follower = LogFollower(
            store,
            self._changed,
            wanted=lambda _, kind: kind in OF_ANYBODY and kind in self._of_interest(),
            name="notifications",
            sweep=self._sweep,
            sweep_seconds=SWEEP_SECONDS,
        )
        self.state = self._follower.state

    async def start(self) -> None:
        """Continue where the last gateway was."""
        self._position = self._stored = await self._store.outbox.begin()
        await self._follower.start()

    def _of_interest(self) -> frozenset[str]:
        """The events that are looked at; none while there is no destination."""
        if self._destinations.chats.is_on:
            return OF_INTEREST | OF_CHATS
        return OF_INTEREST if self._destinations.all() else frozenset()

    async def stop(self) -> None:
        """Until the next start."""
        await self._follower.stop()

    async def _changed(self, _: str, __: set[str]) -> None:
        await self.plan_new()

    async def _sweep(self) -> None:
        if self._of_interest():
            await self.plan_new()
        else:
            self._position = await self._store.last_seq()
        if self._position != self._stored:
            await self._keep(OutboxPlan(self._position))

    async def _keep(self, plan: OutboxPlan) -> None:
        await self._store.outbox.plan(plan)
        self._stored = plan.position

    async def plan_new(self) -> None:
        """Plan the deliveries for everything that is new in the log."""
        more = True
        while more:
            records, upto = await self._store.load_kinds(self._of_interest(), after=self._position, limit=PAGE)
            if upto <= self._position:
                return
            steps = [step for record in records for step in await self._steps(record)]
            if steps:  # the position alone is kept by the next sweep
                await self._keep(OutboxPlan(upto, tuple(steps)))
                self._sender.wake()
            self._position, more = upto, bool(records)

    async def _steps(self, record: Record) -> list[DeliveryRow | SettledMatter]:
        if isinstance(getattr(record.event, "by", None), PersonActor):
            self._presence.look([record.stream], at=record.at)
        settled, events = settled_by(record), (*NOTIFYING, *(SHOWN_IN_CHAT if self._destinations.chats.is_on else ()))
        subject = await self._subject(record) if isinstance(record.event, events) else None
        if subject is None:
            return [*settled]
        chat = subject.session.chat if subject.session is not None else ""
        notice = notice_of(record, subject)
        deliveries = [] if notice is None else self._deliveries(notice, chat, subject.tell)
        if subject.session is not None and chat:
            deliveries += chat_messages_of(record, subject.session, mask=self._mask)
        return [*settled, *deliveries]

    def _deliveries(self, notice: Notice, chat: str, tell: NotifyChoice) -> list[DeliveryRow]:
        """Return the notice for each destination that gets it; `chat` is the one in which its session is held."""
        if notice.kind not in OF_WORK:  # a choice is about the work, and not about what the gateway reports
            tell = "default"
        always = tell == "always"
        destinations = [
            one
            for one in self._destinations.all().values()
            if tell != "never" and (always or one.wants(notice)) and not (chat and one.chat == chat)
        ]
        if chat and notice.kind in NOTICES_IN_CHAT and (own := self._destinations.chats.find(chat)) is not None:
            destinations.append(own)
        return [
            DeliveryRow(
                id=delivery_id(destination.name, notice.matter, notice.seq, notice.kind),
                destination=destination.name,
                matter=notice.matter,
                kind=notice.kind,
                seq=notice.seq,
                at=notice.at,
                stream=notice.stream,
                title=notice.title,
                summary=notice.summary,
                detail=notice.detail,
                link=notice.link,
                when_absent=destination.when_absent and not always,
                due_at=notice.at,
                wait=notice.wait,
                choices=notice.choices,
            )
            for destination in destinations
        ]

    async def _subject(self, record: Record) -> Subject | None:
        """The rows that an event is about; None when they are gone."""
        noun, _, id = record.stream.partition("/")
        try:
            match noun:
                case "session":
                    return await self._session(id)
                case "task":
                    task = await self._store.task(id)
                    return Subject(task=task, tell=task.tell)
                case "card":
                    card = await self._store.cards.card(id)
                    return Subject(card=card, tell=card.tell)
                case _:
                    return Subject()
        except (NotFound, Gone):
            return None

    async def _session(self, id: str) -> Subject:
        """A session. What was chosen for its card or its task holds for its questions, too."""
        session = await self._store.session(id)
        of_card = bool(await self._store.cards_of_sessions([id]))
        tell = session.tell
        if tell == "default" and session.task:
            with suppress(NotFound, Gone):  # it was pruned, and its session continues
                tell = (await self._store.task(session.task)).tell
        elif tell == "default" and of_card and (run := await self._store.cards.open_run_of(id)) is not None:
            tell = (await self._store.cards.card(run.card)).tell
        return Subject(session=session, of_card=of_card, tell=tell)
