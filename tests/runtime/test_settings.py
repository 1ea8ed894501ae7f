"""Settings that no provider takes are refused where they are given (G12; REQ-21)."""

import math
from typing import Any

import msgspec
import pytest
from trio.testing import MockClock

from tests.agent.reading import ends, types
from trioloop.errors import InvalidInputError
from trioloop.events import CallConfig
from trioloop.hooks import Next, RequestProposal
from trioloop.runtime.open import open_runtime
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, Text, open_test_runtime

WRONG = [
    ("provider", None),
    ("model", 3),
    ("max_tokens", 0),
    ("max_tokens", -1),
    ("max_tokens", 1.5),
    ("max_tokens", True),
    ("max_tokens", "many"),
    ("temperature", -0.1),
    ("temperature", math.nan),
    ("temperature", math.inf),
    ("temperature", True),
    ("temperature", "hot"),
    ("tool_choice", ""),
    ("tool_choice", 1),
    ("parallel_tool_calls", "yes"),
    ("reasoning_effort", ""),
    ("reasoning_effort", 2),
    ("output_schema", None),
    ("output_schema", "object"),
    ("output_schema", {1: "x"}),
    ("extra", None),
    ("extra", {1: "x"}),
    ("extra", [("a", 1)]),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_setting_that_no_provider_takes_is_refused_by_name(name: str, value: object) -> None:
    fine = CallConfig(provider="p", model="m")
    with pytest.raises(InvalidInputError, match=f"{name} must be .*, not "):
        msgspec.structs.replace(fine, **{name: value})


def test_settings_at_the_edge_are_taken() -> None:
    config = CallConfig(
        provider="p",
        model="m",
        max_tokens=1,
        temperature=0,
        tool_choice="none",
        parallel_tool_calls=False,
        reasoning_effort="minimal",
        output_schema={},
        extra={"seed": [1, None, {"a": 0.5}]},
    )
    assert config.temperature == 0


NO_JSON = [{"a": {1, 2}}, {"a": object}, {"a": math.nan}, {"a": [{2: 3}]}, {"a": b"x"}]


@pytest.mark.parametrize("extra", NO_JSON, ids=repr)
async def test_extras_that_are_no_json_make_no_agent(
    extra: dict[str, Any], autojump_clock: MockClock
) -> None:
    config = CallConfig(provider="scripted", model="scripted", extra=extra)
    store = MemoryStore()
    async with open_test_runtime(model=ScriptedModel([]), store=store) as runtime:
        await (await runtime.create_agent("parent")).dispose()
        before = await store.sessions()
        with pytest.raises(InvalidInputError, match="extra"):
            await runtime.create_agent("a", config=config)
        with pytest.raises(InvalidInputError, match="extra"):
            await runtime.fork_agent("parent", "a", config=config)
        with pytest.raises(InvalidInputError, match="extra"):
            await runtime.resume_agent("parent", config=config)
        assert runtime.agents == {}
        assert await store.sessions() == before
        await runtime.create_agent("a")
        await runtime.resume_agent("parent")
    with pytest.raises(InvalidInputError, match="extra"):
        async with open_runtime(config=config):
            pytest.fail("it opened")


@pytest.mark.parametrize("config", ["fast", {"max_tokens": 3}], ids=repr)
async def test_something_else_than_settings_is_refused(
    config: object, autojump_clock: MockClock
) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        with pytest.raises(InvalidInputError, match="CallConfig"):
            await runtime.create_agent("a", config=config)  # type: ignore[arg-type]
        assert runtime.agents == {}


async def test_what_a_caller_does_to_extras_later_reaches_no_request(
    autojump_clock: MockClock,
) -> None:
    extra: dict[str, Any] = {"a": [1]}
    config = CallConfig(provider="scripted", model="scripted", extra=extra)
    model = ScriptedModel([Text("hi")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a", config=config)
        extra["b"] = 2
        await agent.ask("one")
    assert model.requests[0].config.extra == {"a": [1]}


@pytest.mark.parametrize(
    ("change", "code"),
    [({"max_tokens": -5}, "INVALID_INPUT"), ({"extra": {"a": math.nan}}, "HOOK_MISUSE")],
    ids=repr,
)
async def test_a_listener_that_asks_for_what_no_provider_takes_ends_its_turn(
    change: dict[str, object], code: str, autojump_clock: MockClock
) -> None:
    async def overdo(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        return msgspec.structs.replace(await next(), **change)

    model = ScriptedModel([Text("fine")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        with agent.hooks.request.add(overdo):
            settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", code)
        assert types(agent) == ["turn/start", "turn/end"]
        assert "overdo" in (ends(agent)[0].by or "")
        assert model.requests == []
        assert (await agent.ask("two")).text == "fine"
