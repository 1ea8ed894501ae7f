"""The ways through a turn that the model's answers take (P1, P2, P14 to P17, R7)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import admitted, ends, facts, reasons, said, types
from trioloop.chunks import Usage
from trioloop.events import AssistantMessageLogged, ToolResultLogged, TurnEnded, UserMessageLogged
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Accept, PostExecution, PostPolicy, TurnStopping
from trioloop.limits import Limits
from trioloop.messages import user_message
from trioloop.ports import ToolOutcome
from trioloop.testing import (
    Answer,
    Reasoning,
    ScriptedModel,
    Text,
    ToolCall,
    Wait,
    open_test_runtime,
)
from trioloop.tools.tool import tool

STEP = ["step/start", "user/message", "assistant/message", "step/end"]
FIRST_STEP = [
    "step/start",
    "user/message",
    "request/header",
    "request/context",
    "assistant/message",
    "step/end",
]


@tool(effects="read-only")
async def answer() -> int:
    """The answer."""
    await trio.sleep(1)
    return 42


@tool
async def finish() -> ToolOutcome:
    """Say that the work is done."""
    return ToolOutcome(content="done", concludes_turn=True)


async def test_a_plain_answer_is_one_step(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Text("hi")])
    async with open_test_runtime(model=model, system="You are terse.") as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("hello")
        assert types(agent) == [
            "turn/start",
            "step/start",
            "system/message",
            "user/message",
            "request/header",
            "request/context",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        assert said(model.requests[0]) == ["S You are terse.", "U hello"]
        assert settled.reason == "completed"


async def test_the_log_begins_with_the_splice_and_ends_with_the_turn(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Answer((Text("hi"),), usage=Usage(input_tokens=3, output_tokens=4))])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("hello")
        events = agent.session.events()
        assert [event.type for event in events[:2]] == ["session/opened", "agent/inbox/spliced"]
        assert events[-1].type == "turn/end"
        (message,) = facts(agent, AssistantMessageLogged)
        assert message.usage == Usage(input_tokens=3, output_tokens=4)
        assert not message.interrupted


async def test_calls_then_an_answer_are_two_steps(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[ToolCall("answer"), ToolCall("answer")], Text("hi")])
    async with open_test_runtime(model=model, tools=[answer], system="S") as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("hello")
        calls = ["tool/call", "tool/call", "tool/result", "tool/result"]
        assert types(agent) == [
            "turn/start",
            "step/start",
            "system/message",
            "user/message",
            "request/header",
            "request/context",
            "assistant/message",
            *calls,
            "step/end",
            "step/start",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        assert said(model.requests[1])[2:] == ["A ", "T 42", "T 42"]
        assert settled.text == "hi"


async def test_a_steer_during_a_call_joins_the_step_behind_it(autojump_clock: MockClock) -> None:
    model = ScriptedModel([ToolCall("answer"), Text("hi")])
    async with open_test_runtime(model=model, tools=[answer]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(0.5)
        agent.steer("steer")
        await agent.wait_idle()
        assert said(model.requests[1]) == ["U one", "A ", "T 42", "U steer"]
        steps = [event.type for event in agent.session.events()]
        assert steps.index("user/message", steps.index("step/end")) > steps.index("step/end")


async def test_two_turns_share_system_and_header(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Text("1"), Text("2")])
    async with open_test_runtime(model=model, system="S") as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        seq = agent.session.seq
        await agent.ask("two")
        assert types(agent, seq) == ["turn/start", *STEP, "turn/end"]
        assert said(model.requests[1]) == ["S S", "U one", "A 1", "U two"]


# Max tokens


async def test_an_answer_that_was_cut_ends_the_turn_max_tokens(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Answer((Text("half"),), finish="length"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert settled.reason == "max-tokens"
        assert settled.text == "half"
        assert (await agent.ask("two")).reason == "completed"


async def test_no_call_of_a_cut_answer_runs(autojump_clock: MockClock) -> None:
    ran: list[str] = []

    @tool(effects="read-only")
    async def note(text: str) -> None:
        ran.append(text)

    calls = (Text("a"), ToolCall("note", text="x"), ToolCall("note", raw_arguments='{"te'))
    model = ScriptedModel([Answer(calls, finish="length")])
    async with open_test_runtime(model=model, tools=[note]) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert settled.reason == "max-tokens"
        results = facts(agent, ToolResultLogged)
        assert [one.code for one in results] == ["TOOL_CALL_CUT"] * 2
        assert [one.call_seq for one in results] == [None, None]
        assert "tool/call" not in types(agent)
        assert len(model.requests) == 1
    assert ran == []


async def test_max_tokens_is_sticky_over_later_steps_of_the_turn(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Answer((Wait(1), Text("half")), finish="length"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(0.5)
        agent.steer("go on")
        await agent.wait_idle()
        assert len(model.requests) == 2
        assert reasons(agent) == ["max-tokens"]


async def test_a_max_tokens_turn_lets_the_queue_go_on(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Answer((Text("half"),), finish="length"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        agent.followup("two")
        await agent.wait_idle()
        assert reasons(agent) == ["max-tokens", "completed"]


# Conclusion


async def test_a_concluding_result_owes_no_step(autojump_clock: MockClock) -> None:
    model = ScriptedModel([[ToolCall("answer"), ToolCall("finish"), ToolCall("answer")]])
    async with open_test_runtime(model=model, tools=[answer, finish]) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert settled.reason == "completed"
        assert [one.is_error for one in facts(agent, ToolResultLogged)] == [False] * 3
        assert len(model.requests) == 1


async def test_a_concluding_result_still_lets_next_step_ask_for_a_step(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([[ToolCall("answer"), ToolCall("finish")], Text("hi")])
    async with open_test_runtime(model=model, tools=[answer, finish]) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(0.5)
        agent.steer("wait")
        await agent.wait_idle()
        assert len(model.requests) == 2
        assert reasons(agent) == ["completed"]


async def test_a_context_beside_a_conclusion_asks_for_a_step(autojump_clock: MockClock) -> None:
    async def add(execution: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        return Accept([user_message("context", source="hook")])

    model = ScriptedModel([ToolCall("finish"), Text("hi")])
    async with open_test_runtime(model=model, tools=[finish]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.post_execute.add(add)
        await agent.ask("one")
        assert said(model.requests[1])[-1] == "U context"


# Stopping


async def test_a_listener_that_steers_as_the_turn_stops_goes_on_with_it(
    autojump_clock: MockClock,
) -> None:
    async def stopping(turn: TurnStopping) -> None:
        await trio.lowlevel.checkpoint()
        if len(model.requests) == 1:
            agent.steer("more")

    model = ScriptedModel([Text("1"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.turn_stopping.add(stopping)
        await agent.ask("one")
        assert len(model.requests) == 2
        assert len(ends(agent)) == 1


async def test_a_listener_that_always_steers_is_stopped_by_the_limit(
    autojump_clock: MockClock,
) -> None:
    async def stopping(turn: TurnStopping) -> None:
        agent.steer("more")

    model = ScriptedModel(lambda _: Text("x"))
    async with open_test_runtime(model=model, limits=Limits(continuations_max=3)) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.turn_stopping.add(stopping)
        settled = await agent.ask("one")
        agent.cancel()
        assert settled.reason == "completed"
        assert len(model.requests) == 4


async def test_stopping_is_not_asked_while_next_step_holds_input(autojump_clock: MockClock) -> None:
    asked: list[int] = []

    async def stopping(turn: TurnStopping) -> None:
        asked.append(len(model.requests))

    model = ScriptedModel([[Wait(1), Text("1")], Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.turn_stopping.add(stopping)
        agent.followup("one")
        await trio.sleep(0.5)
        agent.steer("more")
        await agent.wait_idle()
    assert asked == [2]


async def test_stopping_that_raises_ends_the_turn_behind_its_step(
    autojump_clock: MockClock,
) -> None:
    async def broken(turn: TurnStopping) -> None:
        raise ValueError("no stop")

    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        with agent.hooks.turn_stopping.add(broken):
            settled = await agent.ask("one")
        assert types(agent) == ["turn/start", *FIRST_STEP, "turn/end"]
        assert (settled.reason, settled.code, settled.message) == ("error", "UNKNOWN", "no stop")
        (end,) = ends(agent)
        assert end.by is not None
        assert end.by.endswith("broken")
        assert (await agent.ask("two")).reason == "completed"


# Pause


async def test_a_pause_asks_for_a_step_without_input(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Answer((Text("a"),), finish="pause"), Text("b")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert said(model.requests[1]) == ["U one", "A a"]
        assert types(agent)[-4:] == ["step/start", "assistant/message", "step/end", "turn/end"]
        assert settled.reason == "completed"


async def test_pauses_are_limited(autojump_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: Answer((Text("a"),), finish="pause"))
    async with open_test_runtime(model=model, limits=Limits(pauses_max=3)) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert len(model.requests) == 4
        assert settled.reason == "completed"


async def test_input_beside_the_last_pause_that_is_allowed_is_not_left_behind(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Answer((Wait(1), Text("a")), finish="pause")] * 2 + [Text("b")])
    async with open_test_runtime(model=model, limits=Limits(pauses_max=1)) as runtime:
        agent = await runtime.create_agent("a")
        agent.followup("one")
        await trio.sleep(1.5)
        agent.inject("context")
        await agent.wait_idle()
        assert admitted(agent) == ["one", "context"]


# What an answer may hold


async def test_an_empty_answer_is_recorded_and_stays_out_of_the_history(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Answer(()), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        assert (await agent.ask("one")).reason == "completed"
        await agent.ask("two")
        assert facts(agent, AssistantMessageLogged)[0].message.content == ()
        assert said(model.requests[1]) == ["U one", "U two"]


async def test_reasoning_is_kept_in_the_message(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel([[Reasoning("hm"), Text("hi")]])) as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert settled.text == "hi"
        (message,) = facts(agent, AssistantMessageLogged)
        assert len(message.message.content) == 2


async def test_steps_and_turns_are_counted_from_one(autojump_clock: MockClock) -> None:
    model = ScriptedModel([ToolCall("answer"), Text("1"), Text("2")])
    async with open_test_runtime(model=model, tools=[answer]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        await agent.ask("two")
        numbers = [
            (event.data.turn, event.data.step)  # type: ignore[attr-defined]
            for event in agent.session.events()
            if event.type == "step/start"
        ]
        assert numbers == [(1, 1), (1, 2), (2, 1)]
        assert [end.turn for end in facts(agent, TurnEnded)] == [1, 2]


@pytest.mark.parametrize("calls", [1, 30])
async def test_each_call_has_one_result_in_model_order(
    calls: int, autojump_clock: MockClock
) -> None:
    @tool(effects="read-only")
    async def slow(number: int) -> int:
        await trio.sleep((number * 7) % 5)
        return number

    asked = [ToolCall("slow", number=number) for number in range(calls)]
    model = ScriptedModel([asked, Text("hi")])
    async with open_test_runtime(model=model, tools=[slow]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        assert said(model.requests[1])[2:] == [f"T {number}" for number in range(calls)]
        assert len(facts(agent, UserMessageLogged)) == 1
