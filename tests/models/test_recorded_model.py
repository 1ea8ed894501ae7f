"""A run is recorded once and played back from then on, failures, times and all."""

from pathlib import Path

import attrs
import msgspec
import pytest
import trio
import trio.testing

import trioloop
from tests.models.asking import ask, collect, make_request
from trioloop.chunks import Finish, Frame, TextDelta
from trioloop.errors import InvalidInputError, ModelFailure
from trioloop.events import CallConfig
from trioloop.messages import user_message
from trioloop.models import RecordedModel, ScriptedModel
from trioloop.models.recording_file import read_recording, written
from trioloop.models.scripted import Entry
from trioloop.plugins import retry
from trioloop.ports import Capabilities
from trioloop.testing import Fail, Reasoning, Stall, Text, ToolCall, Wait, open_test_runtime

SCRIPT: list[Entry] = [
    [Reasoning("Look."), ToolCall("stock", item="apples")],
    Fail("OVERLOADED", "busy", retry_after=2, status=529),
    [Text("Half"), Fail("TRANSPORT")],
    Text("Three."),
]


@trioloop.tool(effects="read-only")
async def stock(item: str) -> int:
    """How many of an item are in stock."""
    return {"apples": 3}.get(item, 0)


async def run(model: RecordedModel, question: str = "How many apples?") -> list[trioloop.Event]:
    async with open_test_runtime(model=model, tools=[stock], plugins=[retry]) as runtime:
        agent = await runtime.create_agent("shop")
        await agent.ask(question)
        return list(agent.session.events())


async def test_a_whole_run_is_played_back_as_it_was(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    live = ScriptedModel(SCRIPT, capabilities=Capabilities(context_window=1_000))
    recorded = await run(RecordedModel(path, live=live))
    assert len(live.requests) == 4
    played = await run(RecordedModel(path))
    assert [told(event) for event in played] == [told(event) for event in recorded]


def told(event: trioloop.Event) -> object:
    """What an event says, but for when: answers that are played back come at once."""
    said = attrs.asdict(event.data, recurse=False)  # type: ignore[arg-type]  # all are attrs classes
    return type(event.data), {name: said[name] for name in said.keys() - {"created", "stream"}}


async def test_a_recording_is_written_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for said in ("one", "two"):
        await ask(RecordedModel(path, live=ScriptedModel([Text(said)])))
    played = RecordedModel(path)
    assert (played.provider, played.name) == ("scripted", "scripted")
    assert (await ask(played)).assembled.message.text == "two"


async def test_answers_come_in_their_time_where_that_is_wanted(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    slow = ScriptedModel([[Text("a"), Wait(30), Text("b")]])
    await ask(RecordedModel(path, live=slow))
    for in_time, lasts in ((False, 0), (True, 30)):
        began = trio.current_time()
        asked = await ask(RecordedModel(path, in_time=in_time))
        assert asked.assembled.message.text == "ab"
        assert trio.current_time() - began == pytest.approx(lasts)


async def test_an_answer_that_was_left_waits_to_be_left_again(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    for live in (ScriptedModel([[Text("a"), Stall()]]), None):
        model = RecordedModel(path, live=live)
        with trio.move_on_after(5) as scope:
            await collect(model)
        assert scope.cancelled_caught
    call = await RecordedModel(path).prepare(CallConfig(provider="scripted", model="scripted"))
    async with call.stream(make_request(config=call.config)) as stream:
        assert list(await anext(stream)) == [TextDelta("a")]


async def test_reads_that_held_nothing_are_no_end(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await ask(RecordedModel(path, live=ScriptedModel([Text("hi")])))
    heading, (exchange,) = read_recording(path)
    frames = [piece for frame in exchange.frames for piece in (frame, Frame(frame.at_ms, ()))]
    exchange = msgspec.structs.replace(exchange, frames=tuple(frames))
    path.write_bytes(written([heading, exchange]))
    again = tmp_path / "again.jsonl"
    await ask(RecordedModel(again, live=RecordedModel(path)))
    assert read_recording(again)[1][0].left is False
    assert (await ask(RecordedModel(again))).assembled.message.text == "hi"


async def test_requests_at_once_have_their_own_answers(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    config = CallConfig(provider="scripted", model="scripted")
    first, second = (make_request(user_message(text), config=config) for text in ("a", "b"))
    live = RecordedModel(path, live=ScriptedModel([Text("to a"), Text("to b")]))
    for request in (first, second):
        await ask(live, request)
    played = RecordedModel(path)
    for request, said in ((second, "to b"), (first, "to a")):
        assert (await ask(played, request)).assembled.message.text == said


async def test_another_request_is_told_with_the_place_where_it_differs(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await ask(RecordedModel(path, live=ScriptedModel([Text("hi")])))
    played = RecordedModel(path)
    config = CallConfig(provider="scripted", model="scripted")
    other = make_request(user_message("a secret"), config=config)
    with pytest.raises(ModelFailure, match=r"differs at messages\[0\]\.content\[0\]\.text") as told:
        await ask(played, other)
    assert "secret" not in str(told.value)
    assert not told.value.retryable
    await ask(played)
    with pytest.raises(ModelFailure, match="has been played: record it anew"):
        await ask(played)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "can't be read"),
        (b"", "is no recording"),
        (b"\xff\n", "is no recording"),
        (b'{"format":2,"provider":"p","model":"m","capabilities":{}}\n', "has format 2"),
        (b'{"format":1,"provider":"p","model":"m","capabilities":{}}\n{}\n', "is no recording"),
    ],
)
def test_what_is_no_recording_is_told(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "run.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=said):
        RecordedModel(path)


async def test_it_tells_what_it_does(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    live = RecordedModel(path, live=ScriptedModel([Text("hi")]))
    assert "records" in repr(live)
    chunks, _ = await collect(live)
    assert isinstance(chunks[-1], Finish)
    assert "plays" in repr(RecordedModel(path))
    await live.aclose()
    await live.aclose()
