"""What every channel must keep to: see `holdfast/notify/channel.py`. A channel's tests subclass it."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from holdfast.notify.channel import Channel, GiveUp, NoticeMessage, Sent, TryAgain, Unsure

MESSAGE = NoticeMessage(
    id="0123456789abcdef0123456789abcdef",
    matter="wait/a",
    kind="question",
    title="Fix <the> build",
    text="asks a question: which & why?",
    link="/s/a",
    url="https://example.com/s/a",
    at=1_700_000_000_000,
)


class Service(Protocol):
    """The other side of a channel, on this machine."""

    def channel(self) -> Channel:
        """A new channel to it."""
        ...

    def ids(self) -> list[str]:
        """The ids of the messages that it got, in order; empty texts where it knows no ids."""
        ...

    def answer(self, what: str) -> None:
        """From now on: `ok`, `busy` (wait for 7 s), `broken`, `refused` (for ever) or `nonsense`."""
        ...

    async def go_away(self) -> None:
        """Nobody listens any longer."""
        ...


class ChannelContract:
    """A subclass has a fixture `service`."""

    knows_pauses = True
    """Whether it hears for how long the service wants to be left alone."""

    async def test_a_message_arrives_and_under_the_same_id_when_it_is_sent_again(self, service: Service) -> None:
        channel = service.channel()
        for _ in range(2):
            assert isinstance(await channel.send(MESSAGE), Sent)
        await channel.close()
        assert service.ids() == [MESSAGE.id if channel.repeatable else ""] * 2

    async def test_every_kind_of_message_and_every_text_is_taken(self, service: Service) -> None:
        channel = service.channel()
        for number, kind in enumerate(("approval", "done", "failed", "digest", "test", "settled")):
            text = "x" * 5_000 + " <b>&amp;*_`[]()~>#+-=|{}.! \u202e\U0001f600\n\n" + "y" * 100
            message = replace(MESSAGE, id=f"{number:032}", kind=kind, title=text[:200], text=text)
            assert isinstance(await channel.send(message), Sent)
        await channel.close()

    async def test_one_that_is_busy_is_asked_again_when_it_says(self, service: Service) -> None:
        service.answer("busy")
        channel = service.channel()
        result = await channel.send(MESSAGE)
        await channel.close()
        assert isinstance(result, TryAgain)
        assert result.after_ms == (7_000 if self.knows_pauses else 0)

    async def test_what_may_work_later_and_what_never_will(self, service: Service) -> None:
        channel = service.channel()
        doubt = TryAgain if channel.repeatable else Unsure
        for answer, expected in (("broken", TryAgain), ("nonsense", doubt), ("refused", GiveUp)):
            service.answer(answer)
            result = await channel.send(MESSAGE)
            assert isinstance(result, expected), answer
            assert result.problem
        service.answer("ok")
        assert isinstance(await channel.send(MESSAGE), Sent), "one failure does not spoil the next message"
        await channel.close()

    async def test_one_that_is_away_is_tried_again(self, service: Service) -> None:
        channel = service.channel()
        await service.go_away()
        assert isinstance(await channel.send(MESSAGE), TryAgain)
        await channel.close()
