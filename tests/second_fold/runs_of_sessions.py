"""Runs that change the inbox, and sessions that are forked, left, cut short and resumed."""

import os

import trio

from tests.second_fold.recording import Recording, Run
from tests.second_fold.runs_of_calls import TOOLS
from trioloop import MemoryStore, user_message
from trioloop.codec import chain_crc, encode_event
from trioloop.events import Event
from trioloop.ids import session_id
from trioloop.plugins.retry import retry
from trioloop.ports import Append, Owner, StoredRow
from trioloop.testing import Fail, Stall, Text, ToolCall, Wait


async def changed_inbox(recording: Recording) -> None:
    """Pending messages of both lists are removed, replaced, cleared and restored."""
    script = [Text("a"), Stall(), [Wait(1), Text("b")], Text("c")]
    async with recording.runtime(script) as runtime:
        agent = await runtime.create_agent("inbox")
        sent = [agent.send(f"turn {n}", target="next-turn", wakeup=False) for n in range(4)]
        sent += [agent.inject(f"step {n}") for n in range(3)]
        for id in (sent[1], sent[5]):
            agent.inbox.remove(id)
        agent.inbox.replace(sent[2], "the same message, other words")
        agent.inbox.replace(sent[6], user_message("another", id="another"))
        agent.wake()
        await trio.sleep(1)
        agent.steer("steer")
        agent.cancel()
        await agent.wait_idle()
        agent.followup("woken")
        await trio.sleep(0.5)
        agent.inject("joins")
        agent.inbox.remove(agent.steer("doesn't"))
        await agent.wait_idle()
        agent.inject("left")
        agent.send("left too", wakeup=False)
        agent.inbox.clear()
        agent.inject("pending at the end")


async def cancelled_asks(recording: Recording) -> None:
    """Askers are cancelled, before and after their turn has opened."""
    async with recording.runtime([Stall(), Stall(), Text("a")]) as runtime:
        agent = await runtime.create_agent("asks")
        agent.followup("first")
        with trio.move_on_after(1):
            await agent.ask("never claimed")
        agent.cancel()
        await agent.wait_idle()
        with trio.move_on_after(1):
            await agent.ask("its turn is cancelled")
        agent.cancel()
        await agent.ask("answered")


async def forks(recording: Recording) -> None:
    """A live session is forked at several places, and a fork is forked; each goes on."""
    script = [
        Text("a"),
        [ToolCall("look")],
        Fail("SERVER"),
        Text("b"),
        [Text("c"), Stall()],
        *[Text("d"), [ToolCall("look")], Text("e")] * 9,
    ]
    async with recording.runtime(script, tools=TOOLS, system="s", plugins=[retry]) as runtime:
        parent = await runtime.create_agent("parent")
        await parent.ask("one")
        await parent.ask("two")
        parent.followup("three")
        await trio.sleep(1)
        parent.inject("not inherited")
        parent.followup("nor this")
        ends = [one.seq for one in parent.session.events() if one.type == "turn/end"]
        for number, at_seq in enumerate([None, 0, ends[0], ends[1] + 1]):
            child = await runtime.fork_agent("parent", f"child-{number}", at_seq=at_seq)
            await child.ask("on")
        parent.cancel()
        await parent.wait_idle()
        child = await runtime.fork_agent("parent", "child-of-all")
        await child.ask("on")
        child.inject("pending")
        grandchild = await runtime.fork_agent("child-of-all", "grandchild")
        await grandchild.ask("on")
        await parent.ask("and here?")


async def resumed(recording: Recording) -> None:
    """A session is left in the middle of a turn, twice, and resumed with other settings."""
    store = MemoryStore()
    async with recording.runtime([Text("a"), Stall()], store=store, system="s1") as runtime:
        agent = await runtime.create_agent("resumed")
        await agent.ask("one")
        agent.followup("two")
        await trio.sleep(1)
        agent.inject("kept")
    async with recording.runtime([[Text("b"), Stall()]], store=store, system="s2") as runtime:
        agent = await runtime.resume_agent("resumed")
        agent.followup("three")
        await trio.sleep(1)
    async with recording.runtime([Text("c")], store=store, tools=TOOLS) as runtime:
        await (await runtime.resume_agent("resumed")).ask("four")


async def cut_short(recording: Recording) -> None:
    """A log is cut after each of its events, repaired by a writer, and gone on with."""
    whole = Recording()
    script = [
        [ToolCall("look"), ToolCall("write", text="x"), ToolCall("look")],
        Fail("SERVER"),
        [Text("a")],
        [Text("b"), Stall()],
    ]
    async with whole.runtime(script, tools=TOOLS, system="s", plugins=[retry]) as runtime:
        agent = await runtime.create_agent("whole")
        agent.inject("context")
        agent.followup("one")
        await trio.sleep(0.5)
        agent.steer("steer")
        agent.followup("two")
        await trio.sleep(30)
        agent.cancel()
    events = whole.logs["whole"]
    for count in range(1, len(events) + 1):
        await _resume_prefix(recording, events[:count], whole.received["whole"])


async def _resume_prefix(recording: Recording, events: list[Event], received: list[bytes]) -> None:
    name = f"cut-{len(events):02}"
    store = await _stored(name, events)
    sent = [one for one in events if getattr(one.data, "sent", one.type == "assistant/message")]
    old, new = b'"session":"whole"', f'"session":"{name}"'.encode()
    recording.received[name] += [line.replace(old, new) for line in received[: len(sent)]]
    async with recording.runtime([Text("on")] * 4, store=store, tools=TOOLS, system="s") as runtime:
        agent = await runtime.resume_agent(name)
        for turn in range(agent.session.state.turns):
            agent.inbox.restore(turn + 1)
        await agent.ask("and now?")
        await agent.wait_idle()


async def _stored(name: str, events: list[Event]) -> MemoryStore:
    """A store that holds a log under another name, as its writer left it when it died."""
    store = MemoryStore()
    lease = await store.open(session_id(name), Owner(os.getpid(), "here"), create=True)
    rows: list[StoredRow] = []
    for event in events:
        payload = encode_event(event).replace(b'"session":"whole"', f'"session":"{name}"'.encode())
        crc = chain_crc(rows[-1].crc if rows else 0, payload)
        rows.append(StoredRow(event.seq, payload, crc))
    await store.commit([Append(lease, 0, "all", tuple(rows))])
    await store.release(lease)
    return store


RUNS: tuple[Run, ...] = (changed_inbox, cancelled_asks, forks, resumed, cut_short)
