"""Events to the exact request of any attempt (G2).

The live loop and whoever reads a log derive requests with the same function of the same state, so
they can't differ.
"""

from collections.abc import Iterable, Iterator

import attrs

from trioloop.errors import InvalidInputError
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    CallConfig,
    Event,
    ToolDeclaration,
)
from trioloop.ids import SessionId
from trioloop.log.fold import LogState
from trioloop.log.surface import History
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


def rebuild_request(events: Iterable[Event], seq: int) -> Request:
    """The request that the model was sent for one attempt.

    Args:
        events: the log, from its first event; read no further than `seq`.
        seq: that of the attempt's `assistant/message` or `assistant/attempt`.

    Returns:
        What the adapter received. For an attempt that a fork inherited, `session` is the fork's.

    Raises:
        InvalidInputError: the event is no attempt, or the log doesn't reach it.
        GrammarError: the log is no log up to there.
    """
    state = LogState()
    for event in events:
        if event.seq == seq:
            if isinstance(event.data, AssistantMessageLogged | AssistantAttemptLogged):
                return request_of(state)
            raise InvalidInputError(
                f"event {seq} is a {event.type}: give the seq of an assistant/message "
                "or assistant/attempt"
            )
        state.apply(event)
    raise InvalidInputError(f"the log ends with event {state.seq}: it has no event {seq}")
