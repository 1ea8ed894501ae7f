"""What opens behind a turn by itself, and what is parked (R4)."""

import trio
from trio.testing import MockClock

from tests.agent.listening import retrying
from tests.agent.reading import admitted, ends, pending, reasons, said
from trioloop.events import Event, TurnEnded
from trioloop.hooks.points import TurnStopping
from trioloop.testing import Fail, ScriptedModel, Stall, Text, open_test_runtime


async def test_an_error_parks_the_queue_until_the_next_wake(autojump_clock: MockClock) -> None:
    async with open_test_runtime(
        model=ScriptedModel([Fail("AUTH"), Text("2"), Text("3")])
    ) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await agent.wait_idle()
        assert reasons(agent) == ["error"]
        assert pending(agent) == ["two"]
        agent.followup("three")
        await agent.wait_idle()
        assert admitted(agent) == ["one", "two", "three"]


async def test_an_inject_left_behind_opens_no_turn_and_a_steer_does(
    autojump_clock: MockClock,
) -> None:
    def late(event: Event) -> None:
        if isinstance(event.data, TurnEnded) and event.data.turn == 1:
            agent.inject("context")
        if isinstance(event.data, TurnEnded) and event.data.turn == 2:
            agent.steer("steer")

    model = ScriptedModel(lambda _: Text("x"))
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.observe(late)
        await agent.ask("one")
        await agent.wait_idle()
        assert reasons(agent) == ["completed"]
        assert pending(agent) == ["context"]
        agent.followup("two")
        await agent.wait_idle()
        assert reasons(agent) == ["completed"] * 3
        assert admitted(agent) == ["one", "context", "two", "steer"]


async def test_what_was_parked_in_next_turn_runs_first_in_a_turn_of_its_own(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Text("1"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.send("parked", target="next-turn", wakeup=False)
        agent.followup("prompt")
        await agent.wait_idle()
        assert said(model.requests[0]) == ["U parked"]
        assert len(ends(agent)) == 2


async def test_a_steer_opens_a_turn_without_what_is_parked_in_next_turn(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Text("1"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.send("parked", target="next-turn", wakeup=False)
        agent.steer("steer")
        await agent.wait_idle()
        assert said(model.requests[0]) == ["U steer"]
        assert said(model.requests[1])[-1] == "U parked"


async def test_stopping_is_asked_in_the_turn_that_completes(autojump_clock: MockClock) -> None:
    asked: list[int] = []

    async def stopping(turn: TurnStopping) -> None:
        asked.append(turn.turn)

    model = ScriptedModel([Fail("SERVER"), Text("hi")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.turn_stopping.add(stopping)
        agent.hooks.request_error.add(retrying(fresh_turn=True))
        await agent.ask("one")
    assert asked == [2]


async def test_a_wake_whose_message_was_removed_does_not_run_an_injected_context(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.inject("context")
        agent.inbox.remove(agent.followup("one"))
        await agent.wait_idle()
        assert ends(agent) == []
        assert pending(agent) == ["context"]


async def test_a_wake_that_found_nothing_is_not_remembered(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.inject("old")
        agent.wake()
        agent.inbox.clear()
        await agent.wait_idle()
        agent.inject("context")
        agent.inbox.remove(agent.followup("one"))
        await agent.wait_idle()
        assert ends(agent) == []
        assert pending(agent) == ["context"]


async def test_a_second_cancel_keeps_a_wake_behind_the_first(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall(), Text("x")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await trio.sleep(1)
        agent.cancel()
        agent.wake()
        agent.cancel()
        await agent.wait_idle()
        assert reasons(agent) == ["aborted", "completed"]
