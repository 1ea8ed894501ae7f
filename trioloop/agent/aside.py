"""Asides: what a model is asked beside the conversation, such as for a summary of it.

Logged like all that a model is asked (G2), but in no step: it neither joins the history nor counts
as an attempt, no call of its answer runs, and nobody retries it.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import trio

from trioloop.agent.failing import failure_of
from trioloop.agent.resources import ModelSelection
from trioloop.chunks import Chunk, Finish, Frame
from trioloop.errors import AgentDisposedError, ModelFailure
from trioloop.events import AsideEnded, AsideStarted
from trioloop.ids import call_id
from trioloop.log.rebuild import Request, aside_of
from trioloop.ports import PreparedCall
from trioloop.session import Session
from trioloop.stream.assemble import Assembled, assemble


async def ask_aside(session: Session, selection: ModelSelection, aside: AsideStarted) -> Assembled:
    """Ask once, and record what came; the request is durable before it is sent (D2).

    A checkpoint. Cancelled behind the answer it gives none (R8), though the log may have it.

    Raises:
        InvalidInputError: the log has no request yet, or its history no such part.
        ModelFailure: there is no answer.
        StoreFailedError: the store failed, so nobody was asked.
        Exception: whatever else the adapter raised.
    """
    config = aside_of(session.state, aside).config
    prepared = await selection.model_for(config).prepare(config)
    await trio.lowlevel.checkpoint_if_cancelled()
    request = aside_of(session.state, aside)  # anew: others may have rewritten it
    (started,) = session.append(aside)
    try:
        await session.gate()
        answer = await _answer(prepared, request)
        session.append(AsideEnded(started.seq, answer.message, answer.finish, answer.usage))
    except Exception as error:
        _record(session, AsideEnded(started.seq, failure=failure_of(error)))
        raise
    except BaseException:  # cancelled, or worse; it goes on
        _record(session, AsideEnded(started.seq))
        raise
    await trio.lowlevel.checkpoint_if_cancelled()  # whoever observed the answer may have cancelled
    return answer


def _record(session: Session, end: AsideEnded) -> None:
    with suppress(AgentDisposedError):  # who asks outside of a turn may outlive the agent
        session.append(end)


async def _answer(prepared: PreparedCall, request: Request) -> Assembled:
    chunks: list[Chunk] = []
    async with prepared.stream(request) as stream:
        async for read in stream:
            chunks += read
            await trio.lowlevel.checkpoint_if_cancelled()
            if chunks and isinstance(chunks[-1], Finish):
                break
    if not chunks or not isinstance(chunks[-1], Finish):
        raise ModelFailure("TRUNCATED", "the stream ended before the model had finished")
    return _assembled(request, chunks)


def _assembled(request: Request, chunks: Sequence[Chunk]) -> Assembled:
    return assemble(
        [Frame(0, tuple(chunks))],
        provider=request.config.provider,
        model=request.config.model,
        call_id=partial(call_id, 0, 0),  # no call of the conversation has these numbers
        used_wire_ids=(),
    )
