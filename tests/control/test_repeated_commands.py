"""Commands that come twice act once, also across a restart of the endpoint."""

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing

from tests.control.raw_client import raw
from tests.control.serving import agent_of, controlled, served
from trioloop.control import WireError
from trioloop.control.faults import CODES
from trioloop.control.link import request
from trioloop.control.parameters import OneAgent, Parameters, Replacement
from trioloop.control.protocol import decode_request
from trioloop.control.remembered import Remembered
from trioloop.control.results import Done
from trioloop.testing import ScriptedModel, Stall, Text


async def test_a_message_that_comes_again_is_sent_once() -> None:
    model = ScriptedModel([Text("one")])
    async with controlled(model) as (control, runtime):
        await control.create("a")
        first = await control.send("a", "hello", id="m1")
        await agent_of(runtime, "a").wait_idle()
        again = await control.send("a", "hello", id="m1")
        assert (again.message, again.turn) == (first.message, first.turn)
        for other in ({"content": "bye"}, {"target": "next-step"}, {"wakeup": False}):
            with pytest.raises(WireError, match="id_conflict"):
                await control.send("a", **{"content": "hello", **other}, id="m1")  # type: ignore[arg-type]
        assert len(model.requests) == 1


async def test_after_a_restart_messages_creations_and_forks_are_still_known(
    tmp_path: Path,
) -> None:
    store = tmp_path / "agents.db"

    async def ask_everything(control: Any) -> tuple[Any, ...]:
        made = await control.create("a")
        sent = await control.send("a", "hello", id="m1", wakeup=False)
        forked = await control.fork("a", "b")
        return (made.opened, sent.message, sent.seq, forked.opened)

    async with controlled(store=store) as (control, _):
        first = await ask_everything(control)
    async with controlled(store=store) as (control, runtime):
        assert await ask_everything(control) == first
        assert len(agent_of(runtime, "a").inbox) == 1
        with pytest.raises(WireError, match="id_conflict"):
            await control.fork("b", "a")
        with pytest.raises(WireError, match="id_conflict"):
            await control.create("b")


async def test_a_message_to_a_stored_session_makes_it_live(tmp_path: Path) -> None:
    store = tmp_path / "agents.db"
    async with controlled(store=store) as (control, _):
        await control.create("a")
        await control.send("a", "hello", id="m1", wakeup=False)
    async with controlled(store=store) as (control, runtime):
        again = await control.send("a", "hello", id="m1", wakeup=False)
        assert again.status == "pending"
        assert len(agent_of(runtime, "a").inbox) == 1


def command(id: str, method: str, parameters: Parameters) -> Any:
    return decode_request(request(id, method, parameters))


async def test_other_commands_are_remembered_by_their_id() -> None:
    remembered, acted = Remembered(2), list[str]()

    async def act() -> Done:
        acted.append("acted")
        await trio.lowlevel.checkpoint()
        return Done(changed=len(acted) == 1)

    wake = command("id-1", "agent/wake", OneAgent(agent="a"))
    assert (await remembered.once("me", wake, act)).changed  # type: ignore[attr-defined]
    assert (await remembered.once("me", wake, act)).changed  # type: ignore[attr-defined]
    assert acted == ["acted"]
    with pytest.raises(WireError, match="id_conflict"):
        await remembered.once("me", command("id-1", "agent/wake", OneAgent(agent="b")), act)
    await remembered.once("somebody else", wake, act)
    assert len(acted) == 2


async def test_a_command_that_comes_again_while_it_is_carried_out_waits_for_it() -> None:
    remembered, going = Remembered(10), trio.Event()
    outcomes: list[Any] = []

    async def act() -> Done:
        await going.wait()
        return Done()

    async def ask() -> None:
        wake = command("id-1", "agent/wake", OneAgent(agent="a"))
        outcomes.append(await remembered.once("me", wake, act))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        going.set()
    assert outcomes == [Done(), Done()]


async def test_an_error_is_an_outcome_too_and_a_cancel_is_none() -> None:
    remembered = Remembered(10)
    asked = command("id-1", "inbox/replace", Replacement(agent="a", message="m", content="x"))

    async def fail() -> Done:
        raise WireError("queue_full")

    with trio.CancelScope() as scope:
        scope.cancel()
        await remembered.once("me", asked, trio.sleep_forever)
    for _ in range(2):
        with pytest.raises(WireError, match=CODES["queue_full"].message):
            await remembered.once("me", asked, fail)


async def test_who_waits_for_a_command_that_is_cancelled_carries_it_out() -> None:
    remembered, acted = Remembered(10), list[str]()
    asked = command("id-1", "agent/wake", OneAgent(agent="a"))

    async def act() -> Done:
        acted.append("acted")
        return Done()

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as lost:
            async with trio.open_nursery() as inner:
                inner.start_soon(remembered.once, "me", asked, trio.sleep_forever)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(remembered.once, "me", asked, act)
                nursery.start_soon(remembered.once, "me", asked, act)
                await trio.testing.wait_all_tasks_blocked()
                lost.cancel()
    assert acted == ["acted"]


async def test_only_the_last_commands_are_remembered() -> None:
    remembered, acted = Remembered(2), list[int]()

    async def act() -> Done:
        acted.append(1)
        return Done()

    for id in ("a", "b", "c", "a"):
        await remembered.once("me", command(id, "agent/wake", OneAgent(agent="a")), act)
    assert len(acted) == 4


async def test_what_is_under_way_is_known_whatever_has_ended_since() -> None:
    remembered, acted, going = Remembered(1), list[str](), trio.Event()

    def asked(id: str) -> Any:
        return command(id, "agent/wake", OneAgent(agent="a"))

    async def slow() -> Done:
        acted.append("slow")
        await going.wait()
        return Done()

    async def quick() -> Done:
        await trio.lowlevel.checkpoint()
        return Done()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(remembered.once, "t", asked("slow"), slow)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(3):
            await remembered.once("t", asked(f"quick {number}"), quick)
        nursery.start_soon(remembered.once, "t", asked("slow"), slow)
        await trio.testing.wait_all_tasks_blocked()
        going.set()
    assert acted == ["slow"]


async def test_a_cancel_that_is_sent_again_cancels_no_later_turn() -> None:
    async with served(ScriptedModel([Stall(), Stall()])) as there, raw(there.address) as ask:
        await ask("agents/create", 1, agent="a")
        agent = agent_of(there.runtime, "a")
        agent.followup("one")
        assert (await ask("agent/cancel", "cancel-1", agent="a"))["result"]["changed"]
        await agent.wait_idle()
        agent.followup("two")
        assert (await ask("agent/cancel", "cancel-1", agent="a"))["result"]["changed"]
        assert agent.turn is not None
        assert agent.turn.cause is None
