"""What is found of a process that died with messages pending and a turn open (D1, D4, I5)."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import trio

from tests.agent.reading import said
from trioloop import check, open_runtime, read_session, rebuild_request
from trioloop.codec import encode_event
from trioloop.events import Event
from trioloop.log.fold import fold
from trioloop.log.repair import repair
from trioloop.testing import ScriptedModel, Text

PROGRAM = Path(__file__).with_name("programs") / "lost.py"


def _die(database: Path) -> list[str]:
    """Let a process die in a turn, with messages pending; their ids, as it told them."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(database)], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        ids = program.stdout.readline().split()
        program.kill()
    return ids


def _bytes(events: Sequence[Event]) -> list[bytes]:
    return [encode_event(event) for event in events]


def test_what_was_durable_is_pending_again_behind_a_death(tmp_path: Path) -> None:
    database = tmp_path / "agents.db"
    steered, followed = _die(database)

    async def go_on() -> list[str]:
        model = ScriptedModel([Text("there"), Text("again")])
        async with open_runtime(model=model, store=database) as runtime:
            agent = await runtime.resume_agent("a")
            inbox = agent.session.state.inbox
            assert [one.message.id for one in inbox.next_step] == [steered]
            assert [one.message.id for one in inbox.next_turn] == [followed]
            assert agent.status == "idle"
            agent.wake()
            await agent.wait_idle()
            return said(model.requests[-1])

    lines = trio.run(go_on)
    assert [line for line in lines if line.startswith("U")] == ["U work", "U steer", "U later"]


def test_looking_into_an_interrupted_log_changes_nothing_of_it(tmp_path: Path) -> None:
    database = tmp_path / "agents.db"
    _die(database)
    events = read_session(database, "a")
    check(events)
    state = fold(events)
    assert state.turn is not None
    closing = repair(state)
    assert closing[-1].turn == 1  # type: ignore[attr-defined]  # a turn's end
    assert _bytes(read_session(database, "a")) == _bytes(events)

    async def resume() -> None:
        async with open_runtime(store=database) as runtime:
            await runtime.resume_agent("a")

    trio.run(resume)
    repaired = read_session(database, "a")
    assert _bytes(repaired[: len(events)]) == _bytes(events)
    assert tuple(event.data for event in repaired[len(events) :]) == closing
    trio.run(resume)
    assert _bytes(read_session(database, "a")) == _bytes(repaired)
    answered = [event.seq for event in repaired if event.type == "assistant/message"]
    assert rebuild_request(repaired, answered[0]) == rebuild_request(events, answered[0])
