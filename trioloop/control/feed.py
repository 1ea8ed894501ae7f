"""A subscription as a client reads it, whole whatever happens to its connections."""

from collections.abc import AsyncIterator, Mapping
from typing import TypeAlias

import attrs
import msgspec
import trio
from msgspec import Raw

from trioloop.agent.notifications import Notification
from trioloop.codec import decode_event
from trioloop.control import bodies  # noqa: F401 - declares notifications of its own
from trioloop.control.connection import Connection
from trioloop.control.link import Line, Link, incoming, request
from trioloop.control.parameters import EventPart, Subscribe
from trioloop.control.results import (
    AgentNotification,
    LargeEvent,
    Part,
    SessionEvent,
    Subscribed,
)
from trioloop.errors import TrioloopError
from trioloop.events import Event
from trioloop.ids import SessionId

Told: TypeAlias = Event | Notification


class Feed(AsyncIterator[Told]):
    """Events, and notifications if they were asked for. Reading is a checkpoint."""

    def __init__(self, channel: trio.MemoryReceiveChannel[Told | Exception]) -> None:
        self._channel = channel

    async def __anext__(self) -> Told:
        try:
            told = await self._channel.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None
        if isinstance(told, Exception):
            raise told
        return told


class Follower:
    """Follows one session over as many connections as it takes.

    Attributes:
        feed: what it has read.
    """

    def __init__(
        self,
        line: Line,
        link: Link,
        agent: str,
        after: int,
        opened: int | None,
        *,
        live: bool,
    ) -> None:
        self._line = line
        self._link = link
        self._agent = agent
        self._after = after
        self._opened = opened
        self._live = live
        self._out, channel = trio.open_memory_channel[Told | Exception](0)
        self.feed = Feed(channel)

    async def run(self) -> None:
        """Follow until the session ends, or nothing more can come; the feed tells which."""
        async with self._out:
            try:
                await self._line.keep(self._follow)
            except (TrioloopError, OSError, trio.TooSlowError) as error:
                await self._out.send(error)

    async def _follow(self, connection: Connection) -> None:
        asked = Subscribe(
            agent=self._agent, after=self._after, opened=self._opened, live=self._live
        )
        await connection.send(request(1, "session/subscribe", asked))
        while True:
            frame = await incoming(connection)
            if frame.error is not None:
                raise frame.error.as_error()
            if frame.id == 1:
                self._opened = msgspec.json.decode(frame.result, type=Subscribed).agent.opened
            elif frame.method == "session/event":
                await self._take(msgspec.json.decode(frame.params, type=SessionEvent))
            elif frame.method == "agent/notification":
                told = msgspec.json.decode(frame.params, type=AgentNotification)
                fact = _notification(SessionId(self._agent), told.kind, told.fact)
                if fact is not None:
                    await self._out.send(fact)
            elif frame.method == "session/end":
                return

    async def _take(self, told: SessionEvent) -> None:
        payload = bytes(told.event) if told.large is None else await self._fetched(told.large)
        event = decode_event(payload)
        await self._out.send(event)
        self._after = event.seq

    async def _fetched(self, large: LargeEvent) -> bytes:
        text = ""
        while len(text) < large.characters:
            asked = EventPart(agent=self._agent, seq=large.seq, offset=len(text))
            text += (await self._link.call("session/part", asked, Part)).text
        return text.encode()


_KINDS: Mapping[str, type[Notification]] = {cls.kind: cls for cls in Notification.__subclasses__()}


def _notification(agent: SessionId, kind: str, fact: Raw) -> Notification | None:
    """A notification from its fields; None: nobody here declares its kind."""
    cls = _KINDS.get(kind)
    if cls is None:
        return None
    fields = msgspec.json.decode(fact, type=dict[str, Raw])
    known = {
        field.name: msgspec.json.decode(fields[field.name], type=field.type)
        for field in attrs.fields(cls)
        if field.name in fields
    }
    return cls(**known, agent=agent)
