"""A listener that answers what its hook doesn't take ends its turn, and is named (H3, G12)."""

from collections.abc import Callable

import pytest
from trio.testing import MockClock

from tests.agent.reading import ends, types
from trioloop.events import CallConfig
from trioloop.hooks import Enter, Hooks, Next, SectionText
from trioloop.messages import user_message
from trioloop.testing import Fail, ScriptedModel, Text, open_test_runtime

Hook = Callable[[Hooks], object]
TWICE = (SectionText("a", "1"), SectionText("a", "2"))

# Each hook of a turn, what a listener answers, and how many steps were committed before.
MISUSES: dict[str, tuple[str, object, int]] = {
    "pre-step: nothing": ("pre_step", None, 0),
    "pre-step: text": ("pre_step", "enter", 0),
    "pre-step: no message": ("pre_step", Enter(("text",)), 0),  # type: ignore[arg-type]
    "pre-step: one id twice": ("pre_step", Enter((user_message("x", id="m"),) * 2), 0),
    "assemble: nothing": ("assemble", None, 0),
    "assemble: text": ("assemble", ("text",), 0),
    "assemble: one name twice": ("assemble", TWICE, 0),
    "request: nothing": ("request", None, 0),
    "request: a config of its own": ("request", CallConfig(provider="p", model="m"), 0),
    "request-error: a number": ("request_error", 3, 1),
    "stream: nothing": ("stream", None, 1),
    "stream: text": ("stream", "hi", 1),
}


@pytest.mark.parametrize("misuse", MISUSES)
async def test_a_wrong_answer_ends_the_turn_and_names_its_listener(
    misuse: str, autojump_clock: MockClock
) -> None:
    hook, answer, steps = MISUSES[misuse]

    async def inner(payload: object, next: Next[object]) -> object:
        return answer

    async def outer(payload: object, next: Next[object]) -> object:
        return await next()

    first = [Fail("SERVER")] if hook == "request_error" else []
    model = ScriptedModel([*first, Text("fine")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        with getattr(runtime.hooks, hook).add(outer), getattr(agent.hooks, hook).add(inner):
            await agent.ask("one")
        (end,) = ends(agent)
        assert (end.reason, end.code) == ("error", "HOOK_MISUSE")
        assert end.by is not None
        assert end.by.endswith("inner")
        assert types(agent).count("step/start") == steps
        assert (await agent.ask("two")).text == "fine"


@pytest.mark.parametrize("hook", ["pre_step", "assemble", "request", "stream", "turn_stopping"])
async def test_a_listener_that_raises_is_named(hook: str, autojump_clock: MockClock) -> None:
    async def boom(*given: object) -> object:
        raise ValueError("boom")

    async with open_test_runtime(model=ScriptedModel([Text("1"), Text("2")])) as runtime:
        agent = await runtime.create_agent("a")
        with getattr(agent.hooks, hook).add(boom):
            settled = await agent.ask("one")
        assert (settled.reason, settled.message) == ("error", "boom")
        (end,) = ends(agent)
        assert end.by is not None
        assert end.by.endswith("boom")
        assert (await agent.ask("two")).reason == "completed"
