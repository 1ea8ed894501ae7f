"""Oversized results: kept whole in the store, a preview in the log (POL-05, 07, 08; B44)."""

import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from trioloop import (
    Limits,
    MemoryStore,
    Request,
    Runtime,
    SqliteStore,
    Tool,
    ToolContext,
    ToolOutcome,
    tool,
)
from trioloop.errors import StoreFailedError
from trioloop.events import ToolResultLogged
from trioloop.hooks import Next, PostExecution, PostPolicy, Replace, Withhold
from trioloop.messages import Block, ImageBlock, TextBlock, ToolResultMessage, text_of
from trioloop.plugins import spill
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools import NestedCall

LOCATOR = re.compile(r'read_result\(locator="([0-9a-f]{64})", start=\.\.\.\)')


def giving(value: Any, **options: Any) -> Tool:
    """A tool that gives a value."""

    @tool(name="give", effects="read-only", **options)
    async def give() -> Any:
        """Give it."""
        return value

    return give


class Caller(ScriptedModel):
    """A model that makes the calls that a test asks for."""

    def __init__(self) -> None:
        super().__init__(self._next)
        self._calls: tuple[ToolCall, ...] = ()

    def _next(self, request: Request) -> Text | list[ToolCall]:
        answered = isinstance(request.history[-1], ToolResultMessage)
        return Text("done") if answered else list(self._calls)

    async def call(self, runtime: Runtime, name: str, **arguments: Any) -> ToolResultLogged:
        """The result of a call, made by an agent of its own."""
        self._calls = (ToolCall(name, **arguments),)
        agent = await runtime.create_agent()
        await agent.ask("go")
        facts = [event.data for event in agent.session.events()]
        (result,) = [fact for fact in facts if isinstance(fact, ToolResultLogged)]
        return result

    async def read_all(self, runtime: Runtime, locator: str) -> str:
        """What a model reads that reads a kept result from its beginning to its end."""
        text, start = "", 0
        while True:
            result = await self.call(runtime, "read_result", locator=locator, start=start)
            part = text_of(result.content).partition("]\n")[2]
            before, more, rest = part.rpartition("\n[it goes on at start=")
            if not more:
                return text + part
            text, start = text + before, int(rest.removesuffix("]"))


def size(content: Sequence[Block]) -> int:
    """Bytes of some content."""
    texts = [block.text for block in content if isinstance(block, TextBlock)]
    return sum(len(text.encode()) for text in texts)


def locator_in(result: ToolResultLogged) -> str:
    """Where the whole of a result is."""
    found = LOCATOR.search(text_of(result.content))
    assert found is not None, text_of(result.content)
    return found[1]


async def test_a_result_of_two_million_characters_is_kept_and_can_be_read_whole() -> None:
    whole = "begin " + "".join(f"{n:>8}é" for n in range(200_000)) + " end"
    model = Caller()
    limits = Limits(result_bytes_max=40_000)
    async with open_test_runtime(
        model=model, tools=[giving(whole)], limits=limits, plugins=[spill]
    ) as runtime:
        result = await model.call(runtime, "give")
        assert 38_000 < size(result.content) <= 40_000
        assert "of 2,000,010 bytes" in text_of(result.content)
        assert "begin " in text_of(result.content)
        assert text_of(result.content).endswith(" end")
        assert await model.read_all(runtime, locator_in(result)) == whole


@pytest.mark.parametrize("bytes_max", [256, 1_000, 100_000])
async def test_preview_and_locator_are_within_the_limit_of_the_tool(bytes_max: int) -> None:
    model = Caller()
    tools = [giving("€" * 200_000, result_bytes_max=bytes_max)]
    async with open_test_runtime(model=model, tools=tools, plugins=[spill]) as runtime:
        result = await model.call(runtime, "give")
        assert size(result.content) <= bytes_max
        assert await runtime.read_kept(locator_in(result)) == ("€" * 200_000).encode()


async def test_what_is_too_long_in_bytes_alone_is_kept_too() -> None:
    model = Caller()
    tools = [giving("€" * 150, result_bytes_max=256)]
    async with open_test_runtime(model=model, tools=tools, plugins=[spill]) as runtime:
        result = await model.call(runtime, "give")
        assert size(result.content) <= 256
        assert await runtime.read_kept(locator_in(result)) == ("€" * 150).encode()


@pytest.mark.parametrize("count", [20_000, 300_000])
async def test_a_large_value_is_kept_as_all_of_its_json(count: int) -> None:
    value = {"numbers": list(range(count)), "name": "é"}
    model = Caller()
    async with open_test_runtime(model=model, tools=[giving(value)], plugins=[spill]) as runtime:
        result = await model.call(runtime, "give")
        assert json.loads(await runtime.read_kept(locator_in(result))) == value


