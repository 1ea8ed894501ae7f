"""What methods take: one frozen class each. Fields that a class doesn't have are refused."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from trioloop.messages import Block, MessageList
from trioloop.plugins.approval import Remember

Preset = Literal["followup", "steer", "inject"]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Cursor = Annotated[int, Meta(ge=-1, le=2**53)]
Page = Annotated[int, Meta(ge=1, le=1_000)]
Word = Annotated[str, Meta(min_length=1, max_length=128)]
Sentence = Annotated[str, Meta(max_length=1_000)]


class Parameters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of what methods take."""


class Nothing(Parameters, frozen=True):
    """Nothing."""


class Token(Parameters, frozen=True):
    """A token.

    Attributes:
        token: as it was given out.
    """

    token: Annotated[str, Meta(max_length=1_000)]


class AgentPage(Parameters, frozen=True):
    """A page of a list of agents.

    Attributes:
        after: the name that the last page ended with.
        limit: names on the page.
    """

    after: str = ""
    limit: Page = 100


class OneAgent(Parameters, frozen=True):
    """An agent.

    Attributes:
        agent: its name, which is its session's.
    """

    agent: str


class Fork(Parameters, frozen=True):
    """A fork to make.

    Attributes:
        parent: the session to begin with.
        agent: the new one's name.
        at_seq: the last event to inherit; left out, the last one outside of a turn.
    """

    parent: str
    agent: str
    at_seq: Count | None = None


class Disposal(OneAgent, frozen=True):
    """An agent to dispose of.

    Attributes:
        discard_inbox: drop what is pending, too.
    """

    discard_inbox: bool = False


class SentMessage(Parameters, frozen=True):
    """A message to send.

    Attributes:
        id: chosen by the client; sent again with the same message, it gives the same answer.
        content: text, or content blocks.
        source: who sends it, in a word of the client's own.
    """

    id: Word
    content: str | tuple[Block, ...]
    source: Word = "user"


class Send(OneAgent, frozen=True):
    """A message for an agent, which joins by a preset or by list and wakeup.

    Attributes:
        message: what is sent.
        preset: `followup` is next-turn, `steer` next-step, `inject` next-step without waking.
        target: the list that it joins.
        wakeup: whether it wakes an idle agent.
    """

    message: SentMessage
    preset: Preset | UnsetType = UNSET
    target: MessageList | UnsetType = UNSET
    wakeup: bool | UnsetType = UNSET


class Cancel(OneAgent, frozen=True):
    """A turn to cancel.

    Attributes:
        turn: only if this turn is open; left out, whichever is.
        cause: why, in a word.
        discard_inbox: drop what is pending, too.
    """

    turn: Count | None = None
    cause: Word = "user"
    discard_inbox: bool = False


class OneCall(OneAgent, frozen=True):
    """A running call.

    Attributes:
        call: its id.
    """

    call: Word


class OneMessage(OneAgent, frozen=True):
    """A message.

    Attributes:
        message: its id.
    """

    message: Word


class Replacement(OneMessage, frozen=True):
    """What a pending message is replaced with.

    Attributes:
        content: text, or content blocks.
    """

    content: str | tuple[Block, ...]


class OneTurn(OneAgent, frozen=True):
    """A turn.

    Attributes:
        turn: its number.
    """

    turn: Count


class EventPage(OneAgent, frozen=True):
    """A page of a session's events.

    Attributes:
        after: the seq of the last event that the client has.
        limit: events on the page; it may hold fewer.
    """

    after: Cursor = -1
    limit: Page = 100


class EventPart(OneAgent, frozen=True):
    """A part of one large event.

    Attributes:
        seq: the event's seq.
        offset: characters of its JSON text that the client has.
    """

    seq: Count
    offset: Count = 0


class Subscribe(OneAgent, frozen=True):
    """A subscription to a session.

    Attributes:
        after: the seq of the last event that the client has.
        opened: the `created` of the `session/opened` that the client has; a cursor is refused
            where the session of that name is another one by now.
        live: give live notifications, too.
    """

    after: Cursor = -1
    opened: Count | None = None
    live: bool = False


class Unsubscribe(Parameters, frozen=True):
    """A subscription to end.

    Attributes:
        subscription: its number.
    """

    subscription: Count


class Answer(Parameters, frozen=True):
    """An answer to a question.

    Attributes:
        approval: the question's id.
        allow: whether the call may run.
        reason: why, for the model, where it may not.
        remember: how long the answer holds for further calls that are about the same; null: for
            this call alone. A question whose `about` is empty can't be answered so.
    """

    approval: Word
    allow: bool
    reason: Sentence = ""
    remember: Remember | None = None


class Forgetting(OneAgent, frozen=True):
    """Answers to take back that hold for an agent's further calls.

    Attributes:
        about: what the answer is about, as its question says; null: all of them.
    """

    about: Sentence | None = None
