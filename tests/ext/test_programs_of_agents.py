"""Programs in a whole agent: declared where registered, logged, rebuilt. In real time."""

from tests.ext.programs import double
from trioloop import check, rebuild_request
from trioloop.events import (
    AssistantMessageLogged,
    NestedCallStarted,
    NestedResultLogged,
    ToolResultLogged,
)
from trioloop.ext.code import run_code
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools import tool

PROGRAM = "import asyncio\nsum(await asyncio.gather(*[double(n) for n in range(4)]))"


async def test_an_agent_runs_a_program_and_goes_on_with_its_result() -> None:
    model = ScriptedModel([[ToolCall("run_code", code=PROGRAM)], Text("12.")])
    tools = [run_code(), tool(effects="read-only")(double)]
    async with open_test_runtime(model=model, tools=tools) as runtime:
        agent = await runtime.create_agent("main")
        settled = await agent.ask("Add.")
        events = list(agent.session.events())
    assert settled.text == "12."
    check(events)
    facts = [event.data for event in events]
    assert sum(isinstance(fact, NestedCallStarted) for fact in facts) == 4
    assert sum(isinstance(fact, NestedResultLogged) for fact in facts) == 4
    answer = next(event for event in events[::-1] if isinstance(event.data, AssistantMessageLogged))
    history = rebuild_request(events, answer.seq).history
    assert [type(message).__name__ for message in history] == [
        "UserMessage", "AssistantMessage", "ToolResultMessage"
    ]  # fmt: skip  # nested calls aren't told to the model


async def test_the_tool_is_declared_and_can_be_called_in_its_scope_alone() -> None:
    call = ToolCall("run_code", code="1")
    model = ScriptedModel([call, Text("done"), call, Text("done")])
    async with open_test_runtime(model=model) as runtime:
        coder = await runtime.create_agent("coder", tools=[run_code()])
        other = await runtime.create_agent("other")
        codes = {}
        for agent in (coder, other):
            await agent.ask("Run it.")
            (codes[agent.name],) = [
                event.data.code
                for event in agent.session.events()
                if isinstance(event.data, ToolResultLogged)
            ]
    assert codes == {"coder": None, "other": "UNKNOWN_TOOL"}
    declared = [[one.name for one in request.tools] for request in model.requests]
    assert declared == [["run_code"], ["run_code"], [], []]
