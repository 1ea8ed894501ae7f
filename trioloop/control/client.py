"""A client of a control endpoint: typed methods, and subscriptions that mend themselves.

    async with connect("http://127.0.0.1:8765/#TOKEN") as control:
        await control.create("paris")
        await control.send("paris", "How warm is Paris?")
        async with control.subscribe("paris") as feed:
            async for event in feed: ...

A lost connection is opened again, a command that was under way is sent again with its id, and a
subscription goes on behind the last event that it gave.
"""

import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from trioloop.agent.notifications import Notification
from trioloop.control import parameters, results
from trioloop.control.address import read_address
from trioloop.control.feed import Feed, Follower
from trioloop.control.layers import own_layers_off
from trioloop.control.link import Line, Link
from trioloop.errors import InvalidInputError
from trioloop.events import Event
from trioloop.messages import Content, MessageList, as_blocks
from trioloop.plugins.approval import Remember

__all__ = ["Control", "Event", "Feed", "Notification", "connect"]


@asynccontextmanager
async def connect(
    url: str,
    token: str | None = None,
    *,
    tls_context: ssl.SSLContext | None = None,
    patience_s: float = 60,
) -> AsyncIterator["Control"]:
    """A client, for as long as the block is open; the endpoint is asked for its version first.

    Args:
        url: as `trioloop serve` prints it.
        token: where the address has none.
        tls_context: what to trust beside what the system does.
        patience_s: how long an endpoint that can't be reached is tried.

    Raises:
        InvalidInputError: the address has another form, or there is no token.
        EndpointRefusedError: the endpoint doesn't let us in.
        OSError: it can't be reached, or shows a certificate that isn't trusted.
    """
    address, found = read_address(url, tls_context)
    chosen = token or found
    if not chosen.isascii() or not chosen.isprintable() or not chosen:
        raise InvalidInputError(
            "the endpoint's token is missing: it stands behind the # of the "
            "address that `trioloop serve` prints"
        )
    with own_layers_off():
        async with trio.open_nursery() as readers:
            line = Line(nursery=readers, address=address, token=chosen, patience_s=patience_s)
            async with trio.open_nursery() as nursery:
                link = Link(line)
                nursery.start_soon(link.run)  # noqa: ASYNC113 - calls wait for it
                control = Control(line, link)
                await control.info()
                yield control
                nursery.cancel_scope.cancel()
            readers.cancel_scope.cancel()


