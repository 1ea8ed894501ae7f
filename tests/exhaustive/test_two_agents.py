"""Two agents in a storm of senders and cancels: each message has one fate, as `explain` tells (G5).

On the real clock, as some of the senders are threads.
"""

import random
import threading

import attrs
import pytest
import trio

from tests.exhaustive.cancelling import go_on
from tests.exhaustive.checks import check_messages
from tests.exhaustive.waits import pass_waits
from trioloop import explain
from trioloop.agent.agent import Agent
from trioloop.events import UserMessageLogged
from trioloop.log.rebuild import Request
from trioloop.messages import MessageList, UserMessage, text_of, user_message
from trioloop.models.scripted import Entry
from trioloop.testing import ScriptedModel, Text, ToolCall, Wait, open_test_runtime
from trioloop.tools.tool import tool

FOLLOWUPS = 25
"""Follow-ups of each of the four senders of one agent."""


@tool(effects="read-only")
async def look() -> str:
    """Look."""
    await pass_waits()
    return "seen"


@attrs.frozen(eq=False)
class Storm:
    """What comes over one agent.

    Attributes:
        agent: the agent.
        chance: decides what comes when.
        sent: the ids of all that was sent.
    """

    agent: Agent
    chance: random.Random
    sent: list[str] = attrs.field(factory=list)

    def message(self, source: str, number: int) -> UserMessage:
        """A message whose id is its text, and tells who sent it."""
        id = f"{self.agent.name}/{source}/{number}"
        self.sent.append(id)
        return user_message(id, id=id)

    async def break_out(self) -> None:
        """Let everybody send and cancel at once; ends when all have."""
        threads = [threading.Thread(target=self._send_soon, args=(name,)) for name in ("x", "y")]
        for thread in threads:
            thread.start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send_followups)
            nursery.start_soon(trio.to_thread.run_sync, self._send_from_thread)
            nursery.start_soon(self._send_for_the_step)
            nursery.start_soon(self._cancel)
        for thread in threads:
            await trio.to_thread.run_sync(thread.join)

    async def _pause(self) -> None:
        await trio.sleep(self.chance.random() / 500)

    async def _send_followups(self) -> None:
        for number in range(FOLLOWUPS):
            self.agent.followup(self.message("followup", number))
            await self._pause()

    def _send_from_thread(self) -> None:
        for number in range(FOLLOWUPS):
            self.agent.from_thread.send(self.message("from_thread", number))

    def _send_soon(self, name: str) -> None:
        for number in range(FOLLOWUPS):
            self.agent.send_soon(self.message(f"send_soon {name}", number))

    async def _send_for_the_step(self) -> None:
        for number in range(FOLLOWUPS):
            await self._pause()
            list_: MessageList = self.chance.choice(("next-step", "next-turn"))
            wakeup = self.chance.random() < 0.5
            self.agent.send(self.message("step", number), target=list_, wakeup=wakeup)

    async def _cancel(self) -> None:
        for number in range(FOLLOWUPS):
            await self._pause()
            match number % 5:
                case 0:
                    self.agent.cancel(discard_inbox=self.chance.random() < 0.2)
                case 1 if len(self.agent.session.state.inbox):
                    one = self.chance.choice(list(self.agent.session.state.inbox))
                    self.agent.inbox.remove(one.message.id)
                case 2:
                    self.agent.wake()
                case _:
                    self.agent.cancel()


def _answer(request: Request) -> Entry:
    if len(list(request.messages)) % 4 == 0:
        return [ToolCall("look"), ToolCall("look")]
    return [Text("a"), Wait(0.0005), Text("b")]


@pytest.mark.parametrize("seed", range(3))
async def test_each_message_has_one_fate_whoever_sends_and_cancels(seed: int) -> None:
    model = ScriptedModel(_answer)
    async with open_test_runtime(model=model, tools=[look]) as runtime:
        storms = [
            Storm(await runtime.create_agent(name), random.Random(f"{name} {seed}"))
            for name in ("a", "b")
        ]
        async with trio.open_nursery() as nursery:
            for storm in storms:
                nursery.start_soon(storm.break_out)
        for storm in storms:
            await storm.agent.wait_idle()
            await go_on(storm.agent)
    for storm in storms:
        _check(storm)


def _check(storm: Storm) -> None:
    events = storm.agent.session.events()
    assert check_messages(storm.agent.session) == []
    assert len(storm.sent) == 5 * FOLLOWUPS
    statuses = {explain(events, id).fate.status for id in storm.sent}
    assert "admitted" in statuses
    assert statuses <= {"admitted", "discarded", "unadmitted"}
    joined = [event.data for event in events if isinstance(event.data, UserMessageLogged)]
    admitted = [text_of(fact.message.content) for fact in joined]
    for source in ("followup", "from_thread", "send_soon x", "send_soon y"):
        numbers = [int(id.split("/")[2]) for id in admitted if id.split("/")[1] == source]
        assert numbers == sorted(numbers), "follow-ups of one sender were admitted out of order"
