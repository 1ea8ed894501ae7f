"""What a tool's body is given, beside its arguments."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import attrs
import trio

from trioloop.errors import CallCancelledError, InvalidInputError
from trioloop.events import EventData, ToolDeclaration
from trioloop.handles import AgentHandle
from trioloop.ids import CallId
from trioloop.messages import Content, UserMessage
from trioloop.ports import ToolOutcome


@attrs.frozen
class NestedCall:
    """A call that a body makes of another tool of its step.

    Attributes:
        name: the tool's name.
        arguments: JSON values by name, or their JSON text.
    """

    name: str
    arguments: Mapping[str, object] | str


@attrs.frozen(eq=False, kw_only=True)
class ToolContext:
    """What a body may do for its call; a parameter of this type is given, not declared.

    Attributes:
        agent: the agent that the call works for.
        call: the call's id.
        key: equal whenever this very call runs again (D4), so an idempotency key: `session/call`,
            and for a call that another one makes, that one's key and a digest of what is called.
    """

    agent: AgentHandle
    call: CallId
    key: str
    _report: Callable[[str | None, float | None, float | None], None] = attrs.field(
        alias="report", repr=False
    )
    _add_context: Callable[[Content | UserMessage], None] = attrs.field(
        alias="add_context", repr=False
    )
    _append: Callable[[EventData], None] = attrs.field(alias="append", repr=False)
    _is_cancelled: Callable[[], bool] = attrs.field(alias="is_cancelled", repr=False)
    _tools: Callable[[], tuple[ToolDeclaration, ...]] = attrs.field(alias="tools", repr=False)
    _call_tools: Callable[[Sequence[NestedCall]], Awaitable[list[ToolOutcome]]] = attrs.field(
        alias="call_tools", repr=False
    )
    _lend_place: Callable[[], AbstractAsyncContextManager[None]] = attrs.field(
        alias="lend_place", repr=False
    )
    _nursery: trio.Nursery | None = attrs.field(alias="nursery", default=None, repr=False)

    def report_progress(
        self, message: str | None = None, *, done: float | None = None, total: float | None = None
    ) -> None:
        """Tell watchers how far the call is. From any thread; ignored once the call has ended.

        Args:
            message: in words.
            done: how much is done, in a unit of the tool's own.
            total: how much there is to do, in the same unit.
        """
        self._report(message, done, total)

    def add_context(self, message: Content | UserMessage) -> None:
        """Add a message that joins next-step after the results of the call's batch (T7)."""
        self._add_context(message)

    def append(self, event: EventData) -> None:
        """Append an event of a declared `@event` type, between the call and its result.

        Raises:
            EventEncodingError: the event can't be written as strict JSON; nothing was appended.
            GrammarError: the event may not stand there.
        """
        self._append(event)

    @property
    def tools(self) -> tuple[ToolDeclaration, ...]:
        """The tools of the step that can still be called, this body's own included."""
        return self._tools()

    async def call_tools(self, calls: Sequence[NestedCall]) -> list[ToolOutcome]:
        """Call other tools of the step: through policies, guards and pool like any call (T14).

        A checkpoint. The body lends its place meanwhile. The calls overlap as their modes allow;
        calls that one body asks for at once, in several tasks, run one group after the other. They
        are logged as `tool/ptc-call` and `tool/ptc-result` under the call of the answer.

        Args:
            calls: what to call, in order.

        Returns:
            What each came to, in the order given: a failure is an outcome with `is_error`.

        Raises:
            InvalidInputError: the body runs in a thread, or its call has ended.
        """
        if self._nursery is None:
            raise InvalidInputError("a body in a thread can't call tools: make it an async def")
        return await self._call_tools(calls)

    def lend_place(self) -> AbstractAsyncContextManager[None]:
        """Lend the body's place in the pool to others, while it only waits for them (T14).

        An async context manager. Leaving it is a checkpoint where the place has to be waited for;
        left by an exception, no place is taken again.
        """
        return self._lend_place()

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled; told at the first cancel, also while shielded (T13)."""
        return self._is_cancelled()

    def check_cancelled(self) -> None:
        """Stop a body that runs in a thread once its call was cancelled.

        Raises:
            CallCancelledError: it was. Let it through after cleaning up.
        """
        if self._is_cancelled():
            raise CallCancelledError("the call was cancelled")

    @property
    def nursery(self) -> trio.Nursery:
        """A nursery for the body's own tasks; it is cancelled when the body returns.

        Raises:
            InvalidInputError: the body runs in a thread, where no nursery can be used.
        """
        if self._nursery is None:
            raise InvalidInputError("a body in a thread has no nursery: make it an async def")
        return self._nursery
