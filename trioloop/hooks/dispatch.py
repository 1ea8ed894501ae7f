"""How listeners are registered and asked: waterfall and serial hooks (H1 to H3).

A dispatch uses the listeners of its beginning; runtime-wide ones wrap agent-scoped ones. What the
hooks are for is in `points`.
"""

from collections.abc import Awaitable, Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

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


def anybody_listens(hooks: Sequence[_Hook]) -> bool:
    """Whether any of some hooks has a listener."""
    for hook in hooks:  # noqa: SIM110 - a generator would take longer than all else here
        if hook._listeners:
            return True
    return False


def raised_by(error: BaseException) -> str | None:
    """The name of the listener that raised an error in a dispatch; None: no listener did."""
    return getattr(error, "__trioloop_listener__", None)


def misuse(message: str, by: str | None) -> HookMisuseError:
    """The error of an answer that a hook doesn't take; `raised_by` names whose it was (H3)."""
    error = HookMisuseError(message)
    if by is not None:
        _blame(error, by)
    return error


def _blame(error: BaseException, by: str) -> None:
    if raised_by(error) is None:
        # Past the class's own __setattr__: an application's exceptions may be frozen.
        BaseException.__setattr__(error, "__trioloop_listener__", by)


@attrs.frozen
class Answered(Generic[AnswerT]):
    """An answer, and the name of the listener whose own it is; None: it is the default."""

    answer: AnswerT
    by: str | None


def run_waterfall(
    hooks: Sequence[Waterfall[PayloadT, AnswerT]], payload: PayloadT, default: Next[AnswerT]
) -> Awaitable[AnswerT]:
    """Ask the listeners of some hooks, outermost first, around a default answer.

    Args:
        hooks: the same hook of each scope, the widest first.
        payload: what every listener is given.
        default: gives the answer behind the last listener.

    Returns:
        To be awaited: the answer of the outermost listener.

    Raises:
        HookMisuseError: a listener called `next()` twice.
        HookTimeoutError: a listener took more than its time.
        Exception: whatever a listener raised; `raised_by` names it.
    """
    listeners = _listeners(hooks)
    if not listeners:
        return default()
    return _Dispatch(hooks[0].name, listeners, payload, default).ask(0)


async def ask_waterfall(
    hooks: Sequence[Waterfall[PayloadT, AnswerT]], payload: PayloadT, default: Next[AnswerT]
) -> Answered[AnswerT]:
    """As `run_waterfall`, and tell whose answer it is."""
    listeners = _listeners(hooks)
    if not listeners:
        return Answered(await default(), None)
    dispatch = _Dispatch(hooks[0].name, listeners, payload, default)
    answer = await dispatch.ask(0)
    by = dispatch.answered_by
    return Answered(answer, None if by is None else by.name)


def _listeners(hooks: Sequence[_Hook]) -> tuple[Listener, ...]:
    listeners: tuple[Listener, ...] = ()
    for hook in hooks:
        listeners += hook.listeners
    return listeners


_NOTHING_YET = object()


class _Dispatch(Generic[PayloadT, AnswerT]):
    """One dispatch of a waterfall: its listeners, and whose the answer is so far.

    Attributes:
        answered_by: the listener whose own the answer is; None: it is the default.
    """

    __slots__ = ("_answer", "_default", "_hook", "_listeners", "_payload", "answered_by")

    def __init__(
        self,
        hook: str,
        listeners: tuple[Listener, ...],
        payload: PayloadT,
        default: Next[AnswerT],
    ) -> None:
        self._hook = hook
        self._listeners = listeners
        self._payload = payload
        self._default = default
        self._answer: object = _NOTHING_YET
        self.answered_by: Listener | None = None

    async def ask(self, index: int) -> AnswerT:
        """The answer of a listener, or the default behind the last."""
        if index == len(self._listeners):
            self._answer = answer = await self._default()
            return answer
        listener = self._listeners[index]
        following = _Following(self, index)
        try:
            if listener.timeout_s is None:
                answer = await listener.function(self._payload, following)
            else:
                answer = await _in_its_time(
                    listener, self._hook, listener.timeout_s, self._payload, following
                )
        except BaseException as error:  # to name who raised it; it always goes on
            _blame(error, listener.name)
            raise
        if answer is not self._answer:
            self._answer = answer
            self.answered_by = listener
        return answer

    def refuse_second(self, index: int) -> NoReturn:
        """A listener asked for the following answer twice."""
        raise HookMisuseError(
            f"{self._listeners[index].name}, a listener of {self._hook}, called next() a second "
            "time"
        )


class _Following(Generic[AnswerT]):
    """The `next` of one listener: good for one call."""

    __slots__ = ("_asked", "_dispatch", "_index")

    def __init__(self, dispatch: _Dispatch[Any, AnswerT], index: int) -> None:
        self._dispatch = dispatch
        self._index = index
        self._asked = False

    def __call__(self) -> Awaitable[AnswerT]:
        if self._asked:
            self._dispatch.refuse_second(self._index)
        self._asked = True
        return self._dispatch.ask(self._index + 1)


def listener_in(frame: FrameType) -> str | None:
    """The listener that is asked inside a frame; None: the frame is none that asks one."""
    if frame.f_code not in (_Dispatch.ask.__code__, run_serial.__code__):
        return None
    listener = frame.f_locals.get("listener")
    return f"the listener {listener.name}" if isinstance(listener, Listener) else None


async def _in_its_time(
    listener: Listener,
    hook: str,
    timeout_s: float,
    payload: object,
    following: Next[AnswerT],
) -> AnswerT:
    """Run a listener within its own time; the clock stands still inside `next`."""
    with trio.move_on_after(timeout_s) as scope:

        async def off_the_clock() -> AnswerT:
            left = scope.deadline - trio.current_time()
            scope.deadline = float("inf")
            try:
                return await following()
            finally:
                scope.deadline = trio.current_time() + left

        answer: AnswerT = await listener.function(payload, off_the_clock)
        return answer
    raise _too_slow(listener, hook)


def _too_slow(listener: Listener, hook: str) -> HookTimeoutError:
    return HookTimeoutError(
        f"{listener.name}, a listener of {hook}, took more than its {listener.timeout_s} s"
    )


async def run_serial(hooks: Sequence[Serial[PayloadT]], payload: PayloadT) -> None:
    """Call the listeners of some hooks one after the other, the widest scope's first.

    Raises:
        HookTimeoutError: a listener took more than its time.
        Exception: whatever a listener raised; `raised_by` names it.
    """
    for listener in _listeners(hooks):
        try:
            await _call(listener, hooks[0].name, payload)
        except BaseException as error:  # to name who raised it; it always goes on
            _blame(error, listener.name)
            raise


async def _call(listener: Listener, hook: str, payload: object) -> None:
    if listener.timeout_s is None:
        await listener.function(payload)
        return
    with trio.move_on_after(listener.timeout_s):
        await listener.function(payload)
        return
    raise _too_slow(listener, hook)
