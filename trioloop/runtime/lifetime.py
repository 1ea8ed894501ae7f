"""The lifetime of a runtime: services first, agents inside them, and how it is left (R9).

It leaves in reverse: agents are disposed of, then what is appended is flushed, then the store is
unlocked and the models' connections are closed, all of it within one `close_s` of the last work's
end (P18). Exceptions of the application's own come out as they went in.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import trio

from trioloop.agent.closing import Closing
from trioloop.agent.signal import HOST_CANCELLED
from trioloop.agent.stuck import StuckTurns
from trioloop.limits import Limits
from trioloop.ports import Closable, Model, SessionStore
from trioloop.runtime.runtime import Runtime
from trioloop.runtime.watchdog import watching
from trioloop.store.writer import StoreWriter


@asynccontextmanager
async def lifetime(
    make_runtime: Callable[[trio.Nursery, StoreWriter, Closing, StuckTurns], Runtime],
    *,
    store: SessionStore,
    models: Iterable[Model],
    limits: Limits,
) -> AsyncIterator[Runtime]:
    """A runtime in nurseries of its own, for as long as the block is open.

    Args:
        make_runtime: given the nursery of the agents, the store's writer, the time that the end
            may take, and who names turns that don't close.
        store: where sessions are kept; closed in the end.
        models: closed in the end, where they keep connections.
        limits: `close_s` bounds the end.
    """
    closing, stuck = Closing(limits), StuckTurns(limits)
    left_with: BaseException | None = None
    try:
        async with (
            _connected(models, closing),
            _writing(store, limits, closing) as writer,
            _serving(limits, stuck) as services,
            trio.open_nursery() as nursery,
        ):
            runtime = make_runtime(nursery, writer, closing, stuck)
            services.start_soon(runtime.name_stray_threads)
            try:
                yield runtime
            except BaseException as error:  # raised below, without our own layers around it
                left_with = error
            cancelled = left_with is not None and _without_cancelled(left_with) is None
            runtime.begin_closing(HOST_CANCELLED if cancelled else "disposed")
    except BaseException as layered:  # what the agents' tasks came out with
        raise _outcome(left_with, layered) from None
    if left_with is not None:
        raise left_with


def _outcome(left_with: BaseException | None, layered: BaseException) -> BaseException:
    """What a runtime is left with: the block's own exception, an agent's interrupt, or both.

    An interrupt in an agent's task has cancelled the block through our nursery, so that the block's
    `Cancelled` is nobody's any more.
    """
    interrupt = _without_cancelled(layered)
    if interrupt is None:
        return left_with or _without_layers(layered)
    interrupt = _without_layers(interrupt)
    own = None if left_with is None else _without_cancelled(left_with)
    if own is None:
        return interrupt
    return BaseExceptionGroup("the block raised, and so did an agent", [own, interrupt])


def _without_cancelled(error: BaseException) -> BaseException | None:
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1]
    return None if isinstance(error, trio.Cancelled) else error


def _without_layers(error: BaseException) -> BaseException:
    """What our own nurseries have wrapped: one exception, or a group of several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


@asynccontextmanager
async def _serving(limits: Limits, stuck: StuckTurns) -> AsyncIterator[trio.Nursery]:
    """A nursery for services that have nothing left to do once the agents are gone."""
    with watching(limits):
        async with trio.open_nursery() as services:
            services.start_soon(stuck.name_them)
            try:
                yield services
            finally:
                stuck.close()
                services.cancel_scope.cancel()


@asynccontextmanager
async def _connected(models: Iterable[Model], closing: Closing) -> AsyncIterator[None]:
    """Models whose connections are closed in the end; they open anew when they are next asked."""
    try:
        yield
    finally:
        # Sockets must close even where the host has been cancelled; bounded by close_s.
        with trio.CancelScope(shield=True, deadline=closing.closed_by):
            for model in models:
                if isinstance(model, Closable):
                    await model.aclose()


@asynccontextmanager
async def _writing(
    store: SessionStore, limits: Limits, closing: Closing
) -> AsyncIterator[StoreWriter]:
    """The store's writer, which outlives every agent; then the store is closed."""
    writer = StoreWriter(store, limits)
    try:
        async with trio.open_nursery() as services:
            services.start_soon(writer.run)  # `start` would wait for it under a cancelled host
            try:
                yield writer
            finally:
                writer.close(by=closing.flushed_by)
    finally:
        # Unlocking must happen even where the host has been cancelled; bounded by close_s.
        with trio.CancelScope(shield=True, deadline=closing.closed_by):
            await store.aclose()
