"""Runs whose models ask for calls."""

import trio

from tests.second_fold.recording import Recording, Run
from trioloop import Agent, CallId, ToolContext, ToolError, ToolOutcome, tool, user_message
from trioloop.events import ToolCallStarted, ToolResultLogged
from trioloop.hooks import (
    Accept,
    Allow,
    CallRequest,
    Deny,
    Enter,
    Next,
    PostExecution,
    PreStep,
    Replace,
)
from trioloop.hooks.points import Decision, PostPolicy, PrePolicy
from trioloop.messages import TextBlock
from trioloop.plugins.retry import retry
from trioloop.testing import Answer, Fail, Reasoning, Stall, Text, ToolCall


@tool(effects="read-only")
async def look(at: str = "here") -> dict[str, str]:
    """Look at a place."""
    return {"seen": at}


@tool
async def write(text: str) -> str:
    """Write it down."""
    await trio.sleep(1)
    return f"wrote “{text}”\u2028\x00"


@tool(effects="read-only")
async def rest(seconds: float, context: ToolContext) -> str:
    """Rest, and remember something afterwards."""
    context.report_progress("resting")
    await trio.sleep(seconds)
    context.add_context(f"rested {seconds}")
    return "rested"


@tool
async def fail() -> None:
    """Fail."""
    raise ToolError("it failed")


@tool
async def conclude() -> ToolOutcome:
    """End the turn."""
    return ToolOutcome(content="done", meta={"by": "conclude"}, concludes_turn=True)


@tool(on_cancel="finish")
async def finish() -> str:
    """Take a while, cancelled or not."""
    await trio.sleep(2)
    return "finished"


TOOLS = (look, write, rest, fail, conclude, finish)


async def calls(recording: Recording) -> None:
    """Calls of every kind, good and bad, in several steps."""
    script = [
        [Reasoning("let me see"), Text("I look."), ToolCall("look"), ToolCall("look", at="there")],
        [ToolCall("rest", seconds=2), ToolCall("rest", seconds=1), ToolCall("write", text="é")],
        [ToolCall("fail"), ToolCall("nobody"), ToolCall("look", raw_arguments='{"at":')],
        [ToolCall("look", wire_id="same"), ToolCall("look", wire_id="same")],
        [ToolCall("look", wire_id="same"), ToolCall("look", wire_id=""), ToolCall("look", x=1)],
        Text("That is all."),
    ]
    async with recording.runtime(script, tools=TOOLS, system="s") as runtime:
        await (await runtime.create_agent("calls")).ask("go")


async def concluding_calls(recording: Recording) -> None:
    """A result ends the turn, unless input waits."""
    script = [
        [ToolCall("conclude"), ToolCall("look")],
        [ToolCall("rest", seconds=1), ToolCall("conclude")],
        Answer([ToolCall("conclude")], finish="pause"),
        Text("really all"),
        Text("and more"),
    ]
    async with recording.runtime(script, tools=TOOLS) as runtime:
        agent = await runtime.create_agent("concluding")
        for text in ("one", "two", "three"):
            await agent.ask(text)


async def cut_calls(recording: Recording) -> None:
    """An answer is cut within its calls; input makes the turn go on."""
    cut = Answer([Text("a"), ToolCall("look"), ToolCall("look", raw_arguments='{"a')], "length")
    async with recording.runtime([cut, cut, Text("b"), Text("c")], tools=TOOLS) as runtime:
        agent = await runtime.create_agent("cut")
        await agent.ask("one")
        agent.followup("two")
        agent.inject("context")
        await agent.wait_idle()
        await agent.ask("three")


