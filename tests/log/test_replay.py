"""A log shown again: the same chunks and events, in order and in time."""

import trio
import trio.testing

from trioloop.chunks import TextDelta
from trioloop.log.replay import replay
from trioloop.testing import Fail, ScriptedModel, Text, Wait, open_test_runtime


async def test_a_replay_shows_every_chunk_and_event_when_it_came(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model = ScriptedModel([[Text("one"), Wait(3), Text("two")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("shown")
        await trio.sleep(5)
        await agent.ask("speak")
        events = agent.session.events()
    moments = list(replay(events))
    assert [moment.event for moment in moments if moment.chunks is None] == list(events)
    said = [
        (moment.at_ms, chunk.text)
        for moment in moments
        for chunk in moment.chunks or ()
        if isinstance(chunk, TextDelta)
    ]
    assert said == [(5_000, "one"), (8_000, "two")]
    assert [moment.at_ms for moment in moments] == sorted(moment.at_ms for moment in moments)


def test_a_log_without_events_has_nothing_to_show() -> None:
    assert list(replay(())) == []


async def test_a_replay_shows_what_a_failed_attempt_had_streamed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model = ScriptedModel([[Text("ha"), Wait(2), Text("lf"), Wait(1), Text("!"), Fail("AUTH")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("shown")
        await agent.ask("speak")
        events = agent.session.events()
    told = [moment for moment in replay(events) if moment.chunks]
    assert {moment.event.type for moment in told} == {"assistant/attempt"}
    assert [moment.at_ms for moment in told] == [0, 2_000, 3_000]
