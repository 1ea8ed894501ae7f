"""What one call's body is given as its `ToolContext`, and what it says through it."""

import functools
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import trio

from trioloop.errors import InvalidInputError
from trioloop.events import EventData, ToolDeclaration
from trioloop.ids import CallId
from trioloop.messages import Content, UserMessage, user_message
from trioloop.ports import ToolOutcome
from trioloop.tools.batch import Batch, Progress
from trioloop.tools.context import NestedCall, ToolContext
from trioloop.tools.places import Place


class Given:
    """The other side of a call's `ToolContext`. What comes after the call's end is dropped.

    Attributes:
        contexts: the messages that the body added.
        closed: whether the call has ended.
        place: where the body stands; None: nowhere, as nobody else wants it.
    """

    __slots__ = (
        "_batch",
        "_call",
        "_equal_calls",
        "_key",
        "_nesting",
        "closed",
        "contexts",
        "place",
    )

    def __init__(self, batch: Batch, call: CallId, key: str | None = None) -> None:
        self._batch = batch
        self._call = call
        self._key = key
        self._equal_calls: Counter[str] | None = None
        self.contexts: list[UserMessage] = []
        self.closed = False
        self.place: Place | None = None
        self._nesting: trio.Lock | None = None

    @property
    def key(self) -> str:
        """Equal whenever this very call runs again."""
        return f"{self._batch.agent.name}/{self._call}" if self._key is None else self._key

    @property
    def nesting(self) -> trio.Lock:
        """Lets one group of the call's own calls run at a time."""
        if self._nesting is None:
            self._nesting = trio.Lock()
        return self._nesting

    def key_of(self, name: str, arguments: str) -> str:
        """The key of a call that the body makes.

        Made of what is called and with what, and of how many equal calls came before it: so a body
        that is run again (D4) makes its calls under the same keys, in whatever order.
        """
        if self._equal_calls is None:
            self._equal_calls = Counter()
        what = hashlib.sha256(f"{name} {arguments}".encode()).hexdigest()[:16]
        before = self._equal_calls[what]
        self._equal_calls[what] += 1
        return f"{self.key}/{what}-{before}"

    def lend_place(self) -> AbstractAsyncContextManager[None]:
        """Lend the body's place as long as the block is open (T14)."""
        return nullcontext() if self.place is None else self.place.lent()

    def context(
        self,
        nursery: trio.Nursery | None,
        is_cancelled: Callable[[], bool],
        call_tools: Callable[[Sequence[NestedCall]], Awaitable[list[ToolOutcome]]],
    ) -> ToolContext:
        """The context of a body; one without a nursery runs in a thread."""
        token = None if nursery is not None else trio.lowlevel.current_trio_token()
        return ToolContext(
            agent=self._batch.agent,
            call=self._call,
            key=self.key,
            report=functools.partial(self._report, token),
            add_context=self._add_context,
            append=functools.partial(self._append_from, token),
            is_cancelled=is_cancelled,
            tools=self._tools,
            call_tools=call_tools,
            lend_place=self.lend_place,
            nursery=nursery,
        )

    def _tools(self) -> tuple[ToolDeclaration, ...]:
        tools = self._batch.tools
        live = set(tools.names)
        return tuple(one for one in tools.declarations if one.name in live)

    def _report(
        self,
        token: trio.lowlevel.TrioToken | None,
        message: str | None,
        done: float | None,
        total: float | None,
    ) -> None:
        progress = Progress(self._call, message, done, total)
        if token is None:
            self._notify(progress)
        else:
            token.run_sync_soon(self._notify, progress)

    def _notify(self, progress: Progress) -> None:
        if not self.closed:
            self._batch.notify(progress)

    def _add_context(self, message: Content | UserMessage) -> None:
        added = message if isinstance(message, UserMessage) else user_message(message)
        if not self.closed:
            self.contexts.append(added)

    def _append_from(self, token: trio.lowlevel.TrioToken | None, fact: EventData) -> None:
        if token is None:
            self._append(fact)
        else:
            trio.from_thread.run_sync(self._append, fact, trio_token=token)

    def _append(self, fact: EventData) -> None:
        if self.closed:
            raise InvalidInputError(f"the call {self._call!r} has ended: it can't append {fact!r}")
        self._batch.session.append(fact)
