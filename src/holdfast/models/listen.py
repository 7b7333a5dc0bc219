"""Listening to a model: every piece is passed on at once, and soon after that it is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import NoReturn

from holdfast.domain.events.problem import Problem
from holdfast.models.model import Model, ModelAnswer, ModelDelta, ModelError, ModelRequest

SAVE_SECONDS = 0.2
"""Together with the commit itself, what was shown is on disk a quarter of a second later."""


async def stream_answer(
    model: Model, request: ModelRequest, *, show: Callable[[ModelDelta], None], save: Callable[[], Awaitable[None]]
) -> ModelAnswer:
    """The whole answer. Its pieces are shown as they come; `save` keeps them, `SAVE_SECONDS` after one was shown."""
    shown = asyncio.Event()
    saver = asyncio.create_task(_save_after(shown, save))
    try:
        async with aclosing(model.stream(request)) as pieces:
            async for piece in pieces:
                if saver.done():
                    saver.result()  # the lease was lost: nothing more can be written
                if isinstance(piece, ModelAnswer):
                    return piece
                show(piece)
                shown.set()
    finally:
        saver.cancel()
        await asyncio.gather(saver, return_exceptions=True)
    raise ModelError(Problem(code="no_answer", message="The model ended without an answer.", hint="Try again."))


async def _save_after(shown: asyncio.Event, save: Callable[[], Awaitable[None]]) -> NoReturn:
    while True:
        await shown.wait()
        await asyncio.sleep(SAVE_SECONDS)
        shown.clear()
        await save()
