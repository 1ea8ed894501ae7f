"""A process killed in the middle of a turn: its conversation is repaired and goes on (P22, D4)."""

import subprocess
import sys
from pathlib import Path

import trio

from trioloop import open_runtime, read_session
from trioloop.events import ToolResultLogged, TurnEnded
from trioloop.messages import AssistantMessage, ToolResultMessage, UserMessage, text_of
from trioloop.testing import ScriptedModel, Text

PROGRAM = Path(__file__).with_name("programs") / "killed.py"


def kill_in_the_middle_of_a_call(database: Path) -> None:
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(database)], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "waiting\n"
        program.kill()


def test_a_killed_turn_is_closed_as_interrupted_and_the_agent_goes_on(tmp_path: Path) -> None:
    database = tmp_path / "agents.db"
    kill_in_the_middle_of_a_call(database)
    before = read_session(database, "ledger")
    assert before[-1].type == "tool/call"

    async def go_on() -> list[str]:
        model = ScriptedModel([Text("Still here.")])
        async with open_runtime(model=model, store=database) as runtime:
            agent = await runtime.resume_agent("ledger")
            repaired = [event.data for event in agent.session.events(len(before) - 1)]
            result, _, end = repaired
            assert isinstance(result, ToolResultLogged)
            assert result.code == "TOOL_OUTCOME_UNKNOWN"
            assert isinstance(end, TurnEnded)
            assert end.reason == "interrupted"
            settled = await agent.ask("and now?")
            assert settled.text == "Still here."
            return [said(message) for message in model.requests[0].messages]

    conversation = trio.run(go_on)
    assert conversation[:3] == ["remember 7", "I remember.", "write it down"]
    assert conversation[3] == "calls write_ledger"
    assert "unknown" in conversation[4]
    assert conversation[5:] == ["and now?"]


def said(message: object) -> str:
    assert isinstance(message, UserMessage | AssistantMessage | ToolResultMessage)
    if isinstance(message, AssistantMessage) and message.calls:
        return f"calls {message.calls[0].name}"
    return text_of(message.content)


def test_opening_a_repaired_session_again_changes_nothing_more(tmp_path: Path) -> None:
    database = tmp_path / "agents.db"
    kill_in_the_middle_of_a_call(database)

    async def open_and_leave() -> int:
        async with open_runtime(store=database) as runtime:
            return (await runtime.resume_agent("ledger")).session.seq

    assert trio.run(open_and_leave) == trio.run(open_and_leave)
    assert len(read_session(database, "ledger")) == trio.run(open_and_leave) + 1
