"""Questions by rule, and answers that are remembered with a scope (TP-11, B37)."""

from typing import Any

import pytest

from tests.agent.reading import facts
from tests.plugins.approving import NO, TOOLS, YES, Person, asking, calling, codes
from trioloop import InvalidInputError, MemoryStore
from trioloop.events import ToolDispatched, ToolResultLogged
from trioloop.hooks import Allow, Deny, Next, PrePolicy
from trioloop.messages import text_of
from trioloop.plugins import Approvals, Rule, approval
from trioloop.plugins.asking import MEMORY
from trioloop.testing import ToolCall, open_test_runtime


async def test_without_rules_everything_that_may_change_something_is_asked_about() -> None:
    approvals = Approvals()
    person = Person(approvals, YES, NO)
    model = calling(
        [ToolCall("read", name="a"), ToolCall("write", name="b"), ToolCall("delete", name="c")]
    )
    async with open_test_runtime(
        model=model, tools=TOOLS, approver=approvals, plugins=[approval]
    ) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        assert person.asked == [
            'May write run with {"name":"b"}?',
            'May delete run with {"name":"c"}?',
        ]
        assert codes(agent) == [None, None, "TOOL_DENIED"]


@pytest.mark.parametrize(
    ("rule", "meant"),
    [
        (Rule(tool="w*"), [False, True, True, False]),
        (Rule(effects={"idempotent"}), [False, False, False, True]),
        (Rule(when=lambda given: given["name"] == "b"), [False, False, True, False]),
        (Rule(tool="write", when=lambda given: given["name"] == "a"), [False, True, False, False]),
        (Rule(), [True, True, True, True]),
        (Rule(tool="nothing"), [False, False, False, False]),
    ],
)
async def test_a_rule_is_about_tools_arguments_and_effects(rule: Rule, meant: list[bool]) -> None:
    approvals = Approvals()
    Person(approvals, *([NO] * 4))
    model = calling(
        [
            ToolCall("read", name="a"),
            ToolCall("write", name="a"),
            ToolCall("write", name="b"),
            ToolCall("delete", name="a"),
        ]
    )
    async with (
        open_test_runtime(model=model, tools=TOOLS, approver=approvals) as runtime,
        approval(runtime, rule),
    ):
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        assert [code == "TOOL_DENIED" for code in codes(agent)] == meant


async def test_the_first_rule_that_matches_decides() -> None:
    rules = (
        Rule(tool="write", answer="deny", when=lambda given: given["name"] == "passwd"),
        Rule(tool="write", answer="allow"),
        Rule(answer="ask"),
    )
    approvals = Approvals()
    person = Person(approvals, YES)
    model = calling(
        [ToolCall("write", name="passwd"), ToolCall("write", name="b"), ToolCall("read", name="c")]
    )
    async with (
        open_test_runtime(model=model, tools=TOOLS, approver=approvals) as runtime,
        approval(runtime, *rules),
    ):
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        assert codes(agent) == ["TOOL_DENIED", None, None]
        assert len(person.asked) == 1


async def test_arguments_that_a_policy_changed_are_those_that_are_judged() -> None:
    approvals = Approvals()
    person = Person(approvals, YES)
    model = calling([ToolCall("write", name="a")])
    async with (
        open_test_runtime(model=model, tools=TOOLS, approver=approvals) as runtime,
        approval(runtime),
    ):

        @runtime.hooks.pre_execute
        async def rename(call: Any, next: Next[PrePolicy]) -> PrePolicy:
            return Allow({"name": "safe"})

        agent = await runtime.create_agent("a")
        await agent.ask("go")
        assert person.asked == ['May write run with {"name":"safe"}?']
        assert text_of(facts(agent, ToolResultLogged)[0].content) == "wrote safe"
        assert facts(agent, ToolDispatched)[0].arguments == '{"name":"safe"}'


async def test_what_another_policy_denies_is_not_asked_about() -> None:
    approvals = Approvals()
    person = Person(approvals)
    async with (
        open_test_runtime(
            model=calling([ToolCall("write", name="a")]), tools=TOOLS, approver=approvals
        ) as runtime,
        approval(runtime),
    ):

        @runtime.hooks.pre_execute
        async def deny(call: Any, next: Next[PrePolicy]) -> PrePolicy:
            return Deny("never")

        agent = await runtime.create_agent("a")
        await agent.ask("go")
        assert (person.asked, codes(agent)) == ([], ["TOOL_DENIED"])


