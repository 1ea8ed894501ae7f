"""Nobody rewrites the history while a model reads it, not even that of a retry (G2, P11)."""

import pytest
import trio
from trio.testing import MockClock

from tests.agent.reading import facts, reasons
from trioloop.agent.agent import Agent
from trioloop.errors import GrammarError
from trioloop.events import UserMessageLogged
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import AttemptFailed, Retry
from trioloop.messages import user_message
from trioloop.testing import Fail, ScriptedModel, Text, Wait, open_test_runtime


def rewrite(agent: Agent) -> None:
    """Put a summary in the place of the whole history."""
    nodes = [seq for seq, _ in agent.session.state.surface.nodes]
    summary = UserMessageLogged(user_message("summary"), (nodes[0], nodes[-1]))
    agent.session.append(summary)


async def test_a_rewrite_under_a_running_retry_is_refused(autojump_clock: MockClock) -> None:
    """A retry that changes nothing has no admission in the log, so the grammar can't tell."""
    model = ScriptedModel([Fail("SERVER"), [Wait(2), Text("hi")]])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")

        @agent.hooks.request_error
        async def again(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
            return Retry()

        agent.followup("one")
        await trio.sleep(1)
        with pytest.raises(GrammarError, match="G2"):
            rewrite(agent)
        await agent.wait_idle()
        rewrite(agent)
        assert reasons(agent) == ["completed"]
        assert len(facts(agent, UserMessageLogged)) == 2


async def test_whoever_is_asked_for_a_retry_may_rewrite(autojump_clock: MockClock) -> None:
    model = ScriptedModel([Fail("CONTEXT_WINDOW_EXCEEDED"), Text("hi")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")

        @agent.hooks.request_error
        async def compact(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
            rewrite(agent)
            return Retry()

        assert (await agent.ask("one")).text == "hi"
