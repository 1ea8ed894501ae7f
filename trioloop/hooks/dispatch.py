"""How listeners are registered and asked: waterfall and serial hooks (H1 to H3).

A dispatch uses the listeners of its beginning; runtime-wide ones wrap agent-scoped ones. What the
hooks are for is in `points`.
"""

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Generic, TypeAlias, TypeVar

import attrs
import trio

from trioloop.errors import HookMisuseError, HookTimeoutError, InvalidInputError

PayloadT = TypeVar("PayloadT")
AnswerT = TypeVar("AnswerT")

Next: TypeAlias = Callable[[], Awaitable[AnswerT]]
WaterfallListener: TypeAlias = Callable[[PayloadT, Next[AnswerT]], Awaitable[AnswerT]]
SerialListener: TypeAlias = Callable[[PayloadT], Awaitable[object]]


class Registration:
    """The handle of a listener, tool or section; closing it, or leaving its block, removes it."""

    __slots__ = ("_remove",)

    def __init__(self, remove: Callable[[], None]) -> None:
        self._remove: Callable[[], None] | None = remove

    def close(self) -> None:
        """Remove what was registered. Closing again does nothing."""
        remove, self._remove = self._remove, None
        if remove is not None:
            remove()

    def __enter__(self) -> "Registration":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


@attrs.frozen(eq=False)
class Listener:
    """A registered listener with the name it is reported by and its own time limit."""

    function: Callable[..., Awaitable[Any]]  # its types are those of the hook that holds it
    timeout_s: float | None

    @property
    def name(self) -> str:
        """The listener's module and qualified name."""
        module = getattr(self.function, "__module__", None) or "?"
        return f"{module}.{getattr(self.function, '__qualname__', type(self.function).__name__)}"