async def test_a_rule_that_raises_lets_nothing_through() -> None:
    model = calling([ToolCall("write", name="a")])
    approvals = Approvals()
    async with (
        open_test_runtime(model=model, tools=TOOLS, approver=approvals) as runtime,
        approval(runtime, Rule(when=lambda given: given["missing"] == 1)),
    ):
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        assert codes(agent) == ["TOOL_DENIED"]


# Remembering


@pytest.mark.parametrize(
    ("remember", "asked"), [(None, 4), ("turn", 2), ("session", 1)], ids=["not", "turn", "session"]
)
@pytest.mark.parametrize("allow", [True, False])
async def test_an_answer_holds_as_long_as_it_is_remembered(
    remember: str | None, asked: int, allow: bool
) -> None:
    approvals = Approvals()
    person = Person(approvals, *([{"allow": allow, "remember": remember}] * 4))
    call = ToolCall("write", name="a")
    model = calling([call, call], [call, call])
    async with (
        open_test_runtime(model=model, tools=TOOLS, approver=approvals) as runtime,
        approval(runtime),
    ):
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        await agent.ask("two")
        assert len(person.asked) == asked
        assert codes(agent) == [None if allow else "TOOL_DENIED"] * 4


async def test_a_remembered_answer_is_about_equal_arguments() -> None:
    approvals = Approvals()
    person = Person(approvals, *([{"allow": True, "remember": "session"}] * 3))
    model = calling(
        [
            ToolCall("write", name="a", text="1"),
            ToolCall("write", text="1", name="a"),
            ToolCall("write", name="a", text="2"),
            ToolCall("delete", name="a"),
        ]
    )
    async with (
        open_test_runtime(model=model, tools=TOOLS, approver=approvals) as runtime,
        approval(runtime),
    ):
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        assert len(person.asked) == 3


async def test_a_rule_says_which_part_of_the_arguments_an_answer_is_about() -> None:
    approvals = Approvals()
    person = Person(approvals, *([{"allow": True, "remember": "session"}] * 2))
    model = calling(
        [
            ToolCall("write", name="a", text="1" * 1000),
            ToolCall("write", name="a", text="2"),
            ToolCall("write", name="b", text="3"),
        ]
    )
    async with (
        open_test_runtime(model=model, tools=TOOLS, approver=approvals) as runtime,
        approval(runtime, Rule(alike=lambda given: given["name"])),
    ):
        agent = await runtime.create_agent("a")
        await agent.ask("go")
        assert len(person.asked) == 2
        assert set(agent.session.folded(MEMORY).answers) == {'write "a"', 'write "b"'}


async def test_answers_are_remembered_in_the_next_life_and_by_nobody_else() -> None:
    store = MemoryStore()
    call = ToolCall("write", name="a")
    asked = []
    for names in (["a"], ["a", "b"]):
        approvals = Approvals()
        person = Person(approvals, *([{"allow": True, "remember": "session"}] * 2))
        async with open_test_runtime(
            model=calling(*([[call]] * len(names))),
            tools=TOOLS,
            store=store,
            approver=approvals,
            plugins=[approval],
        ) as runtime:
            known = [one.session for one in await runtime.stored_sessions()]
            for name in names:
                opened = runtime.resume_agent if name in known else runtime.create_agent
                await (await opened(name)).ask("go")
        asked.append(len(person.asked))
    assert asked == [1, 1]


async def test_remembered_answers_can_be_forgotten() -> None:
    approvals = Approvals()
    person = Person(approvals, *([{"allow": True, "remember": "session"}] * 2))
    call = ToolCall("write", name="a")
    async with open_test_runtime(
        model=calling([call], [call]), tools=TOOLS, approver=approvals, plugins=[approval]
    ) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        approvals.forget(agent)
        await agent.ask("two")
        assert len(person.asked) == 2


async def test_one_remembered_answer_can_be_forgotten_and_the_others_hold() -> None:
    approvals = Approvals()
    person = Person(approvals, *([{"allow": True, "remember": "session"}] * 3))
    calls = [ToolCall("write", name="a"), ToolCall("write", name="b")]
    async with open_test_runtime(
        model=calling(calls, calls), tools=TOOLS, approver=approvals, plugins=[approval]
    ) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        approvals.forget(agent, 'write {"name":"a"}')
        await agent.ask("two")
        assert ['"a"' in asked for asked in person.asked] == [True, False, True]


async def test_an_answer_without_a_subject_can_not_be_remembered() -> None:
    async with asking() as (agent, approvals, _):
        (asked,) = approvals.open
        with pytest.raises(InvalidInputError, match="remember"):
            approvals.answer(asked.asked.approval, allow=True, remember="session")
        approvals.answer(asked.asked.approval, allow=True)
        await agent.wait_idle()
        assert codes(agent) == [None]
