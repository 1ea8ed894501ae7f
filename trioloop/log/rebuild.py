"""Events to the exact request of any attempt (G2).

The live loop and whoever reads a log derive requests with the same function of the same state, so
they can't differ.
"""

from collections.abc import Iterable, Iterator

import attrs
import msgspec

from trioloop.errors import InvalidInputError
from trioloop.events import (
    AsideStarted,
    AssistantAttemptLogged,
    AssistantMessageLogged,
    CallConfig,
    Event,
    ToolDeclaration,
)
from trioloop.ids import SessionId
from trioloop.log.fold import LogState
from trioloop.log.history import History
from trioloop.messages import Message, SystemMessage


@attrs.frozen
class Request:
    """What a model is asked, frozen: derived from the log at admission (G2).

    Attributes:
        config: the settings.
        tools: the declared tools, in order.
        system: head nodes of the system prompt, in section order.
        history: a view of the messages after them; it never changes.
        session: which session asks, for providers that keep a cache by conversation.
    """

    config: CallConfig
    tools: tuple[ToolDeclaration, ...]
    system: tuple[SystemMessage, ...]
    history: History
    session: SessionId

    @property
    def messages(self) -> Iterator[Message]:
        """All messages in order: the system prompt, then the history."""
        yield from self.system
        yield from self.history


def request_of(state: LogState) -> Request:
    """The request that an attempt in this state is sent. O(1).

    Raises:
        InvalidInputError: no request header has been logged yet.
    """
    if state.session is None or state.header is None:
        raise InvalidInputError("a log has no request before its first request/header")
    return Request(
        config=state.header.config,
        tools=state.header.tools,
        system=state.surface.heads,
        history=state.surface.history,
        session=SessionId(state.session.session),
    )


def aside_of(state: LogState, aside: AsideStarted) -> Request:
    """The request of an aside in this state. O(history).

    Raises:
        InvalidInputError: no request header has been logged yet, or the history has no such part.
    """
    whole = request_of(state)
    config = msgspec.structs.replace(whole.config, tool_choice=None)
    if not aside.tools:
        config = msgspec.structs.replace(config, parallel_tool_calls=None)
    return Request(
        config=config,
        tools=whole.tools if aside.tools else (),
        system=whole.system,
        history=History.of([*_part(state, aside.history), aside.question]),
        session=whole.session,
    )


def _part(state: LogState, part: tuple[int, int] | None) -> list[Message]:
    if part is None:
        return []
    start, stop = (state.surface.position(seq) for seq in part)
    if start is None or stop is None or start > stop:
        raise InvalidInputError(f"the history has no part from event {part[0]} to event {part[1]}")
    return state.surface.history[start : stop + 1]


def rebuild_request(events: Iterable[Event], seq: int) -> Request:
    """The request that the model was sent for one attempt, or for an aside.

    Args:
        events: the log, from its first event; read no further than `seq`.
        seq: that of the attempt's `assistant/message` or `assistant/attempt`, or of the
            `aside/start`.

    Returns:
        What the adapter received. For an attempt that a fork inherited, `session` is the fork's.

    Raises:
        InvalidInputError: the event is none of these, or the log doesn't reach it.
        GrammarError: the log is no log up to there.
    """
    state = LogState()
    for event in events:
        if event.seq == seq:
            if isinstance(event.data, AssistantMessageLogged | AssistantAttemptLogged):
                return request_of(state)
            if isinstance(event.data, AsideStarted):
                return aside_of(state, event.data)
            raise InvalidInputError(
                f"event {seq} is a {event.type}: give the seq of an assistant/message "
                "or assistant/attempt"
            )
        state.apply(event)
    raise InvalidInputError(f"the log ends with event {state.seq}: it has no event {seq}")
