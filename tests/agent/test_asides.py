"""Asides: asked beside the conversation, told by the log, part of no step (G2, D2, R8)."""

from collections.abc import Sequence

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.agent.reading import facts, said, types
from trioloop import Agent, Event, MemoryStore, rebuild_request, tool
from trioloop.chunks import Usage
from trioloop.errors import InvalidInputError, ModelFailure, NoPolicyError, StoreFailedError
from trioloop.events import AsideEnded, AsideStarted, CallConfig, UserMessageLogged
from trioloop.hooks import Compact, Next
from trioloop.messages import text_of, user_message
from trioloop.ports import Append, CommitAnswer
from trioloop.testing import (
    Answer,
    Fail,
    ScriptedModel,
    Stall,
    Text,
    ToolCall,
    Wait,
    open_test_runtime,
)


@tool(effects="read-only")
async def look() -> str:
    """Look."""
    return "seen"


async def test_an_aside_has_the_prompt_of_the_last_request_and_the_chosen_history() -> None:
    model = ScriptedModel([Text("1"), Text("2"), Text("aside"), Text("3")])
    async with open_test_runtime(model=model, tools=[look], system="Be terse.") as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        await agent.ask("two")
        seqs = [seq for seq, _ in agent.session.state.surface.nodes]
        answer = await agent.aside("What was said?", history=(seqs[0], seqs[2]))
        assert answer.message.text == "aside"
        await agent.ask("three")
    aside, behind = model.requests[2:]
    assert said(aside) == ["S Be terse.", "U one", "A 1", "U two", "U What was said?"]
    assert aside.tools == ()
    assert said(behind) == ["S Be terse.", "U one", "A 1", "U two", "A 2", "U three"]


async def test_no_call_of_an_aside_runs_and_none_is_forced() -> None:
    model = ScriptedModel([Text("1"), [ToolCall("look")]])
    config = CallConfig(provider="scripted", model="scripted", tool_choice="look")
    async with open_test_runtime(model=model, tools=[look], config=config) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        answer = await agent.aside("and?", tools=True)
        assert [call.name for call in answer.message.calls] == ["look"]
        assert "tool/call" not in types(agent)
    assert [declared.name for declared in model.requests[1].tools] == ["look"]
    assert model.requests[1].config.tool_choice is None


async def test_the_log_tells_what_was_asked_and_answered_and_what_it_cost() -> None:
    usage = Usage(7, None, 3, None)
    model = ScriptedModel([Text("1"), Answer([Text("aside")], usage=usage)])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        before = agent.session.state.usage
        await agent.aside("and?")
        events = agent.session.events()
        start, end = events[-2:]
        assert isinstance(start.data, AsideStarted)
        assert isinstance(end.data, AsideEnded)
        assert text_of(start.data.question.content) == "and?"
        assert (end.data.start, end.data.usage) == (start.seq, usage)
        assert end.data.message is not None
        assert end.data.message.text == "aside"
        rebuilt = rebuild_request(events, start.seq)
        assert list(rebuilt.messages) == list(model.requests[1].messages)
        assert agent.session.state.usage == before


async def test_a_failed_aside_is_recorded_and_raised() -> None:
    model = ScriptedModel([Text("1"), Fail("RATE_LIMIT"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        with pytest.raises(ModelFailure) as raised:
            await agent.aside("and?")
        assert raised.value.code == "RATE_LIMIT"
        (end,) = facts(agent, AsideEnded)
        assert end.failure is not None
        assert end.failure.code == "RATE_LIMIT"
        assert (await agent.ask("two")).reason == "completed"


@pytest.mark.parametrize("answer", [[Text("a"), Stall()], [Text("a"), Wait(1)]])
async def test_a_cancelled_aside_is_recorded_as_without_an_answer(
    answer: list[Text | Stall | Wait], autojump_clock: MockClock
) -> None:
    model = ScriptedModel([Text("1"), answer])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        with trio.move_on_after(1) as scope:
            await agent.aside("and?")
        assert scope.cancelled_caught
        assert types(agent)[-2:] == ["aside/start", "aside/end"]
        (end,) = facts(agent, AsideEnded)
        assert (end.message, end.failure) == (None, None)


class FullStore(MemoryStore):
    """A store that takes no more once it is `full`."""

    full = False

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        """As a disk would."""
        if self.full:
            raise StoreFailedError("the disk is full")
        return await super().commit(appends)


async def test_who_observes_an_answer_may_still_cancel_it() -> None:
    model = ScriptedModel([Text("1"), Text("aside")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        with trio.CancelScope() as scope:

            def cancel_at_the_answer(event: Event) -> None:
                if isinstance(event.data, AsideEnded):
                    scope.cancel()

            agent.session.observe(cancel_at_the_answer)
            await agent.aside("and?")
        assert scope.cancelled_caught
        (end,) = facts(agent, AsideEnded)
        assert end.message is not None


async def test_nobody_is_asked_before_the_question_is_durable() -> None:
    model = ScriptedModel([Text("1"), Text("never")])
    store = FullStore()
    async with open_test_runtime(model=model, store=store) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        store.full = True
        with pytest.raises(StoreFailedError):
            await agent.aside("and?")
        store.full = False
        await agent.session.retry_store()
    assert len(model.requests) == 1


async def test_without_a_request_there_is_nothing_to_ask_with() -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        with pytest.raises(InvalidInputError, match="no request"):
            await agent.aside("and?")


@pytest.mark.parametrize("part", [(0, 1), (3, 999)])
async def test_a_part_that_the_history_does_not_have_is_refused(part: tuple[int, int]) -> None:
    async with open_test_runtime(model=ScriptedModel([Text("1")])) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        with pytest.raises(InvalidInputError, match="no part"):
            await agent.aside("and?", history=part)
        assert "aside/start" not in types(agent)


async def test_a_history_that_others_rewrite_meanwhile_is_asked_about_as_the_log_tells_it() -> None:
    model = ScriptedModel([Text("1"), Text("2"), Text("aside")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        await agent.ask("two")
        seqs = [seq for seq, _ in agent.session.state.surface.nodes]

        def rewrite() -> None:
            agent.session.append(UserMessageLogged(user_message("S"), (seqs[0], seqs[1])))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(_refused, agent, (seqs[0], seqs[2]))
            await trio.lowlevel.checkpoint()  # it has begun to prepare
            rewrite()
        assert len(model.requests) == 2
        assert "aside/start" not in types(agent)


async def _refused(agent: Agent, part: tuple[int, int]) -> None:
    with pytest.raises(InvalidInputError, match="no part"):
        await agent.aside("and?", history=part)


# Compacting by hand


async def test_compacting_needs_a_policy() -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        with pytest.raises(NoPolicyError):
            await agent.compact()


async def test_policies_are_asked_to_compact_between_turns() -> None:
    model = ScriptedModel([Text("1"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")

        @agent.hooks.compact
        async def compact(asked: Compact, next: Next[bool]) -> bool:
            assert (asked.agent, asked.focus) == (agent, "names")
            agent.followup("meanwhile")
            assert await next() is False
            await trio.testing.wait_all_tasks_blocked()
            assert agent.session.state.turn is None
            return True

        assert await agent.compact("names") is True
        await agent.wait_idle()
        assert types(agent).count("turn/end") == 1
