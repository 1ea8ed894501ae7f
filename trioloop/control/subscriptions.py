"""A client's subscriptions: cursors into logs, and the live facts beside them."""

from contextlib import suppress

import attrs
import msgspec
import trio
from msgspec import Raw

from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Notification
from trioloop.control.encoded import Encoded, EncodedEvents
from trioloop.control.protocol import encode_notification
from trioloop.control.results import AgentNotification, SessionEnd, SessionEvent
from trioloop.control.voice import Cursor, Voice
from trioloop.errors import StoreError

_HASTE_S = 0.1  # events within it share a commit
_encode = msgspec.json.Encoder().encode


@attrs.define(eq=False)
class Subscription:
    """One subscription of one client.

    Attributes:
        number: its number in the dialogue.
        agent: whose session.
        scope: ends it.
    """

    number: int
    agent: Agent
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    async def tell(self, voice: Voice, encoded: EncodedEvents, after: int, *, live: bool) -> None:
        """Say each durable event after a cursor, then those to come, until the session closes.

        Args:
            voice: where it is said.
            encoded: the events as they are told.
            after: the seq of the last event that the client has.
            live: say what happens now, too; chunks gather while the client reads something else.
        """
        with self.scope:
            async with trio.open_nursery() as nursery:
                if live:
                    nursery.start_soon(self._tell_live, voice)
                    nursery.start_soon(self._hasten)
                async with self.agent.session.subscribe(after, durable=True) as events:
                    async for event in events:
                        frame = self._frame(encoded.of(self.agent.name, event))
                        await voice.say(frame, Cursor(self.agent.name, event.seq))
                nursery.cancel_scope.cancel()
            end = SessionEnd(subscription=self.number)
            await voice.say(encode_notification("session/end", end))

    def _frame(self, told: Encoded) -> str:
        event = SessionEvent(subscription=self.number, event=told.whole, large=told.large)
        return encode_notification("session/event", event)

    async def _hasten(self) -> None:
        """Let what is appended become durable soon, since somebody looks on."""
        session = self.agent.session
        with suppress(StoreError):  # the agent's own turn tells of it
            async with session.subscribe(session.durable_seq) as events:
                async for event in events:
                    if event.seq > session.durable_seq:
                        await trio.sleep(_HASTE_S)
                        await session.checkpoint()

    async def _tell_live(self, voice: Voice) -> None:
        async with self.agent.watch(whole_attempt=True) as feed:
            async for notification in feed:
                await voice.say(self._live_frame(notification))

    def _live_frame(self, notification: Notification) -> str:
        fact = {
            field.name: getattr(notification, field.name)
            for field in attrs.fields(type(notification))
            if field.name not in _INNER
        }
        return encode_notification(
            "agent/notification",
            AgentNotification(
                subscription=self.number, kind=notification.kind, fact=Raw(_encode(fact))
            ),
        )


_INNER = frozenset(("agent", "error"))  # told by the subscription, and nobody's business
