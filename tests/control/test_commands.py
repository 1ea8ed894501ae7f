"""What each method does, asked through the client (control.md, Protocol)."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.control.serving import agent_of, controlled, read_log, served, types
from trioloop import tool
from trioloop.control import Control, Tokens, WireError, connect, serve
from trioloop.control.connection import EndpointRefusedError
from trioloop.control.limits import ControlLimits
from trioloop.messages import TextBlock
from trioloop.testing import ScriptedModel, Stall, Text, ToolCall, open_test_runtime


async def refused(asking: Any) -> WireError:
    """The error that a method answers with."""
    with pytest.raises(WireError) as caught:
        await asking
    return caught.value


async def test_a_message_is_answered_when_it_is_durable_with_the_turn_that_takes_it() -> None:
    async with controlled(ScriptedModel([Stall(), Text("two")])) as (control, _):
        await control.create("a")
        first = await control.followup("a", "one")
        assert (first.status, first.turn) in (("claimed", 1), ("admitted", 1))
        waiting = await control.followup("a", "two")
        assert (waiting.status, waiting.turn) == ("pending", 1)
        assert (await control.status("a")).durable_seq >= waiting.seq


async def test_an_idle_agent_is_made_watched_steered_and_disposed_of() -> None:
    async with controlled() as (control, runtime):
        made = await control.create("a")
        assert (made.status, made.seq, made.pending) == ("idle", 0, 0)
        await control.inject("a", "later")
        inbox = await control.inbox("a")
        assert [one.message.content for one in inbox.next_step] == [(TextBlock("later"),)]
        assert await control.wake("a")
        events = await read_log(control, "a", upto=10)
        assert types(events)[-1] == "turn/end"
        assert await control.dispose("a")
        assert not await control.dispose("a")
        assert "a" not in runtime.agents


async def test_the_inbox_is_listed_replaced_and_emptied() -> None:
    async with controlled() as (control, _):
        await control.create("a")
        sent = await control.inject("a", "first words")
        assert await control.replace("a", sent.message, "other words")
        assert await control.remove("a", sent.message)
        assert not await control.remove("a", sent.message)
        assert (await control.explain("a", sent.message)).status == "discarded"
        assert (await control.inbox("a")).next_step == ()


async def test_a_turn_is_cancelled_and_only_the_one_that_is_meant() -> None:
    async with controlled(ScriptedModel([Stall(), Text("done")])) as (control, runtime):
        await control.create("a")
        await control.followup("a", "one")
        assert not await control.cancel("a", turn=7)
        assert await control.cancel("a", turn=1, cause="tests")
        await agent_of(runtime, "a").wait_idle()
        end = agent_of(runtime, "a").session.state.last_turn
        assert end is not None
        assert (end.reason, end.cause) == ("aborted", "tests")
        assert not await control.cancel("a", turn=1)


async def test_one_call_is_cancelled_while_another_goes_on() -> None:
    started, go_on = trio.Event(), trio.Event()

    @tool(effects="read-only")
    async def waiting(which: str) -> str:
        """Waiting.

        Args:
            which: of them.
        """
        if which == "first":
            await trio.sleep_forever()
        started.set()
        await go_on.wait()
        return which

    calls = [ToolCall("waiting", which="first"), ToolCall("waiting", which="second")]
    async with controlled(ScriptedModel([calls, Text("ok")]), tools=[waiting]) as (control, _):
        await control.create("a")
        await control.followup("a", "go")
        await started.wait()
        bodies = (await control.status("a")).bodies
        assert [(body.call, body.mode, body.ended) for body in bodies] == [
            ("call_1_1_0", "concurrent", None),
            ("call_1_1_1", "concurrent", None),
        ]
        assert await control.cancel_call("a", "call_1_1_0")
        go_on.set()
        events = await read_log(control, "a", upto=13)
        codes = [getattr(one.data, "code", "") for one in events if one.type == "tool/result"]
        assert codes == ["TOOL_CANCELLED", None]
        assert not await control.cancel_call("a", "call_1_1_0")


async def test_a_fork_begins_where_its_parent_was() -> None:
    async with controlled() as (control, runtime):
        await control.create("a")
        await control.followup("a", "one")
        await agent_of(runtime, "a").wait_idle()
        forked = await control.fork("a", "b")
        assert forked.agent == "b"
        assert (await control.fork("a", "b")).opened == forked.opened
        open_turn = await refused(control.fork("a", "c", at_seq=5))
        assert open_turn.code == "open_turn"
        assert open_turn.facts["nearest"] == 1
        assert (await refused(control.fork("a", "d", at_seq=999))).field == "$.at_seq"


@pytest.mark.parametrize("stored", [False, True])
async def test_several_clients_that_open_an_agent_at_once_all_have_it(
    tmp_path: Path, stored: bool
) -> None:
    store = tmp_path / "agents.db"
    if stored:
        async with controlled(store=store) as (control, _):
            await control.create("a")
    async with served(store=store) as there, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect(there.address)) for _ in range(4)]
        opened = list[str]()

        async def open_it(control: Control) -> None:
            made = await (control.resume("a") if stored else control.create("a"))
            opened.append(made.agent)

        async with trio.open_nursery() as nursery:
            for control in clients:
                nursery.start_soon(open_it, control)
        assert opened == ["a"] * 4
        assert len(there.runtime.agents) == 1


async def test_lists_come_in_pages_and_name_stored_sessions() -> None:
    async with controlled() as (control, _):
        for name in ("a", "b", "c"):
            await control.create(name)
        await control.dispose("b")
        first = await control.agents(limit=2)
        assert [(one.agent, one.status) for one in first.agents] == [("a", "idle"), ("b", "stored")]
        assert first.more
        rest = await control.agents(after="b")
        assert [one.agent for one in rest.agents] == ["c"]
        assert not rest.more
        assert (await control.resume("b")).status == "idle"


@pytest.mark.parametrize(
    "name",
    ["absent", "../x", "a\0", "a\n", "\uff11\uff12", "a" * 300, "", "A", "a/b", "\u202e"],
)
async def test_a_name_that_nobody_has_and_one_that_nobody_may_have_look_the_same(
    name: str,
) -> None:
    async with controlled() as (control, _):
        for asking in (
            control.status(name),
            control.resume(name),
            control.followup(name, "x"),
            control.events(name),
            control.dispose(name),
            control.fork(name, "b"),
        ):
            error = await refused(asking)
            assert (error.code, error.field) == ("not_found", None)


async def test_a_new_name_has_the_form_that_names_have() -> None:
    async with controlled() as (control, _):
        error = await refused(control.create("../x"))
        assert (error.code, error.field) == ("invalid_params", "$.agent")


async def test_pages_of_events_are_the_log_and_large_events_come_in_parts() -> None:
    limits = ControlLimits(
        frame_bytes_max=2_000, page_bytes_max=4_000, message_bytes_max=100_000,
        messages_burst_max=10_000,
    )  # fmt: skip
    words = "long words ü " * 1_000
    async with controlled(limits=limits) as (control, runtime):
        await control.create("a")
        await control.followup("a", words)
        await agent_of(runtime, "a").wait_idle()
        log = list(agent_of(runtime, "a").session.events())
        assert await read_log(control, "a", upto=10) == log
        seen = 0
        after = -1
        while True:
            page = await control.events("a", after=after, limit=4)
            seen += len(page.events)
            after += len(page.events)
            if not page.more:
                break
        assert seen == len(log)


async def test_scopes_come_from_the_token_and_not_from_the_client() -> None:
    async with served() as there:
        reader = there.endpoint.tokens.issue("reader", "read")
        url = there.endpoint.address(reader)
        async with connect(there.address) as owner, connect(url) as control:
            await owner.create("a")
            assert (await control.info()).scopes == ("read",)
            assert (await control.status("a")).status == "idle"
            for asking in (
                control.create("b"),
                control.followup("a", "x"),
                control.cancel("a"),
                control.dispose("a"),
            ):
                assert (await refused(asking)).code == "forbidden"


async def test_a_token_that_is_revoked_closes_its_connections_at_once() -> None:
    async with served() as there:
        token = there.endpoint.tokens.issue("guest", "control")
        async with (
            connect(there.address) as owner,
            connect(there.endpoint.address(token), patience_s=1) as guest,
        ):
            await guest.create("a")
            there.endpoint.tokens.revoke("guest")
            with pytest.raises(EndpointRefusedError, match="401"):
                await guest.status("a")
            assert (await owner.status("a")).status == "idle"


async def test_a_token_of_two_endpoints_ends_at_both() -> None:
    tokens = Tokens()
    guest = tokens.issue("guest", "control")
    async with (
        open_test_runtime(model=ScriptedModel([])) as runtime,
        serve(runtime, tokens=tokens) as one,
        serve(runtime, tokens=tokens) as other,
        connect(one.address(guest)) as first,
        connect(other.address(guest)) as second,
    ):
        await first.create("a")
        await second.create("a")
        tokens.revoke("guest")
        for control in (first, second):
            with pytest.raises(EndpointRefusedError, match="401"):
                await control.status("a")
