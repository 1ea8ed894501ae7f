"""All policies on one agent, for many turns: each does its work, and a turn costs what it cost."""

from typing import Any

from trio.testing import MockClock

import trioloop
from tests.agent.reading import facts
from tests.plugins.together import (
    KINDS,
    Together,
    counted,
    furnished,
    growth,
    held_by,
    page,
    save,
    taken,
    traced,
)
from trioloop.codec import encode_event
from trioloop.events import ToolResultLogged
from trioloop.messages import UserMessage
from trioloop.plugins.compaction import CompactionEnded
from trioloop.testing import Answer, Fail, ScriptedModel, Text, ToolCall, check_session

TURNS = 200
CYCLE = 10  # turns after which the script begins anew
WINDOW = 2_000


def answer(request: trioloop.Request) -> object:
    """What the model says: by the last question, and by how often it has answered that."""
    questions = [at for at, one in enumerate(request.history) if _is_question(one)]
    if not questions:
        return Text("A summary of it all.")  # an aside about a part
    last = request.history[len(request.history) - 1]
    if isinstance(last, UserMessage) and last.source == "compaction":
        return Text("A summary of it all.")
    if request.session != "a":
        return Answer([Text("a fact")], usage=None)
    asked = request.history[questions[-1]]
    assert isinstance(asked, UserMessage)
    steps = len(request.history) - 1 - questions[-1]
    return _of_turn(int(str(asked.content[0].text).split()[-1]), steps)  # type: ignore[union-attr]


def _is_question(message: Any) -> bool:
    return isinstance(message, UserMessage) and message.source not in ("compaction", "subagents")


def _of_turn(number: int, steps: int) -> object:
    first: dict[int, list[ToolCall]] = {
        1: [ToolCall("page", number=number), ToolCall("page", number=number + 1)],
        3: [ToolCall("save", note="one")],
        5: [ToolCall("research", task="find a fact")],
        7: [ToolCall("exit_plan_mode", plan="look, then save")],
    }
    calls = first.get(number % CYCLE)
    if steps == 0 and calls is not None:
        return Answer(calls, usage=None)
    return Answer([Text(f"done {number}")], usage=None)


class Flaky(ScriptedModel):
    """It fails now and then, and goes on when it is asked again."""

    def __init__(self) -> None:
        self.asked = 0
        super().__init__(self._answer)

    def _answer(self, request: trioloop.Request) -> Any:
        self.requests.clear()  # which it keeps for tests, and which would be all that grows
        self.asked += 1
        return Fail("SERVER") if self.asked % 17 == 0 else answer(request)


async def ask(together: Together, agent: trioloop.Agent) -> None:
    """Let it have one more turn, for which its number says what it is about."""
    number = agent.session.state.turns
    if number % CYCLE == 7:
        together.mode.select(agent, active=True)
    settled = await agent.ask(f"turn {number}")
    assert (number, settled.reason) == (number, "completed")


async def ask_for_a_cycle(together: Together, agent: trioloop.Agent) -> tuple[int, int, int]:
    """What a cycle of turns cost: events, messages of the last request, calls of functions."""
    before = agent.session.seq
    with counted() as calls:
        for _ in range(CYCLE):
            await ask(together, agent)
    return agent.session.seq - before, len(list(agent.session.state.surface.nodes)), calls[0]


async def test_two_hundred_turns_under_all_policies_stay_flat(autojump_clock: MockClock) -> None:
    async with furnished(WINDOW, model=Flaky(), tools=[page, save]) as together:
        agent = await together.runtime.create_agent("a")
        costs = [await ask_for_a_cycle(together, agent) for _ in range(TURNS // CYCLE)]
        check_session(agent.session)
        results = facts(agent, ToolResultLogged)
        ended = facts(agent, CompactionEnded)
        kinds = {event.type for event in agent.session.events()}
    assert kinds >= KINDS
    assert {one.code for one in results} == {None}
    assert "replaced" in {one.outcome for one in ended}
    for cost in zip(*costs, strict=True):
        assert growth(cost) <= 1.1, costs


async def test_the_bytes_that_turns_leave_behind_are_those_of_their_logs(
    autojump_clock: MockClock,
) -> None:
    """From the fiftieth turn on; what came before is also what modules keep for ever."""
    with traced():
        async with furnished(
            WINDOW, model=Flaky(), tools=[page, save], store=trioloop.MemoryStore()
        ) as together:
            agent = await together.runtime.create_agent("a")
            sizes = [await _size_behind(together, agent, turns) for turns in (50, 125, 200)]
        events = agent.session.events()
        first, middle, last = (size for size, _ in sizes)
        since = sizes[0][1] + 1
        log = held_by(events) - held_by(events[:since])
        stored = sum(len(encode_event(event)) for event in events[since:])
    print(f"{last - first} bytes, of which {log} are the log and {stored} in the store")
    assert last - middle <= 1.05 * (middle - first)
    assert last - first <= 1.5 * (log + stored)  # beside it the logs of the children


async def _size_behind(together: Together, agent: trioloop.Agent, turns: int) -> tuple[int, int]:
    """The bytes that are taken when so many turns are over, and the last event then."""
    while agent.session.state.turns < turns:
        await ask(together, agent)
    return taken(), agent.session.seq