class Control:
    """The methods of an endpoint. Each is a checkpoint, and raises `WireError` where it refuses."""

    def __init__(self, line: Line, link: Link) -> None:
        self._line = line
        self._link = link

    async def info(self) -> results.Info:
        """Version, protocol, limits, and what the token allows."""
        return await self._link.call("runtime/info", parameters.Nothing(), results.Info)

    # Agents

    async def agents(self, *, after: str = "", limit: int = 100) -> results.AgentList:
        """A page of live and stored agents, by name."""
        asked = parameters.AgentPage(after=after, limit=limit)
        return await self._link.call("agents/list", asked, results.AgentList)

    async def create(self, agent: str) -> results.AgentState:
        """Make an agent on a new session; the same again where it was made before."""
        return await self._on_agent("agents/create", agent)

    async def resume(self, agent: str) -> results.AgentState:
        """Make a stored session's agent live."""
        return await self._on_agent("agents/resume", agent)

    async def status(self, agent: str) -> results.AgentState:
        """An agent as it is now."""
        return await self._on_agent("agent/status", agent)

    async def _on_agent(self, method: str, agent: str) -> results.AgentState:
        return await self._link.call(method, parameters.OneAgent(agent=agent), results.AgentState)

    async def fork(
        self, parent: str, agent: str, *, at_seq: int | None = None
    ) -> results.AgentState:
        """Make an agent that begins where another session was."""
        asked = parameters.Fork(parent=parent, agent=agent, at_seq=at_seq)
        return await self._link.call("agents/fork", asked, results.AgentState)

    async def dispose(self, agent: str, *, discard_inbox: bool = False) -> bool:
        """End an agent's registration; False: it had ended."""
        asked = parameters.Disposal(agent=agent, discard_inbox=discard_inbox)
        return (await self._link.call("agents/dispose", asked, results.Done)).changed

    # Sending

    async def send(
        self,
        agent: str,
        content: Content,
        *,
        id: str | None = None,
        target: MessageList = "next-turn",
        wakeup: bool = True,
        source: str = "user",
    ) -> results.Sent:
        """Send a message; answered when it is durable.

        Args:
            agent: to whom.
            content: text or blocks.
            id: of the message; sent again with the same, it gives the same answer.
            target: the list that it joins.
            wakeup: whether it wakes an idle agent.
            source: who sends it, in a word.
        """
        chosen = id or f"msg_{secrets.token_hex(8)}"
        message = parameters.SentMessage(id=chosen, content=as_blocks(content), source=source)
        asked = parameters.Send(agent=agent, message=message, target=target, wakeup=wakeup)
        return await self._link.call("agent/send", asked, results.Sent)

    async def followup(self, agent: str, content: Content) -> results.Sent:
        """Send a message that opens a turn of its own."""
        return await self.send(agent, content)

    async def steer(self, agent: str, content: Content) -> results.Sent:
        """Send a message that joins at the next step boundary."""
        return await self.send(agent, content, target="next-step")

    async def inject(self, agent: str, content: Content) -> results.Sent:
        """Send a message that joins at the next step boundary and wakes nobody."""
        return await self.send(agent, content, target="next-step", wakeup=False)

    async def cancel(
        self,
        agent: str,
        *,
        turn: int | None = None,
        cause: str = "user",
        discard_inbox: bool = False,
    ) -> bool:
        """Cancel the open turn; False: none was open, or not the one that is named."""
        asked = parameters.Cancel(agent=agent, turn=turn, cause=cause, discard_inbox=discard_inbox)
        return (await self._link.call("agent/cancel", asked, results.Done)).changed

    async def cancel_call(self, agent: str, call: str) -> bool:
        """Cancel one running call; False: there is no such call."""
        asked = parameters.OneCall(agent=agent, call=call)
        return (await self._link.call("agent/cancel_call", asked, results.Done)).changed

    async def wake(self, agent: str) -> bool:
        """Go on with what is pending; False: nothing is."""
        asked = parameters.OneAgent(agent=agent)
        return (await self._link.call("agent/wake", asked, results.Done)).changed

    # Inbox

    async def inbox(self, agent: str) -> results.Inbox:
        """The pending messages."""
        asked = parameters.OneAgent(agent=agent)
        return await self._link.call("inbox/list", asked, results.Inbox)

    async def remove(self, agent: str, message: str) -> bool:
        """Discard a pending message; False: it isn't pending."""
        asked = parameters.OneMessage(agent=agent, message=message)
        return (await self._link.call("inbox/remove", asked, results.Done)).changed

    async def replace(self, agent: str, message: str, content: Content) -> bool:
        """Put other content in a pending message's place; False: it isn't pending."""
        asked = parameters.Replacement(agent=agent, message=message, content=as_blocks(content))
        return (await self._link.call("inbox/replace", asked, results.Done)).changed

    async def restore(self, agent: str, turn: int) -> int:
        """Put back what a turn claimed and didn't admit; how many messages that were."""
        asked = parameters.OneTurn(agent=agent, turn=turn)
        return (await self._link.call("inbox/restore", asked, results.Restored)).messages

    # Logs

    async def explain(self, agent: str, message: str) -> results.Story:
        """What happened to a message."""
        asked = parameters.OneMessage(agent=agent, message=message)
        return await self._link.call("session/explain", asked, results.Story)

    async def events(self, agent: str, *, after: int = -1, limit: int = 100) -> results.Events:
        """A page of durable events, as JSON."""
        asked = parameters.EventPage(agent=agent, after=after, limit=limit)
        return await self._link.call("session/events", asked, results.Events)

    @asynccontextmanager
    async def subscribe(
        self, agent: str, *, after: int = -1, opened: int | None = None, live: bool = False
    ) -> AsyncIterator[Feed]:
        """Each durable event after a cursor exactly once, in order, then those to come.

        It has a connection of its own, so that reading slowly holds nothing else up, and it goes on
        behind the last event whenever that connection is lost.

        Args:
            agent: whose session.
            after: the seq of the last event that the reader has.
            opened: the `created` of the `session/opened` that the reader has.
            live: give live notifications, too. After a reconnect, the running attempt is told from
                its beginning.

        Raises:
            WireError: from reading, where the endpoint refuses.
            EndpointRefusedError: from reading, where it doesn't let us in any more.
            OSError: from reading, where it can't be reached any more.
        """
        follower = Follower(self._line, self._link, agent, after, opened, live=live)
        with own_layers_off():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(follower.run)  # noqa: ASYNC113 - the feed waits for it
                yield follower.feed
                nursery.cancel_scope.cancel()

    # Approvals

    async def approvals(self) -> tuple[results.Approval, ...]:
        """The questions that wait for an answer, the oldest first."""
        asked = parameters.Nothing()
        return (await self._link.call("approval/list", asked, results.Approvals)).approvals

    async def answer(
        self,
        approval: str,
        *,
        allow: bool,
        reason: str = "",
        remember: Remember | None = None,
    ) -> results.Answered:
        """Answer a question; the first answer counts. `remember` lets it hold for others alike."""
        asked = parameters.Answer(approval=approval, allow=allow, reason=reason, remember=remember)
        return await self._link.call("approval/answer", asked, results.Answered)

    async def forget(self, agent: str, *, about: str | None = None) -> bool:
        """Take back answers that hold for an agent's further calls; False: none does.

        Args:
            agent: whose calls.
            about: what the answer is about, as its question says; None: all of them.
        """
        asked = parameters.Forgetting(agent=agent, about=about)
        return (await self._link.call("approval/forget", asked, results.Done)).changed
