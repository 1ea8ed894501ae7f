"""Requests when the model behind an agent changes, and what of them goes over (E1, E2, E6; REQ)."""

import msgspec
import pytest
from trio.testing import MockClock

from tests.agent.reading import facts
from trioloop import tool
from trioloop.events import CallConfig, RequestContextLogged, RequestHeaderLogged
from trioloop.hooks import Next, RequestProposal, StreamRequest
from trioloop.messages import ImageBlock, TextBlock, UserMessage
from trioloop.ports import Capabilities, ChunkStream
from trioloop.testing import ScriptedModel, Text, open_test_runtime


def _model(name: str, *answers: str, window: int | None = None) -> ScriptedModel:
    capabilities = Capabilities(context_window=window)
    script = [Text(answer) for answer in answers]
    return ScriptedModel(script, name=name, capabilities=capabilities)


def _taking(name: str, at_turn: int):  # type: ignore[no-untyped-def]  # a listener
    async def switch(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        config = await next()
        if proposal.turn < at_turn:
            return config
        return msgspec.structs.replace(config, model=name)

    return switch


async def test_settings_that_were_given_stay_when_the_model_changes(
    autojump_clock: MockClock,
) -> None:
    first, second = _model("first", "1"), _model("second", "2")
    config = CallConfig(provider="scripted", model="first", max_tokens=77, temperature=0.5)
    async with open_test_runtime(model=first, models=[second], config=config) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request.add(_taking("second", 2))
        await agent.ask("one")
        await agent.ask("two")
        asked = second.requests[0].config
        assert (asked.model, asked.max_tokens, asked.temperature) == ("second", 77, 0.5)
        assert [header.why for header in facts(agent, RequestHeaderLogged)] == ["initial", "change"]
        assert len(second.requests[0].history) == 3


@pytest.mark.parametrize(
    ("windows", "told"),
    [((100, 100), [100]), ((100, 200), [100, 200]), ((100, None), [100, None])],
    ids=repr,
)
async def test_a_context_is_logged_when_another_model_takes_more_or_less(
    windows: tuple[int | None, int | None], told: list[int | None], autojump_clock: MockClock
) -> None:
    one, other = windows
    name = "first" if windows == (100, 100) else "second"
    first, second = _model("first", "1", "2", window=one), _model("second", "2", window=other)
    async with open_test_runtime(model=first, models=[second]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request.add(_taking(name, 2))
        await agent.ask("one")
        await agent.ask("two")
        assert [fact.context_window for fact in facts(agent, RequestContextLogged)] == told


async def test_a_model_that_tells_no_window_has_one_record_without(
    autojump_clock: MockClock,
) -> None:
    async with open_test_runtime(model=_model("first", "1", "2")) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        await agent.ask("two")
        (context,) = facts(agent, RequestContextLogged)
        assert context.context_window is None


async def test_a_listener_sees_an_image_though_its_model_may_not(
    autojump_clock: MockClock,
) -> None:
    seen: list[object] = []

    async def look(asked: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        seen.extend(asked.request.history)
        return await next()

    image = ImageBlock("image/png", "aGk=")
    async with open_test_runtime(model=_model("blind", "1")) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.stream.add(look)
        await agent.ask(UserMessage((TextBlock("look"), image)))
        (message,) = seen
        assert isinstance(message, UserMessage)
        assert message.content == (TextBlock("look"), image)


async def test_a_header_is_told_anew_when_tools_change_their_order(
    autojump_clock: MockClock,
) -> None:
    @tool
    async def first() -> str:
        """First."""
        return ""

    @tool
    async def second() -> str:
        """Second."""
        return ""

    async with open_test_runtime(model=_model("m", "1", "2", "3")) as runtime:
        agent = await runtime.create_agent("a")
        one = agent.tools.register(first)
        agent.tools.register(second)
        await agent.ask("one")
        await agent.ask("two")
        one.close()
        agent.tools.register(first)
        await agent.ask("three")
        headers = facts(agent, RequestHeaderLogged)
        assert [[tool.name for tool in header.tools] for header in headers] == [
            ["first", "second"],
            ["second", "first"],
        ]


async def test_a_request_without_prompt_and_tools_has_neither(autojump_clock: MockClock) -> None:
    model = _model("m", "1")
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
    assert model.requests[0].system == ()
    assert model.requests[0].tools == ()