class _Hook:
    """What both kinds of hook share: an ordered list of listeners."""

    __slots__ = ("_listeners", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._listeners: tuple[Listener, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._listeners)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The registered listeners, outermost first."""
        return self._listeners

    def _add(
        self, function: Callable[..., Awaitable[Any]], timeout_s: float | None
    ) -> Registration:
        if not callable(function):
            raise InvalidInputError(f"a listener of {self.name} must be callable, not {function!r}")
        if timeout_s is not None and not timeout_s > 0:
            raise InvalidInputError(f"timeout_s must be greater than 0, not {timeout_s!r}")
        listener = Listener(function, timeout_s)
        self._listeners = (*self._listeners, listener)

        def remove() -> None:
            self._listeners = tuple(kept for kept in self._listeners if kept is not listener)

        return Registration(remove)


class Waterfall(_Hook, Generic[PayloadT, AnswerT]):
    """A hook whose listeners wrap each other around a default answer (H1)."""

    __slots__ = ()

    def add(
        self,
        listener: WaterfallListener[PayloadT, AnswerT],
        *,
        timeout_s: float | None = None,
    ) -> Registration:
        """Register `async def listener(payload, next)` inside those registered before.

        Args:
            listener: awaits `next()` at most once, or answers alone.
            timeout_s: seconds of the listener's own time; the time inside `next()` doesn't count.
        """
        return self._add(listener, timeout_s)

    def __call__(
        self, listener: WaterfallListener[PayloadT, AnswerT]
    ) -> WaterfallListener[PayloadT, AnswerT]:
        """Register a listener by decorating it."""
        self._add(listener, None)
        return listener


class Serial(_Hook, Generic[PayloadT]):
    """A hook whose listeners are called one after the other; what they return is ignored."""

    __slots__ = ()

    def add(
        self, listener: SerialListener[PayloadT], *, timeout_s: float | None = None
    ) -> Registration:
        """Register `async def listener(payload)` behind those registered before.

        Args:
            listener: what is called.
            timeout_s: seconds that it may take.
        """
        return self._add(listener, timeout_s)

    def __call__(self, listener: SerialListener[PayloadT]) -> SerialListener[PayloadT]:
        """Register a listener by decorating it."""
        self._add(listener, None)
        return listener


def raised_by(error: BaseException) -> str | None:
    """The name of the listener that raised an error in a dispatch; None: no listener did."""
    return getattr(error, "__trioloop_listener__", None)


def misuse(message: str, by: str | None) -> HookMisuseError:
    """The error of an answer that a hook doesn't take; `raised_by` names whose it was (H3)."""
    error = HookMisuseError(message)
    if by is not None:
        error.__trioloop_listener__ = by  # type: ignore[attr-defined]  # what `raised_by` reads
    return error


def _blame(error: BaseException, listener: Listener) -> None:
    if raised_by(error) is None:
        # Past the class's own __setattr__: an application's exceptions may be frozen.
        BaseException.__setattr__(error, "__trioloop_listener__", listener.name)


async def _timed(
    listener: Listener,
    hook: str,
    call: Callable[[Callable[[Next[AnswerT]], Next[AnswerT]]], Awaitable[AnswerT]],
) -> AnswerT:
    """Run a listener, within its own time if it has one; the clock stands still inside `next`."""
    if listener.timeout_s is None:
        return await call(lambda following: following)
    with trio.move_on_after(listener.timeout_s) as scope:

        def off_the_clock(following: Next[AnswerT]) -> Next[AnswerT]:
            async def timed_next() -> AnswerT:
                left = scope.deadline - trio.current_time()
                scope.deadline = float("inf")
                try:
                    return await following()
                finally:
                    scope.deadline = trio.current_time() + left

            return timed_next

        return await call(off_the_clock)
    raise HookTimeoutError(
        f"{listener.name}, a listener of {hook}, took more than its {listener.timeout_s} s"
    )


@attrs.frozen
class Answered(Generic[AnswerT]):
    """An answer, and the name of the listener whose own it is; None: it is the default."""

    answer: AnswerT
    by: str | None


async def run_waterfall(
    hooks: Sequence[Waterfall[PayloadT, AnswerT]], payload: PayloadT, default: Next[AnswerT]
) -> AnswerT:
    """Ask the listeners of some hooks, outermost first, around a default answer.

    Args:
        hooks: the same hook of each scope, the widest first.
        payload: what every listener is given.
        default: gives the answer behind the last listener.

    Returns:
        The answer of the outermost listener.

    Raises:
        HookMisuseError: a listener awaited `next()` twice.
        HookTimeoutError: a listener took more than its time.
        Exception: whatever a listener raised; `raised_by` names it.
    """
    if not any(hooks):
        return await default()
    return (await ask_waterfall(hooks, payload, default)).answer


async def ask_waterfall(
    hooks: Sequence[Waterfall[PayloadT, AnswerT]], payload: PayloadT, default: Next[AnswerT]
) -> Answered[AnswerT]:
    """As `run_waterfall`, and tell whose answer it is."""
    listeners = tuple(listener for hook in hooks for listener in hook.listeners)

    async def ask(index: int) -> Answered[AnswerT]:
        if index == len(listeners):
            return Answered(await default(), None)
        listener = listeners[index]
        inner: list[Answered[AnswerT]] = []

        async def following() -> AnswerT:
            inner.append(await ask(index + 1))
            return inner[0].answer

        once = _once(listener, hooks[0].name, following)
        try:
            answer = await _timed(
                listener, hooks[0].name, lambda timed: listener.function(payload, timed(once))
            )
        except BaseException as error:  # to name who raised it; it always goes on
            _blame(error, listener)
            raise
        passed_on = bool(inner) and inner[0].answer is answer
        return inner[0] if passed_on else Answered(answer, listener.name)

    return await ask(0)


def _once(listener: Listener, hook: str, following: Next[AnswerT]) -> Next[AnswerT]:
    called = False

    async def next_once() -> AnswerT:
        nonlocal called
        if called:
            raise HookMisuseError(
                f"{listener.name}, a listener of {hook}, awaited next() a second time"
            )
        called = True
        return await following()

    return next_once


async def run_serial(hooks: Sequence[Serial[PayloadT]], payload: PayloadT) -> None:
    """Call the listeners of some hooks one after the other, the widest scope's first.

    Raises:
        HookTimeoutError: a listener took more than its time.
        Exception: whatever a listener raised; `raised_by` names it.
    """
    for listener in tuple(listener for hook in hooks for listener in hook.listeners):
        try:
            await _timed(listener, hooks[0].name, lambda _: _ignored(listener.function(payload)))  # noqa: B023 - awaited at once
        except BaseException as error:  # to name who raised it; it always goes on
            _blame(error, listener)
            raise


async def _ignored(answer: Awaitable[object]) -> None:
    await answer
