"""One attempt: a model's stream, frame by frame, and its settlement in the log (E3).

However the stream ends, the attempt is recorded before anybody is asked about it. Whether another
one follows is decided in `step`.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from functools import partial
from types import TracebackType
from typing import Literal, cast

import attrs
import trio

from trioloop.agent.failing import failure_of, malformed
from trioloop.agent.notifications import StreamEnded, StreamStarted
from trioloop.agent.resources import Resources
from trioloop.agent.signal import TurnSignal
from trioloop.chunks import EMPTY_STREAM, Chunk, Finish, Frame, Usage, UsageChunk, compact
from trioloop.errors import GrammarError, HookMisuseError, ModelFailure
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    EventData,
    Failure,
)
from trioloop.hooks.dispatch import ask_waterfall, misuse
from trioloop.hooks.points import StreamRequest
from trioloop.ids import call_id
from trioloop.log.rebuild import Request
from trioloop.ports import ChunkStream, PreparedCall
from trioloop.stream.assemble import assemble, interrupted

_log = logging.getLogger("trioloop.agent")


class _Source(AsyncIterator[Sequence[Chunk]]):
    """The model's stream as listeners of `model.stream` are given it: to be wrapped, not yet read.

    It is entered when all of them have answered, so that no cancel scope of theirs straddles one
    of the adapter's; where none of them wants it, the model isn't asked.
    """

    def __init__(self, ask: Callable[[], AbstractAsyncContextManager[ChunkStream]]) -> None:
        self.wanted = False
        self.entered: ChunkStream | None = None
        self._ask = ask

    async def __aenter__(self) -> None:
        if self.wanted:
            self._exchange = self._ask()
            self.entered = await self._exchange.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        if self.entered is None:
            return None
        exchange = self._exchange  # whose own exit it is, shields and all
        return await exchange.__aexit__(kind, error, traceback)  # noqa: ASYNC102

    def __aiter__(self) -> ChunkStream:
        return self if self.entered is None else self.entered.__aiter__()

    async def __anext__(self) -> Sequence[Chunk]:
        if self.entered is None:
            raise HookMisuseError("a listener of model.stream may wrap the stream, not read it")
        return await self.entered.__anext__()


@attrs.define(eq=False)
class _Attempt:
    """What is known of the attempt that runs."""

    resources: Resources
    request: Request
    turn: int
    step: int
    began: float
    frames: list[Frame] = attrs.field(factory=list)
    sent: bool = False

    @property
    def finish(self) -> Finish | None:
        last = self.frames[-1].chunks[-1] if self.frames and self.frames[-1].chunks else None
        return last if isinstance(last, Finish) else None

    @property
    def usage(self) -> Usage | None:
        for frame in reversed(self.frames):
            for chunk in reversed(frame.chunks):
                if isinstance(chunk, UsageChunk):
                    return chunk.usage
        return None


async def run_attempt(
    resources: Resources, signal: TurnSignal, prepared: PreparedCall, request: Request
) -> Failure | None:
    """Ask the model once and record what came.

    A checkpoint. When it is cancelled, what came so far is recorded: as a whole message after the
    finish chunk (P10), as an interrupted one where something was visible, else as a mere attempt
    (P9).

    Returns:
        None after an answer, else why the attempt failed.

    Raises:
        Exception: what a listener of `model.stream` raised; the attempt is recorded as not sent.
    """
    step = resources.session.state.step
    assert step is not None  # admitted just before
    attempt = _Attempt(resources, request, signal.turn, step.number, trio.current_time())
    notifications = resources.notifications
    notifications.begin_attempt(
        StreamStarted(signal.turn, attempt.step, step.attempts + 1, agent=resources.agent.name),
        attempt.frames,
    )
    try:
        await _read(attempt, prepared)
    except Exception as error:
        if not attempt.sent or signal.cancelled:  # a listener's, or in place of a Cancelled
            _settle_cancelled(attempt)
            raise
        if attempt.finish is None:
            return _settle_failure(attempt, failure_of(error))
        _log.warning("a model's stream failed behind its whole answer", exc_info=error)
    except BaseException:  # cancelled, or worse: what came is recorded, and it goes on
        _settle_cancelled(attempt)
        raise
    return _settle_answer(attempt)


async def _read(attempt: _Attempt, prepared: PreparedCall) -> None:
    source = _Source(partial(prepared.stream, attempt.request))

    async def unchanged() -> ChunkStream:
        source.wanted = True
        return source

    resources = attempt.resources
    payload = StreamRequest(resources.agent, attempt.turn, attempt.step, attempt.request)
    answered = await ask_waterfall([hooks.stream for hooks in resources.hooks], payload, unchanged)
    stream = answered.answer
    if not hasattr(stream, "__aiter__"):
        raise misuse(f"model.stream answers a stream, not {stream!r}", answered.by)
    await trio.lowlevel.checkpoint_if_cancelled()
    attempt.sent = True
    async with source, _closing(stream):
        await _collect(attempt, stream)
    if attempt.finish is None:
        await trio.lowlevel.checkpoint()  # the adapter may have swallowed our cancel
        raise ModelFailure("TRUNCATED", "the stream ended before the model had finished")


def _closing(stream: ChunkStream) -> AbstractAsyncContextManager[object]:
    """Closes a stream behind its last chunk, where it can be closed."""
    if hasattr(stream, "aclose"):
        return aclosing(cast("AsyncGenerator[Sequence[Chunk]]", stream))
    return nullcontext()


async def _collect(attempt: _Attempt, stream: ChunkStream) -> None:
    frames, began = attempt.frames, attempt.began
    name, notifications = attempt.resources.agent.name, attempt.resources.notifications
    now = trio.lowlevel.current_clock().current_time  # looked up once: this runs for each read
    async for read in stream:
        chunks = tuple(read)
        frames.append(Frame(round((now() - began) * 1000), chunks))
        notifications.send_frames(name, frames, len(frames) - 1)
        await trio.lowlevel.checkpoint_if_cancelled()
        if chunks and isinstance(chunks[-1], Finish):
            return


def _settle_answer(attempt: _Attempt) -> Failure | None:
    try:
        _settle_message(attempt)
    except GrammarError:  # a fault of our own
        raise
    except Exception as error:  # chunks of an adapter's own making
        return _settle_failure(attempt, malformed(error))
    return None


def _settle_message(attempt: _Attempt) -> None:
    state = attempt.resources.session.state
    config = attempt.request.config
    assembled = assemble(
        attempt.frames,
        provider=config.provider,
        model=config.model,
        call_id=partial(call_id, attempt.turn, attempt.step),
        used_wire_ids=state.wire_ids,
    )
    _record(
        attempt,
        AssistantMessageLogged(
            message=assembled.message,
            finish=assembled.finish,
            usage=assembled.usage,
            stream=compact(attempt.frames, assembled.message.content),
        ),
    )


def _settle_failure(attempt: _Attempt, failure: Failure) -> Failure:
    try:
        stream = compact(attempt.frames, ())
        _record(attempt, AssistantAttemptLogged(stream, failure=failure, usage=attempt.usage))
    except GrammarError:  # a fault of our own
        raise
    except Exception:  # the failure stands without the chunks that can't be kept
        _log.exception("what a model streamed before it failed can't be kept")
        _record(attempt, AssistantAttemptLogged(EMPTY_STREAM, failure=failure))
    return failure


def _settle_cancelled(attempt: _Attempt) -> None:
    try:
        _settle_what_came(attempt)
    except GrammarError:  # a fault of our own
        raise
    except Exception:  # chunks of an adapter's own making
        _log.exception("what a model streamed before it was cancelled can't be kept")
        _record(attempt, AssistantAttemptLogged(EMPTY_STREAM, cancelled=True, sent=attempt.sent))


def _settle_what_came(attempt: _Attempt) -> None:
    if attempt.finish is not None:
        _settle_message(attempt)
        return
    config = attempt.request.config
    visible = interrupted(attempt.frames, provider=config.provider, model=config.model)
    if visible is not None:
        _record(
            attempt,
            AssistantMessageLogged(
                message=visible.message,
                finish=None,
                usage=visible.usage,
                stream=compact(attempt.frames, visible.message.content),
                interrupted=True,
            ),
        )
        return
    stream = compact(attempt.frames, ())
    _record(
        attempt,
        AssistantAttemptLogged(stream, cancelled=True, sent=attempt.sent, usage=attempt.usage),
    )


def _record(attempt: _Attempt, fact: EventData) -> None:
    (event,) = attempt.resources.session.append(fact)
    outcome: Literal["message", "attempt"] = (
        "message" if isinstance(fact, AssistantMessageLogged) else "attempt"
    )
    attempt.resources.notifications.end_attempt(
        StreamEnded(event.seq, outcome, agent=attempt.resources.agent.name)
    )
