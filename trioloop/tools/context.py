"""What a tool's body is given, beside its arguments."""

from collections.abc import Callable

import attrs
import trio

from trioloop.errors import CallCancelledError, InvalidInputError
from trioloop.events import EventData
from trioloop.ids import CallId
from trioloop.messages import Content, UserMessage
from trioloop.ports import AgentHandle


@attrs.frozen(eq=False, kw_only=True)
class ToolContext:
    """What a body may do for its call; a parameter of this type is given, not declared.

    Attributes:
        agent: the agent that the call works for.
        call: the call's id.
        key: `session/call`: equal whenever this very call runs again, so an idempotency key.
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
