"""The runs that the paths' diagrams are recorded from: the shortest that show each path."""

from collections.abc import Awaitable, Callable, Mapping

import attrs
import trio
from trio.testing import MockClock

from docs.sequences.recording import (
    RECORDED_HOOKS,
    RECORDED_TOOL_HOOKS,
    RecordedModel,
    Recorder,
    Row,
)
from trioloop.agent.agent import Agent
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import AttemptFailed, Decision, Hooks, PreStep, Retry
from trioloop.testing import Fail, ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools import Tool, tool


@attrs.frozen
class Scenario:
    """A run that takes one path.

    Attributes:
        title: what happens, in a few words.
        says: what to look at in the picture.
        script: what the model answers.
        drive: what the user does.
        hooks: listeners of the run's own.
        recorded: the hooks that are drawn, by their attributes.
        uses_tools: the agent has its tool.
    """

    title: str
    says: str
    script: Callable[[], ScriptedModel]
    drive: Callable[[Agent, Recorder], Awaitable[None]]
    hooks: Callable[[Hooks], None] = lambda hooks: None
    recorded: tuple[str, ...] = RECORDED_HOOKS
    uses_tools: bool = False


SECONDS = {"Oslo": 1.0, "Paris": 2.0}


def _weather(recorder: Recorder) -> Tool:
    @tool(effects="read-only")
    async def weather(city: str) -> str:
        """Tell the weather.

        Args:
            city: where.
        """
        await trio.sleep(SECONDS[city] / 100)  # so that two bodies begin one after the other
        recorder.tell("agent", "tools", f"weather({city})", key=city)
        try:
            await trio.sleep(SECONDS[city])
        except trio.Cancelled:
            recorder.tell("tools", "agent", f"{city}: Cancelled", answer=True, key=city)
            raise
        recorder.tell("tools", "agent", f"{city}: sunny", answer=True, key=city)
        return "sunny"

    return weather


async def _ask(agent: Agent, recorder: Recorder) -> None:
    recorder.tell("user", "agent", "ask")
    await agent.ask("Hello.")


async def _ask_and_cancel(agent: Agent, recorder: Recorder) -> None:
    recorder.tell("user", "agent", "followup")
    agent.followup("Hello.")
    await trio.sleep(1.5)
    recorder.tell("user", "agent", "cancel")
    agent.cancel("user")
    await agent.wait_idle()


def _answering() -> ScriptedModel:
    return ScriptedModel([Text("Hello!")])


def _calling() -> ScriptedModel:
    calls = [ToolCall("weather", city="Oslo"), ToolCall("weather", city="Paris")]
    return ScriptedModel([calls, Text("Sunny in both.")], chunks_per_read=9)


def _failing() -> ScriptedModel:
    return ScriptedModel([Fail("OVERLOADED"), Text("Hello!")])


def _slow_pre_step(hooks: Hooks) -> None:
    @hooks.pre_step
    async def look_up(_: PreStep, next: Next[Decision]) -> Decision:
        await trio.sleep(60)
        return await next()


def _retrying(hooks: Hooks) -> None:
    @hooks.request_error
    async def retry(_: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        return await next() or Retry(delay=2)


SCENARIOS: Mapping[str, Scenario] = {
    "P1": Scenario(
        "a plain answer",
        "The second box of the log is the *admission*: step, messages and header are committed in "
        "one append. The request is sent once that is durable.",
        _answering,
        _ask,
    ),
    "P2": Scenario(
        "tool calls, then an answer",
        "Reading calls overlap: both bodies run at once, and Oslo's is done first. Results are "
        "recorded in the order of the model's calls, and ask for a second step, whose admission "
        "has only what is new.",
        _calling,
        _ask,
        recorded=(*RECORDED_HOOKS, *RECORDED_TOOL_HOOKS),
        uses_tools=True,
    ),
    "P7": Scenario(
        "cancelled before admission",
        "A listener of `agent.pre_step` waits when the user cancels. Nothing of the step is in the "
        "log: one append puts the message back to its list and ends the turn.",
        _answering,
        _ask_and_cancel,
        hooks=_slow_pre_step,
    ),
    "P10": Scenario(
        "cancelled while tools run",
        "Oslo's call is done when the user cancels, Paris's isn't. Each call has its result all "
        "the same, in order, and each tells the truth.",
        _calling,
        _ask_and_cancel,
        uses_tools=True,
    ),
    "P11": Scenario(
        "a failed attempt, retried",
        "The failed attempt is in the log before anybody is asked about it. The retry stays in "
        "the open step: no second pre-step, and, as nothing has changed, an admission without "
        "events.",
        _failing,
        _ask,
        hooks=_retrying,
    ),
}


async def _run(scenario: Scenario, recorder: Recorder) -> None:
    def set_up(hooks: Hooks) -> None:
        recorder.listen(hooks, scenario.recorded)
        scenario.hooks(hooks)

    tools = [_weather(recorder)] if scenario.uses_tools else []
    model = RecordedModel(scenario.script(), recorder)
    async with open_test_runtime(
        model=model, tools=tools, system="Be kind.", hooks=[set_up]
    ) as runtime:
        agent = await runtime.create_agent("helper")
        recorder.watch(agent)
        await scenario.drive(agent, recorder)
        ended = len(recorder.rows)
    del recorder.rows[ended:]


def record(scenario: Scenario) -> list[Row]:
    """Run a scenario under a virtual clock, and give what was seen of it."""
    recorder = Recorder()
    trio.run(_run, scenario, recorder, clock=MockClock(autojump_threshold=0))
    return recorder.rows
