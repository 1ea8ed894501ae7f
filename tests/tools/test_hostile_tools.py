"""Tools that give too much, leave things behind, or reach around (faults 8, 11, 13, 15, 37).

In real time. No wall time is asserted: that a large result holds nobody up is shown by another task
that goes on while it is written.
"""

import logging
import os
import threading
from typing import Any

import pytest
import trio

from tests.tools.batches import Step, step_of
from trioloop.errors import AgentDisposedError
from trioloop.events import ToolResultLogged
from trioloop.messages import text_of
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools import ToolContext, tool

HUGE = 100_000_000


async def turns_of_another_task(step: Step, name: str) -> int:
    """Run a call, and tell how often another task was run meanwhile."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await trio.sleep(0.001)
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await step.run((name, {}))
        nursery.cancel_scope.cancel()
    return turns


async def test_a_text_of_100_mb_is_cut_to_its_size() -> None:
    async def huge() -> str:
        """Give a huge text."""
        return "x" * HUGE

    step = step_of(huge)
    await step.run(("huge", {}))
    assert step.codes == [None]
    assert len(step.texts[0]) <= step.limits.result_bytes_max
    assert "99,934,6" in step.texts[0]


async def test_a_text_of_100_mb_from_a_thread_is_cut_to_its_size() -> None:
    @tool(effects="read-only")
    def huge() -> str:
        """Give a huge text."""
        return "é" * (HUGE // 2)

    step = Step()
    step.tools.register(huge)
    await step.run(("huge", {}))
    assert step.codes == [None]
    assert len(step.texts[0].encode()) <= step.limits.result_bytes_max


async def test_a_million_keys_are_written_while_others_go_on() -> None:
    values = {str(number): number for number in range(1_000_000)}

    async def many() -> dict[str, int]:
        """Give many keys."""
        return values

    step = step_of(many)
    assert await turns_of_another_task(step, "many") > 20
    assert step.codes == [None]
    assert len(step.texts[0]) <= step.limits.result_bytes_max
    assert step.texts[0].endswith('"999999":999999}')


async def test_what_is_nested_too_deeply_is_refused_with_a_path() -> None:
    value: list[Any] = []
    for _ in range(3_000):
        value = [value]

    async def deep() -> list[Any]:
        """Give something deep."""
        return value

    step = step_of(deep)
    await step.run(("deep", {}))
    assert step.codes == ["TOOL_RESULT_UNENCODABLE"]
    assert "$[0][0]" in step.texts[0]


async def test_memory_and_descriptors_that_run_out_in_a_body_are_its_error() -> None:
    async def greedy(what: str) -> None:
        """Run out of something."""
        raise MemoryError if what == "memory" else OSError(24, os.strerror(24))

    step = step_of(greedy)
    await step.run(("greedy", {"what": "memory"}), ("greedy", {"what": "descriptors"}))
    assert step.codes == ["TOOL_FAILED", "TOOL_FAILED"]
    assert step.texts == ["MemoryError", "OSError: [Errno 24] Too many open files"]


async def test_an_error_whose_code_or_words_fail_is_its_calls_alone() -> None:
    class OddError(Exception):
        @property
        def code(self) -> str:
            raise RuntimeError("no code")

        def __str__(self) -> str:
            raise SystemExit(3)

    async def odd() -> None:
        """Raise an error that says nothing."""
        raise OddError

    async def fine() -> str:
        """Do well."""
        return "well"

    step = step_of(odd, fine)
    await step.run(("odd", {}), ("fine", {}))
    assert step.codes == ["TOOL_FAILED", None]
    assert step.texts == ["OddError: (its message can't be shown)", "well"]


async def test_arguments_that_a_body_changes_are_its_own() -> None:
    async def change(items: list[int]) -> int:
        """Change an argument."""
        items.append(99)
        return len(items)

    step = step_of(change)
    asked = {"items": [1]}
    await step.run(("change", asked), ("change", asked))
    assert step.texts == ["2", "2"]
    assert asked == {"items": [1]}


async def test_a_body_that_leaves_a_task_of_its_nursery_has_it_cancelled() -> None:
    ended = trio.Event()

    @tool(effects="read-only")
    async def leave(context: ToolContext) -> str:
        """Leave a task."""
        context.nursery.start_soon(wait)
        await trio.lowlevel.checkpoint()
        return "done"

    async def wait() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    step = Step()
    step.tools.register(leave)
    await step.run(("leave", {}))
    assert (step.texts, ended.is_set()) == (["done"], True)


async def test_a_thread_that_a_body_leaves_says_nothing_any_more() -> None:
    release, said = threading.Event(), threading.Event()

    @tool(effects="read-only")
    async def leave(context: ToolContext) -> str:
        """Leave a thread of one's own."""

        def speak() -> None:
            release.wait(20)
            context.report_progress("late")
            context.add_context("late")
            said.set()

        threading.Thread(target=speak).start()
        return "done"

    step = Step()
    step.tools.register(leave)
    await step.run(("leave", {}))
    release.set()
    await trio.to_thread.run_sync(said.wait, 20)
    assert (step.texts, step.progress, step.contexts) == (["done"], [], [])


@pytest.mark.parametrize("how", ["sends", "disposes", "cancels"])
async def test_a_body_may_reach_for_its_own_agent(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    async def reach(context: ToolContext) -> str:
        """Use the agent that called."""
        agent = runtime.agents[context.agent.name]
        if how == "sends":
            agent.followup("and then?")
        elif how == "disposes":
            await agent.dispose()
            with pytest.raises(AgentDisposedError):
                agent.followup("more")
        else:
            context.agent.cancel("enough")
        await trio.lowlevel.checkpoint()
        return "reached"

    model = ScriptedModel([ToolCall("reach"), Text("done"), Text("then this")])
    with caplog.at_level(logging.ERROR), trio.fail_after(20):
        async with open_test_runtime(model=model, tools=[reach]) as runtime:
            agent = await runtime.create_agent("main")
            settled = await agent.ask("go")
            await agent.wait_idle()
            facts = [event.data for event in agent.session.events()]
    (result,) = [fact for fact in facts if isinstance(fact, ToolResultLogged)]
    if how == "sends":
        assert (settled.reason, text_of(result.content)) == ("completed", "reached")
        assert len(model.requests) == 3
    else:
        assert settled.reason == "aborted"
        assert result.code == "TOOL_ABORTED"
    assert not caplog.records


async def test_a_system_task_that_crashes_ends_the_run_with_a_whole_log() -> None:
    """It is Trio's own rule: such a crash is a fault of the program (fault 8)."""

    async def crash() -> None:
        raise ValueError("in a system task")

    events: list[Any] = []

    def main() -> None:
        async def run() -> None:
            model = ScriptedModel([ToolCall("careless"), Text("done")])
            async with open_test_runtime(model=model, tools=[careless]) as runtime:
                agent = await runtime.create_agent("main")
                agent.session.observe(events.append)
                await agent.ask("go")

        trio.run(run)

    @tool(effects="read-only")
    async def careless() -> None:
        """Start a system task that crashes."""
        trio.lowlevel.spawn_system_task(crash)
        await trio.sleep_forever()

    with pytest.raises(trio.TrioInternalError):
        await trio.to_thread.run_sync(main)
    assert [event.data.code for event in events if isinstance(event.data, ToolResultLogged)] == [
        "TOOL_ABORTED"
    ]
    assert events[-1].type == "turn/end"
