"""`trioloop attach`: a served agent's questions, and which agent it is, from a pipe."""

from functools import partial
from typing import Any

import trio

from tests.control.serving import Served, served
from trioloop import Agent, tool
from trioloop.events import ToolResultLogged
from trioloop.hooks import Ask, CallRequest, Hooks, Next, PrePolicy
from trioloop.models.scripted import Entry
from trioloop.plugins import Rule, approval
from trioloop.testing import ScriptedModel, Text, ToolCall


@tool(effects="read-only")
async def look(where: str) -> str:
    """Look.

    Args:
        where: to look.
    """
    return f"seen in {where}"


def asking(hooks: Hooks) -> None:
    @hooks.pre_execute
    async def ask(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        return Ask(f"May it look into the {request.arguments['where']}?")


def looking(*places: str) -> Any:
    calls = [ToolCall("look", where=place) for place in places]
    return served(ScriptedModel([calls, Text("done")]), tools=[look], hooks=[asking])


def looking_twice() -> Any:
    """An agent that looks into the cellar in each of two turns, by a rule that asks."""
    script: list[Entry] = [[ToolCall("look", where="cellar")], Text("done")] * 2
    rules = [lambda runtime: approval(runtime, Rule(tool="look"))]
    return served(ScriptedModel(script), tools=[look], plugins=rules)


def codes(agent: Agent) -> list[str | None]:
    data = [one.data for one in agent.session.events()]
    return [one.code for one in data if isinstance(one, ToolResultLogged)]


async def attached(command: Any, there: Served, input: str, *options: str) -> Any:
    asked = partial(command, "attach", there.address, *options, input=input)
    done = await trio.to_thread.run_sync(asked)
    assert done.code == 0, done.err
    return done


async def test_a_question_that_came_before_anybody_looked_is_shown_and_answered(
    command: Any,
) -> None:
    async with looking("cellar") as there:
        agent = await there.runtime.create_agent("a")
        there.runtime.approver.observe((asked := trio.Event()).set)
        agent.followup("go")
        await asked.wait()
        done = await attached(command, there, "y\n")
        assert "May it look into the cellar? [y/n]" in done.err
        assert codes(agent) == [None]


async def test_a_script_is_asked_for_its_next_line(command: Any) -> None:
    async with looking("cellar") as there:
        agent = await there.runtime.create_agent("a")
        await attached(command, there, "go\nn\n")
        assert codes(agent) == ["TOOL_DENIED"]


async def test_two_questions_at_once_are_answered_one_after_the_other(command: Any) -> None:
    async with looking("cellar", "attic") as there:
        agent = await there.runtime.create_agent("a")
        done = await attached(command, there, "go\ny\nn\n")
        assert done.err.index("cellar? [y/n]") < done.err.index("attic? [y/n]")
        assert codes(agent) == [None, "TOOL_DENIED"]


async def test_an_answer_may_hold_for_the_session(command: Any) -> None:
    async with looking_twice() as there:
        agent = await there.runtime.create_agent("a")
        done = await attached(command, there, "go\ny session\ngo on\n")
        assert done.err.count("[y/n]") == 1
        assert '("y turn", "n session": so long for calls like it, too;' in done.err
        assert codes(agent) == [None, None]


async def test_an_answer_that_holds_is_taken_back(command: Any) -> None:
    async with looking_twice() as there:
        agent = await there.runtime.create_agent("a")
        done = await attached(command, there, "/forget\ngo\ny session\n/forget\ngo on\nn\n")
        assert done.err.count("[y/n]") == 2
        nothing, asks_again = "no answer holds", "it asks again"
        assert done.err.index(nothing) < done.err.index("[y/n]") < done.err.index(asks_again)
        assert codes(agent) == [None, "TOOL_DENIED"]


async def test_the_only_live_agent_is_found_behind_a_page_of_stored_ones(command: Any) -> None:
    async with served() as there:
        for number in range(101):
            stored = await there.runtime.create_agent(f"a{number:03}")
            await stored.dispose()
        await there.runtime.create_agent("b")
        done = await attached(command, there, "hello\n")
        assert "attached to b\n" in done.err