async def policies(recording: Recording) -> None:
    """Calls are denied, changed before and after, and given contexts."""

    async def before(call: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        if call.name == "write":
            return Deny("no writing")
        return Allow({"at": "elsewhere"}) if call.arguments.get("at") == "there" else await next()

    async def after(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        context = user_message(f"about {done.request.name}")
        if done.request.name == "fail":
            return Replace("it didn't work", [context])
        return Accept([context, user_message("more", id=f"more-{done.request.call}")])

    script = [
        [ToolCall("write", text="x"), ToolCall("look", at="there"), ToolCall("fail")],
        [ToolCall("look")],
        Text("well"),
    ]
    async with recording.runtime(script, tools=TOOLS) as runtime:
        agent = await runtime.create_agent("policies")
        agent.hooks.pre_execute.add(before)
        agent.hooks.post_execute.add(after)
        await agent.ask("go")


async def steered_calls(recording: Recording) -> None:
    """Input comes while calls run; a listener drops some of it."""

    async def drop(step: PreStep, next: Next[Decision]) -> Decision:
        return Enter(one for one in step.messages if one.source != "noise")

    script = [
        [ToolCall("rest", seconds=4), ToolCall("look")],
        [ToolCall("rest", seconds=4)],
        Text("a"),
        Text("b"),
    ]
    async with recording.runtime(script, tools=TOOLS) as runtime:
        agent = await runtime.create_agent("steered")
        agent.hooks.pre_step.add(drop)
        agent.followup("go")
        for number in range(5):
            await trio.sleep(1.2)
            agent.steer(f"steer {number}")
            agent.inject(user_message(f"noise {number}", source="noise"))
        agent.followup("next")
        await agent.wait_idle()
        agent.inbox.restore(1)


async def cancelled_calls(recording: Recording) -> None:
    """Cancels and a disposal while calls run, wait, or finish anyway."""
    several = [
        ToolCall("look"),
        ToolCall("rest", seconds=5),
        ToolCall("rest", seconds=1),
        ToolCall("write", text="x"),
        ToolCall("look"),
    ]
    finishing = [ToolCall("finish"), ToolCall("write", text="y")]
    script = [several, finishing, several, [ToolCall("look"), ToolCall("write", text="z")]]
    async with recording.runtime(script, tools=TOOLS) as runtime:
        agent = await runtime.create_agent("cancelled-calls")
        for number in range(3):
            agent.followup(f"go {number}")
            await trio.sleep(1.5)
            if number == 2:
                agent.cancel_call(_started(agent)[-1])
                await trio.sleep(0.1)
            agent.steer(f"late {number}")
            agent.cancel("user", discard_inbox=number == 1)
            (agent.followup if number == 2 else agent.inject)("after the cancel")
            await trio.sleep(0.5 if number == 2 else 2.5)
        await agent.dispose()


def _started(agent: Agent) -> list[CallId]:
    facts = [event.data for event in agent.session.events()]
    return [fact.call for fact in facts if isinstance(fact, ToolCallStarted)]


async def failing_between_calls(recording: Recording) -> None:
    """Attempts fail in later steps of a turn, and are tried again or given up."""
    script = [
        [ToolCall("look")],
        Fail("SERVER"),
        [Text("half"), ToolCall("look"), Fail("SERVER")],
        [ToolCall("look")],
        Fail("AUTH"),
        [ToolCall("look")],
        Stall(),
    ]
    async with recording.runtime(script, tools=TOOLS, plugins=[retry]) as runtime:
        agent = await runtime.create_agent("failing-calls")
        await agent.ask("one")
        agent.followup("two")
        await trio.sleep(60)
        agent.steer("unread")


async def pruned_results(recording: Recording) -> None:
    """Results are rewritten between turns, one of them twice."""
    script = [[ToolCall("look"), ToolCall("fail")], Text("a"), Text("b"), Text("c")]
    async with recording.runtime(script, tools=TOOLS) as runtime:
        agent = await runtime.create_agent("pruned")

        async def prune(index: int) -> None:
            found = [
                (event.seq, event.data)
                for event in agent.session.events()
                if isinstance(event.data, ToolResultLogged)
            ]
            seq, data = found[index]
            short = (TextBlock(f"pruned {index}"),)
            agent.session.append(
                ToolResultLogged(data.call, short, is_error=data.is_error, replaces=seq)
            )

        await agent.ask("one")
        await agent.run_maintenance(lambda: prune(0))
        await agent.ask("two")
        await agent.run_maintenance(lambda: prune(1))
        await agent.run_maintenance(lambda: prune(2))
        await agent.ask("three")


RUNS: tuple[Run, ...] = (
    calls,
    concluding_calls,
    cut_calls,
    policies,
    steered_calls,
    cancelled_calls,
    failing_between_calls,
    pruned_results,
)
