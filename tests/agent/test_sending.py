"""What a send does to the log and to an idle or running agent (I1, I2, S2)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import (
    admitted,
    ends,
    facts,
    pending,
    reasons,
    said,
    splices,
    status,
    types,
)
from trioloop.errors import (
    DuplicateMessageError,
    EventEncodingError,
    InvalidInputError,
    QueueFullError,
)
from trioloop.events import TurnStarted
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Decision, PreStep
from trioloop.ids import MessageId
from trioloop.limits import Limits
from trioloop.log.rebuild import Request
from trioloop.messages import ImageBlock, TextBlock, UserMessage, user_message
from trioloop.testing import ScriptedModel, Text, Wait, open_test_runtime


async def test_a_waking_send_sets_running_before_it_returns(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        assert status(agent) == "idle"
        agent.followup("hello")
        assert status(agent) == "running"
        await agent.wait_idle()
        assert status(agent) == "idle"
        assert reasons(agent) == ["completed"]


async def test_an_inject_to_an_idle_agent_only_changes_the_inbox(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.inject("context")
        assert status(agent) == "idle"
        await trio.sleep(100)
        assert types(agent) == []
        (splice,) = splices(agent)
        assert splice.list == "next-step"
        assert not splice.inserted[0].wakeup
        assert pending(agent) == ["context"]


async def test_a_send_that_does_not_wake_waits_in_either_list(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.send("one", target="next-turn", wakeup=False)
        agent.send("two", target="next-step", wakeup=False)
        await trio.sleep(1)
        assert status(agent) == "idle"
        assert pending(agent) == ["two", "one"]


async def test_a_steer_to_an_idle_agent_opens_one_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Text("hi")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.steer("go")
        await agent.wait_idle()
        assert reasons(agent) == ["completed"]
        assert len(model.requests) == 1


async def test_an_injected_context_travels_in_the_first_step_of_the_next_prompt(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Text("hi")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        context = user_message([TextBlock("context"), TextBlock("more")], source="sensor")
        agent.inject(context)
        await agent.ask("prompt")
        assert said(model.requests[0]) == ["U contextmore", "U prompt"]
        first = next(iter(model.requests[0].history))
        assert isinstance(first, UserMessage)
        assert first.source == "sensor"
        assert first.content == context.content


async def test_a_burst_of_followups_opens_one_turn_each_in_order(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Text("1"), Text("2"), Text("3")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        for text in ("one", "two", "three"):
            agent.followup(text)
        await agent.wait_idle()
        assert [start.turn for start in facts(agent, TurnStarted)] == [1, 2, 3]
        assert admitted(agent) == ["one", "two", "three"]
        assert said(model.requests[2]) == ["U one", "A 1", "U two", "A 2", "U three"]


async def test_followups_apart_give_the_same_turns_as_a_burst(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Text("1"), Text("2"), Text("3")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        for text in ("one", "two", "three"):
            agent.followup(text)
            await agent.wait_idle()
        assert admitted(agent) == ["one", "two", "three"]
        assert reasons(agent) == ["completed"] * 3


@pytest.mark.parametrize("waits", [(0, 1, 0, 1), (1, 0, 0, 0), (0, 0, 1, 1), (1, 1, 1, 1)])
async def test_no_mix_of_waits_between_sends_loses_or_reorders(
    waits: tuple[int, ...], autojump_clock: MockClock
) -> None:
    model = ScriptedModel([[Wait(0.3), Text("x")]] * 4)
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        for number, wait in enumerate(waits):
            agent.followup(str(number))
            await trio.sleep(wait * 0.4)
        await agent.wait_idle()
        assert admitted(agent) == ["0", "1", "2", "3"]
        assert len(ends(agent)) == 4


async def test_a_followup_while_the_model_streams_opens_a_turn_of_its_own(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[Text("a"), Wait(2), Text("b")], Text("c")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1)
        agent.followup(user_message("two", source="other"))
        await agent.wait_idle()
        assert said(model.requests[0]) == ["U one"]
        assert said(model.requests[1]) == ["U one", "A ab", "U two"]
        assert len(ends(agent)) == 2


async def test_a_followup_from_inside_the_adapter_opens_a_turn_of_its_own(
    autojump_clock: MockClock,
) -> None:
    def answer(request: Request) -> Text:
        if len(model.requests) == 1:
            agent.followup("two")
        return Text("x")

    model = ScriptedModel(answer)
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        await agent.wait_idle()
        assert [len(said(request)) for request in model.requests] == [1, 3]
        assert len(ends(agent)) == 2


async def test_steers_join_the_next_step_in_their_order(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[Wait(1), Text("a")], Text("b")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(0.5)
        agent.steer("s1")
        agent.steer("s2")
        await agent.wait_idle()
        assert said(model.requests[1]) == ["U one", "A a", "U s1", "U s2"]
        assert reasons(agent) == ["completed"]


async def test_an_inject_in_a_running_turn_asks_for_a_step(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[Wait(1), Text("a")], Text("b")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(0.5)
        agent.inject("context")
        await agent.wait_idle()
        assert len(model.requests) == 2
        assert reasons(agent) == ["completed"]


async def test_an_insertion_is_one_event_with_the_whole_message(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        message = user_message("hello", id="m-1", source="mail")
        before = agent.session.seq
        assert agent.inject(message) == "m-1"
        assert agent.session.seq == before + 1
        (splice,) = splices(agent)
        assert splice.inserted[0].message == message
        assert (splice.start, splice.removed, splice.outcome) == (0, 0, None)


# What is refused


@pytest.mark.parametrize("state", ["pending", "admitted", "discarded"])
async def test_a_known_id_is_refused_with_its_fate_and_changes_nothing(
    state: str, autojump_clock: MockClock
) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        message = user_message("hello", id="m-1")
        if state == "admitted":
            await agent.ask(message)
            await agent.wait_idle()
        else:
            agent.inject(message)
        if state == "discarded":
            agent.inbox.clear()
        before = agent.session.seq
        with pytest.raises(DuplicateMessageError) as caught:
            agent.followup(message)
        assert caught.value.fate.startswith(state)
        assert agent.session.seq == before
        assert status(agent) == "idle"


async def test_a_message_that_a_turn_holds_is_known_as_claimed(autojump_clock: MockClock) -> None:
    async def look(step: PreStep, next: Next[Decision]) -> Decision:
        with pytest.raises(DuplicateMessageError) as caught:
            agent.followup(user_message("again", id="m-1"))
        fates.append(caught.value.fate)
        return await next()

    fates: list[str] = []
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(look)
        await agent.ask(user_message("hello", id="m-1"))
    assert fates == ["claimed (turn 1)"]


async def test_a_full_inbox_refuses_and_takes_again_once_there_is_room(
    autojump_clock: MockClock,
) -> None:
    limits = Limits(queue_messages_max=2)
    async with open_test_runtime(model=ScriptedModel([]), limits=limits) as runtime:
        agent = await runtime.create_agent("a")
        agent.inject("one")
        second = agent.inject("two")
        before = agent.session.seq
        with pytest.raises(QueueFullError):
            agent.inject("three")
        with pytest.raises(QueueFullError):
            await agent.ask("three")
        assert agent.session.seq == before
        assert status(agent) == "idle"
        agent.inbox.remove(second)
        agent.inject("three")
        assert pending(agent) == ["one", "three"]


@pytest.mark.parametrize("content", ["", "  \n", [], [TextBlock("")]])
async def test_an_empty_message_is_refused(
    content: str | list[TextBlock], autojump_clock: MockClock
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        with pytest.raises(InvalidInputError):
            agent.followup(content)
        assert splices(agent) == []
        assert status(agent) == "idle"


async def test_a_message_over_its_limit_is_refused(autojump_clock: MockClock) -> None:
    limits = Limits(message_bytes_max=10)
    async with open_test_runtime(model=ScriptedModel([]), limits=limits) as runtime:
        agent = await runtime.create_agent("a")
        with pytest.raises(InvalidInputError, match="message_bytes_max"):
            agent.inject("é" * 6)
        agent.inject("é" * 5)
        assert pending(agent) == ["ééééé"]


@pytest.mark.parametrize(
    "message",
    [
        UserMessage(()),
        UserMessage((TextBlock(5),)),  # type: ignore[arg-type]
        UserMessage((TextBlock("x"),), MessageId(5)),  # type: ignore[arg-type]
        UserMessage((TextBlock("x"),), source=None),  # type: ignore[arg-type]
        UserMessage(("x",)),  # type: ignore[arg-type]
        UserMessage((TextBlock("\ud800"),)),
        UserMessage((TextBlock("x"), ImageBlock("image/png", b"x"))),  # type: ignore[arg-type]
        [TextBlock(5)],  # type: ignore[arg-type]
        [5],
        5,
        None,
    ],
)
async def test_a_message_that_is_none_is_refused_by_name_and_changes_nothing(
    message: UserMessage, autojump_clock: MockClock
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        with pytest.raises((InvalidInputError, EventEncodingError)):
            agent.followup(message)
        assert splices(agent) == []
        assert status(agent) == "idle"
        assert pending(agent) == []
