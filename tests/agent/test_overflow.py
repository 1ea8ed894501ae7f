"""When an overflow may be retried (R6)."""

import pytest
from trio.testing import MockClock

from tests.agent.listening import retrying
from tests.agent.reading import facts, said
from trioloop.events import RequestHeaderLogged, UserMessageLogged
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import AttemptFailed, Retry
from trioloop.messages import user_message
from trioloop.testing import Fail, ScriptedModel, Text, open_test_runtime


async def test_an_overflow_is_not_retried_while_the_history_is_the_same(
    autojump_clock: MockClock,
) -> None:
    model = ScriptedModel([Fail("CONTEXT_WINDOW_EXCEEDED")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        agent.hooks.request_error.add(retrying())
        settled = await agent.ask("one")
        assert settled.code == "CONTEXT_WINDOW_EXCEEDED"
        assert len(model.requests) == 1


@pytest.mark.parametrize("fresh_turn", [False, True])
async def test_an_overflow_is_retried_once_the_history_was_replaced(
    fresh_turn: bool, autojump_clock: MockClock
) -> None:
    async def compact(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        nodes = list(agent.session.state.surface.nodes)
        first, last = nodes[0][0], nodes[-1][0]
        summary = user_message("summary", id="m-summary", source="compaction")
        agent.session.append(UserMessageLogged(summary, replaces=(first, last)))
        return Retry(fresh_turn=fresh_turn)

    model = ScriptedModel([Text("1"), Fail("CONTEXT_WINDOW_EXCEEDED"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("one")
        agent.hooks.request_error.add(compact)
        settled = await agent.ask("two")
        assert settled.reason == "completed"
        assert said(model.requests[2]) == ["U summary"]
        assert facts(agent, RequestHeaderLogged)[1:] == []
