"""A client's subscriptions: cursors into logs, and the live facts beside them."""

import attrs
import msgspec
import trio
from msgspec import Raw

from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Notification, StreamChunks
from trioloop.control.encoded import Encoded, EncodedEvents
from trioloop.control.haste import Haste
from trioloop.control.limits import ControlLimits
from trioloop.control.pace import Pace
from trioloop.control.protocol import encode_notification
from trioloop.control.results import AgentNotification, SessionEnd, SessionEvent
from trioloop.control.voice import Cursor, Voice

_encode = msgspec.json.Encoder().encode


class Audience:
    """What the subscriptions of an endpoint share, so that many cost agents no more than a few.

    Attributes:
        encoded: the events that were told last.
        pace: turns for live frames.
        haste: what makes events durable soon.
    """

    def __init__(self, limits: ControlLimits) -> None:
        self.encoded = EncodedEvents(limits.frame_bytes_max)
        self.pace = Pace(limits.live_frames_per_s_max)
        self.haste = Haste()


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

    async def tell(self, voice: Voice, audience: Audience, after: int, *, live: bool) -> None:
        """Say each durable event after a cursor, then those to come, until the session closes.

        Args:
            voice: where it is said.
            audience: to whom this client belongs.
            after: the seq of the last event that the client has.
            live: say what happens now, too; chunks gather while the client reads something else.
        """
        with self.scope:
            async with trio.open_nursery() as nursery:
                if live:
                    nursery.start_soon(self._tell_live, voice, audience.pace)
                    nursery.start_soon(audience.haste.hurry, self.agent)
                async with self.agent.session.subscribe(after, durable=True) as events:
                    async for event in events:
                        frame = self._frame(audience.encoded.of(self.agent.name, event))
                        await voice.say(frame, Cursor(self.agent.name, event.seq))
                nursery.cancel_scope.cancel()
            end = SessionEnd(subscription=self.number)
            await voice.say(encode_notification("session/end", end))

    def _frame(self, told: Encoded) -> str:
        event = SessionEvent(subscription=self.number, event=told.whole, large=told.large)
        return encode_notification("session/event", event)

    async def _tell_live(self, voice: Voice, pace: Pace) -> None:
        async with self.agent.watch(whole_attempt=True) as feed:
            async for notification in feed:
                if isinstance(notification, StreamChunks):
                    await pace.turn()
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
