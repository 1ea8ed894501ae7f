"""How questions end: answered, in time or not, withdrawn, void, or asked of nobody (B76)."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import ends, facts
from tests.plugins.approving import TOOLS, YES, Person, asking, calling, codes
from trioloop import InvalidInputError, MemoryStore
from trioloop.events import ToolDispatched, ToolResultLogged
from trioloop.messages import text_of
from trioloop.plugins import Approvals, Rule, approval
from trioloop.plugins.approval import ApprovalAnswered, ApprovalRequested, UnknownApprovalError
from trioloop.testing import ToolCall, open_test_runtime


async def test_nobody_answers_in_time_which_is_a_no(autojump_clock: MockClock) -> None:
    async with asking(timeout_s=300) as (agent, approvals, _):
        await agent.wait_idle()
        assert trio.current_time() == 300
        assert codes(agent) == ["TOOL_DENIED"]
        assert "within 300 s" in text_of(facts(agent, ToolResultLogged)[0].content)
        assert [one.outcome for one in facts(agent, ApprovalAnswered)] == ["expired"]
        assert facts(agent, ApprovalRequested)[0].until == 300_000
        with pytest.raises(UnknownApprovalError):
            approvals.answer("a.call_1_1_0", allow=True)


async def test_an_answer_in_the_last_moment_is_what_the_log_says(autojump_clock: MockClock) -> None:
    """The question has expired, and whoever waits for it hasn't noticed yet."""
    async with asking(timeout_s=300) as (agent, approvals, _):
        (asked,) = approvals.open
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def answer() -> None:
                await trio.sleep(300)
                if approvals.open:
                    approvals.answer(asked.asked.approval, allow=True)

        await agent.wait_idle()
        (answered,) = facts(agent, ApprovalAnswered)
        assert codes(agent) == [None if answered.allow else "TOOL_DENIED"]


@pytest.mark.parametrize("how", ["cancel", "dispose", "call"])
async def test_a_question_is_withdrawn_with_its_call(how: str) -> None:
    async with asking() as (agent, approvals, _):
        if how == "dispose":
            await agent.dispose()
        elif how == "call":
            agent.cancel_call(approvals.open[0].asked.call)
        else:
            agent.cancel()
        await agent.wait_idle()
        assert approvals.open == ()
        assert [one.outcome for one in facts(agent, ApprovalAnswered)] == ["withdrawn"]
        assert facts(agent, ToolDispatched) == []


async def test_without_anybody_to_ask_the_answer_is_no() -> None:
    model = calling([ToolCall("write", name="a")])
    async with open_test_runtime(model=model, tools=TOOLS, plugins=[approval]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        assert codes(agent) == ["TOOL_DENIED"]
        assert "nobody is here to be asked" in text_of(facts(agent, ToolResultLogged)[0].content)


async def test_an_approver_of_another_kind_is_asked_each_time() -> None:
    class Clerk:
        asked = 0

        async def ask(self, agent: Any, call: Any, question: str) -> bool | str:
            self.asked += 1
            return self.asked == 1 or "once is enough"

    clerk = Clerk()
    call = ToolCall("write", name="a")
    async with open_test_runtime(
        model=calling([call, call]), tools=TOOLS, approver=clerk, plugins=[approval]
    ) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        assert codes(agent) == [None, "TOOL_DENIED"]
        assert "once is enough" in text_of(facts(agent, ToolResultLogged)[1].content)


async def test_what_a_crash_left_open_is_void_once_its_session_goes_on() -> None:
    store = MemoryStore()
    async with open_test_runtime(model=calling(), store=store) as runtime:
        agent = await runtime.create_agent("a")
        left = ApprovalRequested("a.call_9_9_9", "call_9_9_9", "May it?")  # type: ignore[arg-type]
        agent.session.append(left)
    approvals = Approvals()
    Person(approvals, YES)
    async with open_test_runtime(
        model=calling([ToolCall("write", name="a")]),
        tools=TOOLS,
        store=store,
        approver=approvals,
        plugins=[approval],
    ) as runtime:
        agent = await runtime.resume_agent("a")
        assert [one.outcome for one in facts(agent, ApprovalAnswered)] == ["void"]
        await agent.ask("go")
        assert [end.reason for end in ends(agent)] == ["completed"]
        assert [one.outcome for one in facts(agent, ApprovalAnswered)] == ["void", "answered"]


async def test_rules_may_be_those_of_one_agent() -> None:
    approvals = Approvals()
    person = Person(approvals, YES)
    call = ToolCall("write", name="a")
    async with open_test_runtime(
        model=calling([call], [call]), tools=TOOLS, approver=approvals
    ) as runtime:
        agent, other = await runtime.create_agent("a"), await runtime.create_agent("b")
        async with approval(agent, approvals=approvals):
            await agent.ask("go")
            await other.ask("go")
    assert len(person.asked) == 1


@pytest.mark.parametrize("effects", ["once", ("read_only",), ("once", "")])
def test_a_rule_about_effects_that_there_are_not_is_refused(effects: Any) -> None:
    with pytest.raises(InvalidInputError, match="effects must be some of read-only, idempotent"):
        Rule(effects=effects)


def test_a_rule_has_one_of_three_answers() -> None:
    with pytest.raises(InvalidInputError, match="perhaps"):
        Rule(answer="perhaps")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="timeout_s"):
        Approvals(timeout_s=0)
