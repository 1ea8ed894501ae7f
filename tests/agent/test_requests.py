"""Which facts a request is made of, and when they are logged again (E1, E2)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import facts, heads, reasons, said, types
from trioloop.events import (
    CallConfig,
    RequestContextLogged,
    RequestHeaderLogged,
    SystemMessageLogged,
    UserMessageLogged,
)
from trioloop.handles import AgentHandle
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import Assembly, Decision, Enter, PreStep, RequestProposal, SectionText
from trioloop.messages import user_message
from trioloop.ports import Capabilities, PreparedCall
from trioloop.prompt import Section
from trioloop.store import MemoryStore
from trioloop.testing import ScriptedModel, Text, ToolCall, open_test_runtime
from trioloop.tools.registry import ToolConditionContext
from trioloop.tools.tool import tool


@tool(effects="read-only")
async def look() -> str:
    """Look around."""
    return "seen"


class Words:
    """A section whose text may change."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __call__(self, agent: AgentHandle) -> str | None:
        """The text as it reads now."""
        return self.text


def whys(agent: object) -> list[str]:
    """Why each header of an agent was logged."""
    return [one.why for one in facts(agent, RequestHeaderLogged)]  # type: ignore[arg-type]


# Headers


async def test_a_header_is_logged_first_and_then_only_with_a_reason(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    model = ScriptedModel(lambda _: Text("x"))
    async with open_test_runtime(model=model, store=store) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        await agent.ask("two")
        assert whys(agent) == ["initial"]
        await agent.dispose()
        again = await runtime.resume_agent("a")
        await again.ask("three")
        await again.ask("four")
        assert whys(again) == ["initial", "resume"]


async def test_a_change_of_tools_logs_a_header(autojump_clock: MockClock) -> None:
    async with open_test_runtime(model=ScriptedModel(lambda _: Text("x"))) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        with agent.tools.register(look):
            await agent.ask("two")
            await agent.ask("three")
        await agent.ask("four")
        headers = facts(agent, RequestHeaderLogged)
        assert [one.why for one in headers] == ["initial", "change", "change"]
        assert [[tool.name for tool in one.tools] for one in headers] == [[], ["look"], []]


async def test_a_listener_of_the_request_may_choose_another_model(
    autojump_clock: MockClock,
) -> None:
    async def small(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        config = await next()
        return CallConfig(provider="other", model="small") if proposal.turn == 2 else config

    main = ScriptedModel(lambda _: Text("main"), capabilities=Capabilities(context_window=100))
    other = ScriptedModel(lambda _: Text("small"), provider="other", name="small")
    async with open_test_runtime(model=main, models=[other]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request.add(small)
        texts = [(await agent.ask(text)).text for text in ("one", "two", "three")]
        assert texts == ["main", "small", "main"]
        assert whys(agent) == ["initial", "change", "change"]
        assert facts(agent, RequestContextLogged) == [
            RequestContextLogged("scripted", "scripted", 100),
            RequestContextLogged("other", "small", None),
            RequestContextLogged("scripted", "scripted", 100),
        ]
        assert other.requests[0].config.model == "small"


async def test_the_context_is_logged_once_while_it_is_the_same(autojump_clock: MockClock) -> None:
    model = ScriptedModel([ToolCall("look"), Text("x"), Text("y")])
    async with open_test_runtime(model=model, tools=[look]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        await agent.ask("two")
        assert len(facts(agent, RequestContextLogged)) == 1


async def test_settings_of_an_agent_seed_its_requests(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Text("x")])
    config = CallConfig(provider="scripted", model="scripted", max_tokens=7)
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a", config=config)
        await agent.ask("one")
        assert model.requests[0].config.max_tokens == 7


async def test_an_agent_without_a_model_says_how_to_give_one(autojump_clock: MockClock) -> None:
    async with open_test_runtime() as runtime:
        agent = await runtime.create_agent("a")
        settled = await agent.ask("one")
        assert (settled.reason, settled.code) == ("error", "NO_MODEL")
        assert settled.message is not None
        assert "open_runtime(model=" in settled.message
        assert "agent.request" in settled.message
        assert types(agent) == ["turn/start", "turn/end"]


async def test_a_model_may_come_from_a_listener_alone(autojump_clock: MockClock) -> None:
    async def choose(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        await next()
        return CallConfig(provider="scripted", model="scripted")

    async with open_test_runtime(models=[ScriptedModel([Text("hi")])]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request.add(choose)
        assert (await agent.ask("one")).text == "hi"


async def test_a_provider_that_nobody_registered_is_named(autojump_clock: MockClock) -> None:
    config = CallConfig(provider="nowhere", model="x")
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a", config=config)
        settled = await agent.ask("one")
        assert settled.reason == "error"
        assert settled.message is not None
        assert "nowhere" in settled.message


@pytest.mark.parametrize("wrong", ["no next", "no config"])
async def test_a_request_listener_must_pass_on_a_config(
    wrong: str, autojump_clock: MockClock
) -> None:
    async def listener(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        if wrong == "no next":
            return CallConfig(provider="scripted", model="scripted")
        await next()
        return None  # type: ignore[return-value]

    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request.add(listener)
        assert (await agent.ask("one")).code == "HOOK_MISUSE"
        assert types(agent) == ["turn/start", "turn/end"]


async def test_what_a_listener_does_to_a_configs_extras_stays_its_own(
    autojump_clock: MockClock,
) -> None:
    async def mutate(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        config = await next()
        config.extra["seen"] = True
        return config

    config = CallConfig(provider="scripted", model="scripted", extra={"seed": 1})
    model = ScriptedModel(lambda _: Text("x"))
    async with open_test_runtime(model=model, config=config) as runtime:
        agent, other = await runtime.create_agent("a"), await runtime.create_agent("b")
        with agent.hooks.request.add(mutate):
            await agent.ask("one")
        await other.ask("one")
        assert model.requests[1].config.extra == {"seed": 1}
    assert config.extra == {"seed": 1}


async def test_a_model_is_resolved_behind_all_listeners_and_its_prepared_config_is_logged(
    autojump_clock: MockClock,
) -> None:
    class Rounding(ScriptedModel):
        async def prepare(self, config: CallConfig) -> PreparedCall:  # type: ignore[override]
            return await super().prepare(
                CallConfig(provider=config.provider, model=config.model, max_tokens=100)
            )

    async with open_test_runtime(model=Rounding([Text("x")])) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        assert facts(agent, RequestHeaderLogged)[0].config.max_tokens == 100


# System prompts


async def test_an_unchanged_prompt_is_logged_once(autojump_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: Text("x"))
    sections = [Section("b", "second"), Section("a", "first", order=-1), Section("c", "third")]
    async with open_test_runtime(model=model, system=sections) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        await agent.ask("two")
        assert heads(model.requests[1]) == ["first", "second", "third"]
        assert [one.node for one in facts(agent, SystemMessageLogged)] == ["a", "b", "c"]


async def test_a_changed_section_replaces_its_head_and_starts_a_series(
    autojump_clock: MockClock,
) -> None:
    words = Words("old")
    model = ScriptedModel(lambda _: Text("x"))
    sections = [Section("fixed", "fixed"), Section("words", words)]
    async with open_test_runtime(model=model, system=sections) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        words.text = "new"
        await agent.ask("two")
        assert whys(agent) == ["initial", "series"]
        assert said(model.requests[1]) == ["S fixed", "S new", "U one", "A x", "U two"]
        assert len(facts(agent, SystemMessageLogged)) == 3


async def test_a_change_is_told_in_the_history_where_the_model_can_take_it(
    autojump_clock: MockClock,
) -> None:
    words = Words("old")
    model = ScriptedModel(
        lambda _: Text("x"), capabilities=Capabilities(system_update="in-history")
    )
    async with open_test_runtime(model=model, system=[Section("words", words)]) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        words.text = "new"
        await agent.ask("two")
        await agent.ask("three")
        assert whys(agent) == ["initial"]
        assert said(model.requests[1]) == ["S old", "U one", "A x", "S new", "U two"]
        assert said(model.requests[2])[:5] == said(model.requests[1])


async def test_a_series_renders_the_prompt_anew_and_drops_updates(
    autojump_clock: MockClock,
) -> None:
    async def series(step: PreStep, next: Next[Decision]) -> Decision:
        return Enter(step.messages, starts_request_series=step.turn == 3)

    words = Words("old")
    model = ScriptedModel(
        lambda _: Text("x"), capabilities=Capabilities(system_update="in-history")
    )
    async with open_test_runtime(model=model, system=[Section("words", words)]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(series)
        await agent.ask("one")
        words.text = "new"
        await agent.ask("two")
        await agent.ask("three")
        assert whys(agent) == ["initial", "series"]
        assert said(model.requests[2]) == ["S new", "U one", "A x", "U two", "A x", "U three"]


async def test_a_wrapping_listener_keeps_a_series_that_is_asked_for_below_it(
    autojump_clock: MockClock,
) -> None:
    async def wrap(step: PreStep, next: Next[Decision]) -> Decision:
        return await next()

    async def series(step: PreStep, next: Next[Decision]) -> Decision:
        return Enter(step.messages, starts_request_series=True)

    async with open_test_runtime(model=ScriptedModel(lambda _: Text("x"))) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        agent.hooks.pre_step.add(wrap)
        agent.hooks.pre_step.add(series)
        await agent.ask("two")
        assert whys(agent) == ["initial", "series"]


@pytest.mark.parametrize("update", ["replace", "in-history"])
async def test_a_section_may_go_and_come_back(update: str, autojump_clock: MockClock) -> None:
    words = Words("here")
    capabilities = Capabilities(system_update=update)  # type: ignore[arg-type]
    model = ScriptedModel(lambda _: Text("x"), capabilities=capabilities)
    sections = [Section("fixed", "fixed"), Section("words", words)]
    async with open_test_runtime(model=model, system=sections) as runtime:
        agent = await runtime.create_agent("a")
        for text in ("here", None, "", "again", "here"):
            words.text = text
            assert (await agent.ask(f"now {text}")).reason == "completed"
        if update == "replace":
            shown = [heads(request)[1:] for request in model.requests]
            assert shown == [["here"], [], [], ["again"], ["here"]]


async def test_a_series_may_start_where_a_section_came_back(autojump_clock: MockClock) -> None:
    """The head reads as it should, and the history said otherwise since: it is told anew (E1)."""

    async def series(step: PreStep, next: Next[Decision]) -> Decision:
        return Enter(step.messages, starts_request_series=step.turn == 3)

    words = Words("here")
    capabilities = Capabilities(system_update="in-history")
    model = ScriptedModel(lambda _: Text("x"), capabilities=capabilities)
    async with open_test_runtime(model=model, system=[Section("words", words)]) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.pre_step.add(series)
        for text in ("here", None, "here"):
            words.text = text
            assert (await agent.ask("now")).reason == "completed"
        assert whys(agent) == ["initial", "series"]
        assert heads(model.requests[2]) == ["here"]


async def test_a_prompt_that_appears_later_starts_a_series(autojump_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: Text("x"))
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        agent.prompt.section("late", "late")
        await agent.ask("two")
        assert said(model.requests[1])[0] == "S late"
        assert reasons(agent) == ["completed", "completed"]


async def test_an_assembly_answered_with_nothing_leaves_no_system_prompt(
    autojump_clock: MockClock,
) -> None:
    async def nothing(
        payload: Assembly, next: Next[tuple[SectionText, ...]]
    ) -> tuple[SectionText, ...]:
        return ()

    model = ScriptedModel([Text("x")])
    async with open_test_runtime(model=model, system="S") as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.assemble.add(nothing)
        await agent.ask("one")
        assert heads(model.requests[0]) == []


async def test_an_agents_section_shadows_the_runtimes(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Text("x"), Text("y")])
    async with open_test_runtime(model=model, system="wide") as runtime:
        agent, other = await runtime.create_agent("a"), await runtime.create_agent("b")
        agent.prompt.section("system", "own")
        await agent.ask("one")
        await other.ask("one")
        assert [heads(request) for request in model.requests] == [["own"], ["wide"]]


# The history


async def test_a_history_replaced_between_turns_is_what_the_next_request_shows(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel(lambda _: Text("x"))
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        await agent.wait_idle()
        nodes = [seq for seq, _ in agent.session.state.surface.nodes]
        summary = user_message("summary", id="m-summary")
        agent.session.append(UserMessageLogged(summary, replaces=(nodes[0], nodes[-1])))
        await agent.ask("two")
        assert said(model.requests[1]) == ["U summary", "U two"]
        assert whys(agent) == ["initial"]


async def test_a_condition_is_asked_once_per_proposal_with_the_selected_model(
    autojump_clock: MockClock,
) -> None:
    asked: list[tuple[str, str]] = []

    async def when(context: ToolConditionContext) -> bool:
        await trio.lowlevel.checkpoint()
        asked.append((context.provider, context.model))
        return True

    model = ScriptedModel([ToolCall("look"), Text("x")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.tools.register(look, when=when)
        await agent.ask("one")
    assert asked == [("scripted", "scripted")] * 2
