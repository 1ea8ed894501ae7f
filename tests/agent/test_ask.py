"""What an asker gets, whatever becomes of its message (I6)."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import admitted, ends, pass_waits, pending, reasons, status
from trioloop.agent import asking
from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Settled
from trioloop.chunks import Usage
from trioloop.errors import (
    AgentBusyError,
    AgentDisposedError,
    DiscardedError,
    DuplicateMessageError,
    ParkedError,
    TrioloopError,
)
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Decision, PreStep, Reject, TurnStopping
from trioloop.ids import MessageId
from trioloop.messages import user_message
from trioloop.testing import Answer, Fail, ScriptedModel, Stall, Text, Wait, open_test_runtime


async def test_ask_gives_the_outcome_of_the_turn_that_took_the_message(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Answer((Text("hi"),), usage=Usage(input_tokens=7, output_tokens=2))])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("hello")
    assert (settled.turn, settled.turns, settled.reason) == (1, (1,), "completed")
    assert settled.text == "hi"
    assert settled.usage == Usage(input_tokens=7, output_tokens=2)
    assert settled.store_error is None


async def test_two_askers_get_their_own_turns(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[Wait(1), Text("1")], [Wait(1), Text("2")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        got: dict[str, Settled] = {}

        async def ask(text: str) -> None:
            got[text] = await agent.ask(text)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "one")
            nursery.start_soon(ask, "two")
        assert sorted(one.turn for one in got.values()) == [1, 2]
        assert sorted(one.text for one in got.values()) == ["1", "2"]


async def test_ask_is_answered_only_once_the_turn_is_durable(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("hello")
        assert agent.session.durable_seq == agent.session.seq


async def test_an_error_turn_is_an_outcome_not_an_exception(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Fail("AUTH", "no key")])) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("hello")
    assert (settled.reason, settled.code, settled.message) == ("error", "AUTH", "no key")


async def test_a_blocked_turn_is_an_outcome(autojump_clock: MockClock) -> None:
    async def reject(step: PreStep, next: Next[Decision]) -> Decision:
        return Reject("not now", "LATER")

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(reject)
        settled = await agent.ask("hello")
    assert (settled.reason, settled.code, settled.message) == ("blocked", "LATER", "not now")


# What it raises


async def raised_by_ask(
    agent: Agent, act: Callable[[], Awaitable[None] | None], *, after: float = 1
) -> TrioloopError:
    """What an `ask` raises when something is done `after` seconds after it began."""
    caught: list[TrioloopError] = []

    async def ask() -> None:
        try:
            await agent.ask("asked")
        except TrioloopError as error:
            caught.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.sleep(after)
        done = act()
        if done is not None:
            await done
    return caught[0]


async def test_ask_raises_when_its_message_is_dropped_before_a_turn(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[Wait(5), Text("1")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("first")
        error = await raised_by_ask(agent, lambda: void(agent.inbox.clear()))
        assert isinstance(error, DiscardedError)
        assert error.outcome == "canceled"
        await agent.wait_idle()
        assert admitted(agent) == ["first"]


def void(_: object) -> None:
    """Nothing, whatever is given."""


async def test_ask_raises_when_its_message_is_replaced(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[Wait(5), Text("1")], Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("first")

        def replace() -> None:
            agent.inbox.replace(agent.inbox.next_turn[0].message.id, user_message("x", id="m-x"))

        error = await raised_by_ask(agent, replace)
        assert isinstance(error, DiscardedError)
        assert error.outcome == "replaced"


async def test_ask_raises_parked_when_the_driver_stops_before_its_message(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("first")
        error = await raised_by_ask(agent, agent.cancel)
        assert isinstance(error, ParkedError)
        assert pending(agent) == ["asked"]
        assert trio.current_time() == 1


async def test_ask_raises_parked_behind_a_failing_turn(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([[Wait(5), Fail("AUTH")]])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("first")
        error = await raised_by_ask(agent, lambda: None)
        assert isinstance(error, ParkedError)


async def test_ask_raises_parked_when_its_wake_is_dropped(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        with agent.on("status", lambda _: agent.cancel()), pytest.raises(ParkedError):
            await agent.ask("hello")
        assert pending(agent) == ["hello"]


async def test_ask_raises_when_its_agent_is_disposed_of(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("first")
        error = await raised_by_ask(agent, agent.dispose)
        assert isinstance(error, ParkedError)
        with pytest.raises(AgentDisposedError):
            await agent.ask("more")


async def test_ask_raises_discarded_when_disposal_drops_its_message(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("first")
        error = await raised_by_ask(agent, lambda: agent.dispose(discard_inbox=True))
        assert isinstance(error, DiscardedError)


async def test_ask_of_a_message_that_is_known_is_refused(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask(user_message("hello", id="m-1"))
        with pytest.raises(DuplicateMessageError):
            await agent.ask(user_message("hello", id="m-1"))


@pytest.mark.parametrize("what", ["ask", "wait_idle", "run_maintenance"])
async def test_waiting_for_the_agents_own_turn_from_inside_it_is_refused(
    what: str, autojump_clock: MockClock
) -> None:
    async def job() -> None:
        raise AssertionError

    async def stopping(turn: TurnStopping) -> None:
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "ask": lambda: agent.ask("inside"),
            "wait_idle": agent.wait_idle,
            "run_maintenance": lambda: agent.run_maintenance(job),
        }
        with pytest.raises(AgentBusyError):
            await calls[what]()
        refused.append(what)

    refused: list[str] = []
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.turn_stopping.add(stopping)
        await agent.ask("hello")
        assert refused == [what]
        await agent.wait_idle()
        assert len(ends(agent)) == 1


async def test_a_turn_may_ask_another_agent(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Text("outer"), Text("inner")])
    async with open_test_runtime(model=model) as runtime:
        outer, inner = await runtime.create_agent("outer"), await runtime.create_agent("inner")
        answers: list[str] = []

        @outer.hooks.turn_stopping
        async def stopping(turn: TurnStopping) -> None:
            answers.append((await inner.ask("you")).text)

        await outer.ask("hello")
    assert answers == ["inner"]


# When the asker is cancelled


async def test_a_cancelled_ask_takes_its_pending_message_back(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([[Wait(5), Text("1")]])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("first")
        with trio.move_on_after(1):
            await agent.ask("asked")
        assert trio.current_time() == 1
        assert pending(agent) == []
        assert status(agent) == "running"


async def test_a_cancelled_ask_cancels_the_turn_that_has_its_message(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall(), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        with trio.move_on_after(1):
            await agent.ask("asked")
        await agent.wait_idle()
        assert trio.current_time() == 1
        assert [(end.reason, end.cause) for end in ends(agent)] == [("aborted", "asker-cancelled")]
        assert pending(agent) == []


async def test_a_cancelled_ask_never_drops_what_others_sent(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Stall()])) as runtime:
        agent = await runtime.create_agent("a")
        with trio.move_on_after(1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.ask, "asked")
                await trio.sleep(0.5)
                agent.followup("other")
        await agent.wait_idle()
        assert pending(agent) == ["other"]


async def test_a_cancelled_ask_takes_back_its_own_message_alone(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([[Wait(5), Text("1")]])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("first")
        agent.followup("other")
        with trio.move_on_after(1):
            await agent.ask("asked")
        assert pending(agent) == ["other"]


async def test_an_ask_cancelled_as_its_message_is_dropped_cancels_nobodys_turn(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([[Wait(5), Text("1")]])) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("first")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.ask, "asked")
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
            agent.inbox.clear()
        await agent.wait_idle()
        assert reasons(agent) == ["completed"]


def test_the_first_outcome_of_a_message_stands() -> None:
    answer = asking.Answer()
    answer.give(DiscardedError(MessageId("m1"), "canceled"))
    answer.give(ParkedError("too late"))
    with pytest.raises(DiscardedError):
        trio.run(answer.wait)


async def test_a_cancelled_ask_may_leave_message_and_turn_alone(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[Wait(5), Text("1")], Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")

        async def ask(text: str) -> None:
            await agent.ask(text, cancel_turn=False)

        with trio.move_on_after(1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, "one")
                nursery.start_soon(ask, "two")
        await agent.wait_idle()
        assert reasons(agent) == ["completed", "completed"]
        assert sorted(admitted(agent)) == ["one", "two"]


async def test_an_ask_cancelled_after_its_outcome_cancels_nobodys_turn(
    autojump_clock: MockClock,
) -> None:
    """The outcome is there, the next turn runs, and only then is the asker cancelled."""
    async with open_test_runtime(model=ScriptedModel([Text("1"), [Wait(1), Text("2")]])) as runtime:
        agent = await runtime.create_agent("a")
        with trio.CancelScope() as scope:
            agent.on("settled", lambda _: scope.cancel())
            await agent.ask("one")
        agent.followup("two")
        await agent.wait_idle()
        assert reasons(agent) == ["completed", "completed"]


async def test_an_ask_cancelled_in_preparation_commits_nothing(autojump_clock: MockClock) -> None:
    async def slow(step: PreStep, next: Next[Decision]) -> Decision:
        await trio.sleep(5)
        await pass_waits()
        return await next()

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(slow)
        with trio.move_on_after(1):
            await agent.ask("asked")
        await agent.wait_idle()
        assert trio.current_time() == 1
        assert reasons(agent) == ["aborted"]
        assert admitted(agent) == []


async def test_an_ask_in_a_cancelled_scope_leaves_nothing_behind(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        with trio.CancelScope() as scope:
            scope.cancel()
            await agent.ask("asked")
        await agent.wait_idle()
        assert pending(agent) == []
        assert ends(agent) == []
