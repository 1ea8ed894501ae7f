"""What ends a turn before a step of it is committed, and what is then in the log (P3 to P7)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import admitted, ends, facts, pending, reasons, said, types
from trioloop.events import UserMessageLogged
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Decision, Enter, PreStep, Reject, TurnStopping
from trioloop.messages import UserMessage, user_message
from trioloop.testing import ScriptedModel, Text, ToolCall, Wait, open_test_runtime
from trioloop.tools.tool import tool


@tool(effects="read-only")
async def answer() -> int:
    """The answer."""
    return 42


# Reject and Enter


async def test_a_rejected_step_spends_no_number_and_admits_nothing(
    autojump_clock: MockClock,
) -> None:
    async def reject(step: PreStep, next: Next[Decision]) -> Decision:
        return Reject("not in office hours", "HOURS")

    model = ScriptedModel([Text("hi")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        with agent.hooks.pre_step.add(reject):
            settled = await agent.ask("one")
        assert types(agent) == ["turn/start", "turn/end"]
        (end,) = ends(agent)
        assert (end.reason, end.code, end.message) == ("blocked", "HOURS", "not in office hours")
        assert end.by is not None
        assert end.by.endswith("reject")
        assert [(one.list, one.why) for one in end.unadmitted] == [("next-turn", "blocked")]
        assert settled.reason == "blocked"
        assert model.requests == []
        assert (await agent.ask("two")).reason == "completed"
        assert said(model.requests[0]) == ["U two"]


async def test_a_rejection_behind_a_step_names_that_turn_blocked(autojump_clock: MockClock) -> None:
    async def reject(step: PreStep, next: Next[Decision]) -> Decision:
        return await next() if step.step == 1 else Reject("enough")

    model = ScriptedModel([ToolCall("answer")])
    async with open_test_runtime(model=model, tools=[answer]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(reject)
        settled = await agent.ask("one")
        assert settled.reason == "blocked"
        assert types(agent)[-2:] == ["step/end", "turn/end"]


async def test_the_queue_goes_on_behind_a_blocked_turn(autojump_clock: MockClock) -> None:
    async def reject(step: PreStep, next: Next[Decision]) -> Decision:
        return await next() if step.turn == 2 else Reject("no")

    async with open_test_runtime(model=ScriptedModel([Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(reject)
        agent.followup("one")
        agent.followup("two")
        await agent.wait_idle()
        assert reasons(agent) == ["blocked", "completed"]


async def test_an_inject_during_a_rejected_step_opens_no_turn(autojump_clock: MockClock) -> None:
    async def reject(step: PreStep, next: Next[Decision]) -> Decision:
        agent.inject("context")
        return Reject("no")

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(reject)
        await agent.ask("one")
        await agent.wait_idle()
        assert reasons(agent) == ["blocked"]
        assert pending(agent) == ["context"]


async def test_entering_with_nothing_first_completes_the_turn_without_a_request(
    autojump_clock: MockClock,
) -> None:
    async def drop(step: PreStep, next: Next[Decision]) -> Decision:
        return Enter(())

    model = ScriptedModel([])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(drop)
        settled = await agent.ask("one")
        assert settled.reason == "completed"
        assert types(agent) == ["turn/start", "turn/end"]
        assert [one.why for one in ends(agent)[0].unadmitted] == ["completed"]
        assert model.requests == []


async def test_what_is_injected_meanwhile_asks_for_no_step_of_an_empty_turn(
    autojump_clock: MockClock,
) -> None:
    asked: list[int] = []

    async def drop(step: PreStep, next: Next[Decision]) -> Decision:
        asked.append(step.turn)
        agent.inject("context")
        return Enter(())

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(drop)
        assert (await agent.ask("one")).reason == "completed"
        await agent.wait_idle()
        assert pending(agent) == ["context"]
    assert asked == [1]


async def test_the_queue_goes_on_behind_an_empty_turn(autojump_clock: MockClock) -> None:
    async def drop_first(step: PreStep, next: Next[Decision]) -> Decision:
        return Enter(()) if step.turn == 1 else await next()

    async with open_test_runtime(model=ScriptedModel([Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(drop_first)
        agent.followup("one")
        agent.followup("two")
        await agent.wait_idle()
        assert reasons(agent) == ["completed", "completed"]
        assert admitted(agent) == ["two"]


async def test_entering_with_nothing_later_ends_as_the_last_step_did(
    autojump_clock: MockClock,
) -> None:
    async def drop_later(step: PreStep, next: Next[Decision]) -> Decision:
        return await next() if step.step == 1 else Enter(())

    model = ScriptedModel([[Wait(1), Text("1")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(drop_later)
        agent.followup("one")
        await trio.sleep(0.5)
        agent.steer("two")
        await agent.wait_idle()
        assert types(agent)[-2:] == ["step/end", "turn/end"]
        assert reasons(agent) == ["completed"]
        assert [one.list for one in ends(agent)[0].unadmitted] == ["next-step"]


@pytest.mark.parametrize("first", [True, False], ids=["at once", "behind a step"])
async def test_stopping_is_not_asked_where_the_last_proposal_entered_nothing(
    first: bool, autojump_clock: MockClock
) -> None:
    asked: list[int] = []

    async def drop(step: PreStep, next: Next[Decision]) -> Decision:
        return Enter(()) if first or step.step > 1 else await next()

    async def stopping(turn: TurnStopping) -> None:
        asked.append(turn.turn)

    async with open_test_runtime(model=ScriptedModel([[Wait(1), Text("1")]])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(drop)
        agent.hooks.turn_stopping.add(stopping)
        agent.followup("one")
        await trio.sleep(0.5)
        agent.inject("context")
        await agent.wait_idle()
        assert reasons(agent) == ["completed"]
    assert asked == []


async def test_entering_with_nothing_where_results_are_owed_asks_the_model(
    autojump_clock: MockClock,
) -> None:
    async def drop_later(step: PreStep, next: Next[Decision]) -> Decision:
        return await next() if step.step == 1 else Enter(())

    model = ScriptedModel([ToolCall("answer"), Text("hi")])
    async with open_test_runtime(model=model, tools=[answer]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(drop_later)
        settled = await agent.ask("one")
        assert settled.text == "hi"


async def test_a_pre_step_may_edit_add_and_drop_messages(autojump_clock: MockClock) -> None:
    async def rewrite(step: PreStep, next: Next[Decision]) -> Decision:
        first, _second = step.messages
        edited = UserMessage(user_message("edited").content, first.id, first.source)
        return Enter((edited, user_message("added", source="hook")))

    model = ScriptedModel([Text("hi")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(rewrite)
        agent.inject("context")
        settled = await agent.ask("one")
        assert settled.reason == "completed"
        assert said(model.requests[0]) == ["U edited", "U added"]
        assert [fact.message.source for fact in facts(agent, UserMessageLogged)] == ["user", "hook"]
        assert [one.list for one in ends(agent)[0].unadmitted] == ["next-turn"]


@pytest.mark.parametrize("wrong", ["twice", "known", "no message", "no decision"])
async def test_a_wrong_decision_ends_the_turn_and_names_the_listener(
    wrong: str, autojump_clock: MockClock
) -> None:
    async def decide(step: PreStep, next: Next[Decision]) -> Decision:
        (message,) = step.messages
        answers: dict[str, object] = {
            "twice": Enter((message, message)),
            "known": Enter((message, user_message("x", id="m-1"))),
            "no message": Enter(("text",)),  # type: ignore[arg-type]
            "no decision": None,
        }
        return answers[wrong]  # type: ignore[return-value]

    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("3")])) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask(user_message("one", id="m-1"))
        with agent.hooks.pre_step.add(decide):
            settled = await agent.ask("two")
        assert (settled.reason, settled.code) == ("error", "HOOK_MISUSE")
        assert settled.message is not None
        assert "decide" in settled.message
        assert types(agent)[-2:] == ["turn/start", "turn/end"]
        assert (await agent.ask("three")).reason == "completed"


async def test_a_message_that_a_listener_would_change_is_frozen(autojump_clock: MockClock) -> None:
    async def mutate(step: PreStep, next: Next[Decision]) -> Decision:
        step.messages[0].source = "me"  # type: ignore[misc]
        return await next()

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(mutate)
        settled = await agent.ask("one")
        assert settled.reason == "error"
        assert agent.inbox.restore(1) == 1
        assert agent.inbox.next_turn[0].message.source == "user"


async def test_a_pre_step_is_asked_once_per_proposal_before_the_boundary(
    autojump_clock: MockClock,
) -> None:
    seen: list[tuple[int, int, tuple[str, ...], str | None]] = []

    async def look(step: PreStep, next: Next[Decision]) -> Decision:
        assert agent.turn is not None
        state = agent.session.state
        assert state.step is None
        declared = tuple(one.name for one in step.tools)
        seen.append((step.turn, step.step, declared, agent.turn.cause))
        return await next()

    model = ScriptedModel([ToolCall("answer"), Text("1"), Text("2")])
    async with open_test_runtime(model=model, tools=[answer]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(look)
        await agent.ask("one")
        await agent.ask("two")
    tools = ("answer",)
    assert seen == [(1, 1, tools, None), (1, 2, tools, None), (2, 1, tools, None)]