async def test_an_author_s_own_long_content_is_kept_beside_a_large_value() -> None:
    outcome = ToolOutcome(content="x" * 2_000_000, value=list(range(300_000)))
    model = Caller()
    async with open_test_runtime(model=model, tools=[giving(outcome)], plugins=[spill]) as runtime:
        result = await model.call(runtime, "give")
        assert await runtime.read_kept(locator_in(result)) == b"x" * 2_000_000


@pytest.mark.parametrize(
    "value", ["short", [1, 2], [TextBlock("a"), ImageBlock("image/png", "A" * 100_000)]]
)
async def test_what_fits_or_is_no_text_is_left_alone(value: Any) -> None:
    store = MemoryStore()
    model = Caller()
    async with open_test_runtime(
        model=model, tools=[giving(value)], plugins=[spill], store=store
    ) as runtime:
        result = await model.call(runtime, "give")
    assert LOCATOR.search(text_of(result.content)) is None
    assert not store._blobs


async def test_a_store_that_cannot_keep_it_leaves_head_and_tail(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(store: object, content: bytes) -> str:
        raise StoreFailedError("the disk is full")

    monkeypatch.setattr(MemoryStore, "put_blob", full)
    model = Caller()
    whole = "begin" + "x" * 100_000 + "end"
    with caplog.at_level(logging.WARNING, "trioloop.plugins"):
        async with open_test_runtime(
            model=model, tools=[giving(whole)], plugins=[spill]
        ) as runtime:
            result = await model.call(runtime, "give")
    text = text_of(result.content)
    assert (result.code, text[:5], text[-3:]) == (None, "begin", "end")
    assert "left out: a result may have" in text
    assert "give can't be kept whole: the disk is full" in caplog.text


@pytest.mark.parametrize("how", ["replaced", "withheld"])
async def test_only_what_later_policies_let_through_is_kept(how: str) -> None:
    store = MemoryStore()
    model = Caller()
    async with open_test_runtime(
        model=model, tools=[giving("secret" * 100_000)], plugins=[spill], store=store
    ) as runtime:

        @runtime.hooks.post_execute
        async def redact(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
            assert text_of(done.outcome.content) == "secret" * 100_000
            return Replace("public" * 50_000) if how == "replaced" else Withhold("no")

        result = await model.call(runtime, "give")
        if how == "replaced":
            assert size(result.content) <= runtime.limits.result_bytes_max
            assert await runtime.read_kept(locator_in(result)) == b"public" * 50_000
    assert len(store._blobs) == (how == "replaced")
    assert not any(b"secret" in content for content in store._blobs.values())


async def test_a_program_s_own_calls_are_left_to_it() -> None:
    @tool(effects="read-only")
    async def outer(context: ToolContext) -> int:
        """Call the other tool."""
        (outcome,) = await context.call_tools([NestedCall("give", {})])
        return len(str(outcome.value))

    store = MemoryStore()
    model = Caller()
    async with open_test_runtime(
        model=model, tools=[giving("x" * 300_000), outer], plugins=[spill], store=store
    ) as runtime:
        result = await model.call(runtime, "outer")
    assert text_of(result.content) == "300000"
    assert not store._blobs


async def test_only_the_chosen_tools_are_kept() -> None:
    store = MemoryStore()
    model = Caller()
    async with (
        open_test_runtime(model=model, tools=[giving("x" * 100_000)], store=store) as runtime,
        spill(runtime, only=lambda name: name != "give"),
    ):
        await model.call(runtime, "give")
    assert not store._blobs


async def test_an_unknown_locator_is_an_error_for_the_model() -> None:
    model = Caller()
    async with open_test_runtime(model=model, plugins=[spill]) as runtime:
        result = await model.call(runtime, "read_result", locator="0" * 64)
    assert result.code == "TOOL_FAILED"


async def test_what_was_kept_is_there_when_the_log_is(tmp_path: Path) -> None:
    model = Caller()
    store = SqliteStore(tmp_path / "agents.db")
    async with open_test_runtime(
        model=model, tools=[giving("x" * 300_000)], plugins=[spill], store=store
    ) as runtime:
        result = await model.call(runtime, "give")
    again = SqliteStore(tmp_path / "agents.db")
    try:
        assert await again.get_blob(locator_in(result)) == b"x" * 300_000
    finally:
        await again.aclose()


@example("aé€😀" * 60, 3)
@example("a" + "😀" * 150, 3)
@given(st.text(max_size=600), st.integers(0, 2_000))
def test_slices_never_split_a_character(text: str, start: int) -> None:
    async def main() -> None:
        model = Caller()
        limits = Limits(result_bytes_max=300)
        async with open_test_runtime(model=model, limits=limits, plugins=[spill]) as runtime:
            kept = await runtime.keep_result(ToolOutcome(content=text), preview_bytes_max=256)
            whole = await model.read_all(runtime, kept.locator)
            assert whole == text
            result = await model.call(runtime, "read_result", locator=kept.locator, start=start)
            part = text_of(result.content).partition("]\n")[2]
            assert part.rpartition("\n[it goes on at start=")[0] in text

    trio.run(main)
