"""Questions over the endpoint: several see one, one answers, none is lost (B76)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.control.raw_client import raw
from tests.control.serving import agent_of, controlled, served
from trioloop import CallId, Event, tool
from trioloop.control import Control, WireError, connect
from trioloop.control.results import Approval
from trioloop.events import ToolResultLogged
from trioloop.hooks import Ask, CallRequest, Hooks, Next, PrePolicy
from trioloop.plugins import Approvals, Rule, approval
from trioloop.plugins.approval import ApprovalAnswered, ApprovalRequested, ApprovalsForgotten
from trioloop.session import Session
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime


@tool(effects="once")
async def launch(what: str) -> str:
    """Launch something.

    Args:
        what: it is.
    """
    return f"launched {what}"


def asking(hooks: Hooks) -> None:
    """Ask about every call."""

    @hooks.pre_execute
    async def ask(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        return Ask(f"May {request.name} run?")


def model() -> ScriptedModel:
    return ScriptedModel([[ToolCall("launch", what="it")], Text("done")] * 3)


def results(session: Session) -> Sequence[ToolResultLogged]:
    return [one.data for one in session.events() if isinstance(one.data, ToolResultLogged)]


def is_answer(one: Event) -> bool:
    return isinstance(one.data, ApprovalAnswered)


def is_forgotten(one: Event) -> bool:
    return isinstance(one.data, ApprovalsForgotten)


async def questions(control: Control) -> tuple[Approval, ...]:
    """The open questions, once there is one."""
    while True:
        found = await control.approvals()
        if found:
            return found


async def test_two_clients_see_a_question_one_answers_and_a_third_connects_later() -> None:
    async with served(model(), tools=[launch], hooks=[asking]) as there:
        agent = await there.runtime.create_agent("a")
        agent.followup("go")
        async with connect(there.address) as first, connect(there.address) as second:
            seen = await questions(first)
            assert await second.approvals() == seen
            (asked,) = seen
            assert (asked.agent, asked.tool, asked.question) == ("a", "launch", "May launch run?")
            assert asked.arguments == {"what": "it"}
            assert (await second.answer(asked.approval, allow=True)).allow
            assert (await second.answer(asked.approval, allow=True)).allow
            with pytest.raises(WireError, match="already_decided"):
                await first.answer(asked.approval, allow=False)
        await agent.wait_idle()
        async with connect(there.address) as third:
            assert await third.approvals() == ()
            with pytest.raises(WireError, match="already_decided"):
                await third.answer(asked.approval, allow=False)
        assert [one.code for one in results(agent.session)] == [None]


async def test_a_question_outlives_who_saw_it_and_a_refusal_tells_the_model_why() -> None:
    async with served(model(), tools=[launch], hooks=[asking]) as there:
        agent = await there.runtime.create_agent("a")
        agent.followup("go")
        async with connect(there.address) as gone:
            await questions(gone)
        async with connect(there.address) as later:
            (asked,) = await later.approvals()
            await later.answer(asked.approval, allow=False, reason="not on a Sunday")
        await agent.wait_idle()
        (result,) = results(agent.session)
        assert result.code == "TOOL_DENIED"
        assert "not on a Sunday" in str(result.content)


async def test_an_answer_is_known_after_a_restart_and_what_was_open_is_withdrawn(
    tmp_path: Path,
) -> None:
    store = tmp_path / "agents.db"
    options = {"store": store, "tools": [launch], "hooks": [asking]}
    async with controlled(model(), **options) as (control, runtime):
        await control.create("a")
        await control.followup("a", "go")
        seen = await questions(control)
        await control.answer(seen[0].approval, allow=True)
        await agent_of(runtime, "a").wait_idle()
        await control.followup("a", "again")
        left = await questions(control)
    async with controlled(model(), **options) as (control, runtime):
        assert (await control.answer(seen[0].approval, allow=True)).allow
        with pytest.raises(WireError) as caught:
            await control.answer(left[0].approval, allow=True)
        assert caught.value.code == "already_decided"
        assert caught.value.facts["outcome"] == "withdrawn"
        with pytest.raises(WireError, match="not_found"):
            await control.answer("a.call_9_9_9", allow=True)
        assert await control.approvals() == ()


async def test_a_question_that_a_crash_left_open_is_void(tmp_path: Path) -> None:
    store = tmp_path / "agents.db"
    async with controlled(store=store) as (control, runtime):
        await control.create("a")
        asked = ApprovalRequested("a.call_1_1_0", CallId("call_1_1_0"), "May launch run?")
        agent_of(runtime, "a").session.append(asked)
    async with controlled(store=store) as (control, runtime):
        with pytest.raises(WireError) as caught:
            await control.answer(asked.approval, allow=True)
        assert (caught.value.code, caught.value.facts["outcome"]) == ("already_decided", "void")
        await control.resume("a")
        answers = [one for one in agent_of(runtime, "a").session.events() if is_answer(one)]
        assert len(answers) == 1, "it is closed once"


async def test_an_answer_may_be_let_hold_for_the_session_and_is_told_so_to_everybody() -> None:
    rules = [lambda runtime: approval(runtime, Rule(tool="launch"))]
    async with served(model(), tools=[launch], plugins=rules, approver=Approvals()) as there:
        agent = await there.runtime.create_agent("a")
        agent.followup("go")
        async with connect(there.address) as control:
            (asked,) = await questions(control)
            assert asked.about == 'launch {"what":"it"}'
            given = await control.answer(asked.approval, allow=True, remember="session")
            assert (given.allow, given.remember) == (True, "session")
            assert await control.answer(asked.approval, allow=True, remember="session") == given
            with pytest.raises(WireError, match="already_decided"):
                await control.answer(asked.approval, allow=True)
            agent.followup("again")
            agent.followup("and again")
            await agent.wait_idle()
            assert await control.approvals() == ()
        assert [one.code for one in results(agent.session)] == [None] * 3
        assert sum(map(is_answer, agent.session.events())) == 1


async def test_an_answer_for_the_turn_is_asked_for_anew_in_the_next() -> None:
    rules = [lambda runtime: approval(runtime, Rule(tool="launch"))]
    async with served(model(), tools=[launch], plugins=rules, approver=Approvals()) as there:
        agent = await there.runtime.create_agent("a")
        async with connect(there.address) as control:
            for _ in range(2):
                agent.followup("go")
                (asked,) = await questions(control)
                await control.answer(asked.approval, allow=False, remember="turn")
                await agent.wait_idle()
        assert [one.code for one in results(agent.session)] == ["TOOL_DENIED"] * 2


async def test_an_answer_that_holds_is_taken_back_by_whoever_may_answer() -> None:
    rules = [lambda runtime: approval(runtime, Rule(tool="launch"))]
    async with served(model(), tools=[launch], plugins=rules, approver=Approvals()) as there:
        agent = await there.runtime.create_agent("a")
        async with connect(there.address) as control:
            assert not await control.forget("a"), "there is nothing to forget"
            agent.followup("go")
            (asked,) = await questions(control)
            assert not await control.forget("a"), "nor while the question waits"
            await control.answer(asked.approval, allow=True, remember="session")
            await agent.wait_idle()
            assert not await control.forget("a", about="launch something else")
            assert not any(map(is_forgotten, agent.session.events()))
            assert await control.forget("a", about=asked.about)
            assert not await control.forget("a")
            agent.followup("again")
            (asked_again,) = await questions(control)
            await control.answer(asked_again.approval, allow=False, remember="session")
            await agent.wait_idle()
        async with connect(there.address) as another:
            assert await another.forget("a")
        assert [one.code for one in results(agent.session)] == [None, "TOOL_DENIED"]


async def test_what_is_taken_back_stays_so_after_a_restart(tmp_path: Path) -> None:
    rules = [lambda runtime: approval(runtime, Rule(tool="launch"))]
    options = {
        "store": tmp_path / "agents.db",
        "tools": [launch],
        "plugins": rules,
        "approver": Approvals(),
    }
    async with controlled(model(), **options) as (control, runtime):
        await control.create("a")
        await control.followup("a", "go")
        (asked,) = await questions(control)
        await control.answer(asked.approval, allow=True, remember="session")
        await agent_of(runtime, "a").wait_idle()
    async with controlled(model(), **options) as (control, runtime):
        assert await control.forget("a"), "of a stored session, too"
    async with controlled(model(), **options) as (control, runtime):
        await control.followup("a", "again")
        (asked,) = await questions(control)
        await control.answer(asked.approval, allow=False)
        await agent_of(runtime, "a").wait_idle()
        assert not await control.forget("a")


async def test_a_repeated_forgetting_leaves_alone_what_was_answered_since() -> None:
    rules = [lambda runtime: approval(runtime, Rule(tool="launch"))]
    async with served(model(), tools=[launch], plugins=rules, approver=Approvals()) as there:
        agent = await there.runtime.create_agent("a")
        async with connect(there.address) as control, raw(there.address) as ask:
            forget = partial(ask, "approval/forget", "the same id", agent="a")
            for turn in ("go", "again"):
                agent.followup(turn)
                (asked,) = await questions(control)
                await control.answer(asked.approval, allow=True, remember="session")
                await agent.wait_idle()
                assert (await forget())["result"] == {"changed": True}
            agent.followup("and again")
            await agent.wait_idle()
            assert await control.approvals() == (), "the second answer holds"


async def test_a_token_that_may_only_read_takes_nothing_back() -> None:
    async with served(model(), tools=[launch], hooks=[asking]) as there:
        await there.runtime.create_agent("a")
        async with raw(
            there.endpoint.address(there.endpoint.tokens.issue("reader", "read"))
        ) as ask:
            told = await ask("approval/forget", 1, agent="a")
            assert told["error"]["data"]["code"] == "forbidden"
        async with connect(there.address) as control:
            with pytest.raises(WireError, match="not_found"):
                await control.forget("nobody")


async def test_two_questions_about_one_call_are_not_answered_by_one_answer_that_is_repeated() -> (
    None
):
    approvals = Approvals()
    rules = [
        lambda runtime: approval(runtime, Rule(tool="launch", question="May it?")),
        lambda runtime: approval(runtime, Rule(question="Really?")),
    ]
    async with served(model(), tools=[launch], plugins=rules, approver=approvals) as there:
        agent = await there.runtime.create_agent("a")
        agent.followup("go")
        async with connect(there.address) as control:
            (first,) = await questions(control)
            await control.answer(first.approval, allow=True)
            (second,) = await questions(control)
            assert (await control.answer(first.approval, allow=True)).approval == first.approval
            assert await control.approvals() == (second,)
            assert {first.question, second.question} == {"May it?", "Really?"}
            await control.answer(second.approval, allow=False)
        await agent.wait_idle()
        assert [one.code for one in results(agent.session)] == ["TOOL_DENIED"]


async def test_an_answer_that_can_not_be_remembered_is_refused_and_leaves_the_question_open() -> (
    None
):
    async with served(model(), tools=[launch], hooks=[asking]) as there:
        agent = await there.runtime.create_agent("a")
        agent.followup("go")
        async with connect(there.address) as control:
            (asked,) = await questions(control)
            assert asked.about == ""
            with pytest.raises(WireError) as caught:
                await control.answer(asked.approval, allow=True, remember="turn")
            assert (caught.value.code, caught.value.field) == ("invalid_params", "remember")
            assert await control.approvals() == (asked,)
            await control.answer(asked.approval, allow=True)
        await agent.wait_idle()


async def test_a_question_that_nobody_answers_is_a_no_in_the_end(autojump_clock: MockClock) -> None:
    options = {"tools": [launch], "hooks": [asking], "approver": Approvals(timeout_s=300)}
    async with open_test_runtime(model=model(), **options) as runtime:  # type: ignore[arg-type]
        agent = await runtime.create_agent("a")
        began = trio.current_time()
        await agent.ask("go")
        assert trio.current_time() - began == 300
        (result,) = results(agent.session)
        assert result.code == "TOOL_DENIED"
        assert "nobody answered within 300 s" in str(result.content)


async def test_an_answer_in_the_last_moment_counts_or_it_is_refused(
    autojump_clock: MockClock,
) -> None:
    for _ in range(20):  # what comes first in one moment is left to chance
        said, result = await answered_in_the_last_moment()
        assert said.allow == (result.code is None)


async def answered_in_the_last_moment() -> tuple[ApprovalAnswered, ToolResultLogged]:
    """How the log says that a question ended, and the result of its call."""
    approvals = Approvals(timeout_s=300)
    async with (
        open_test_runtime(
            model=model(), tools=[launch], hooks=[asking], approver=approvals
        ) as runtime,
        trio.open_nursery() as nursery,
    ):
        agent = await runtime.create_agent("a")

        async def answer() -> None:
            await trio.sleep(300)
            for waiting in approvals.open:
                approvals.answer(waiting.asked.approval, allow=True)

        approvals.observe(lambda: nursery.start_soon(answer) if approvals.open else None)
        await agent.ask("go")
        nursery.cancel_scope.cancel()
    said = [one.data for one in agent.session.events() if isinstance(one.data, ApprovalAnswered)]
    (result,) = results(agent.session)
    return said[-1], result


async def test_a_question_is_withdrawn_with_its_call(autojump_clock: MockClock) -> None:
    approvals = Approvals(timeout_s=None)
    async with open_test_runtime(
        model=model(), tools=[launch], hooks=[asking], approver=approvals
    ) as runtime:
        agent = await runtime.create_agent("a")
        asked = trio.Event()
        approvals.observe(asked.set)
        agent.followup("go")
        await asked.wait()
        agent.cancel()
        await agent.wait_idle()
        assert approvals.open == ()
        last = [one.data for one in agent.session.events() if one.type == "approval/answer"]
        assert getattr(last[-1], "outcome", "") == "withdrawn"
