"""The oracle of retries sees a plugin that keeps none of its promises, and is content with ours."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import pytest

from tests.simulation.policies import opening
from tests.simulation.policies.script import PolicyScript, RetryScript
from tests.simulation.script import AgentScript, Deed, Script, UserAct, UserScript
from tests.simulation.seeds import judged
from trioloop import Runtime
from trioloop.hooks import AttemptFailed, Next, Retry
from trioloop.ports import RetryPolicy
from trioloop.testing import Answer, Fail, Text

Decide: TypeAlias = Callable[[AttemptFailed], Retry | None]
Plugin: TypeAlias = Callable[..., AbstractAsyncContextManager[None]]

FAILURES = (
    Fail("OVERLOADED"),
    Fail("AUTH"),
    Fail("RATE_LIMIT", retry_after=1.5),
    *[Fail("TRANSPORT")] * 5,
)
POLICY = RetryPolicy(retries_max=2, first_delay_s=0.5)


def run(monkeypatch: pytest.MonkeyPatch, plugin: Plugin | None = None) -> list[str]:
    """What is found in two turns that fail."""
    if plugin is not None:
        monkeypatch.setattr(opening, "retry", plugin)
    turn = (UserAct(0.1, Deed("followup")), UserAct(0.1, "idle", patience_s=60))
    answers = tuple(Answer((Text("words"), failure)) for failure in FAILURES)
    script = Script(
        seed=1,
        agents=(AgentScript(answers),),
        users=(UserScript(turn * 2),),
        policies=PolicyScript(retry=RetryScript(POLICY)),
    )
    return judged(script, twice=False)[1]


def deciding(decide: Decide) -> Plugin:
    """A plugin that retries as it likes."""

    @asynccontextmanager
    async def plugin(runtime: Runtime, **_: Any) -> AsyncIterator[None]:
        async def answer(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
            await next()
            return decide(failed)

        with runtime.hooks.request_error.add(answer):
            yield

    return plugin


def test_the_plugin_keeps_its_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch) == []


def never(failed: AttemptFailed) -> None:
    return None


def at_once(failed: AttemptFailed) -> Retry | None:
    return Retry(0) if failed.failure.retryable and len(failed.earlier) < 2 else None


def whatever_it_is(failed: AttemptFailed) -> Retry | None:
    return Retry(2) if len(failed.earlier) < 2 else None


def without_an_end(failed: AttemptFailed) -> Retry | None:
    return Retry(5) if failed.failure.retryable else None


@pytest.mark.parametrize(
    ("decide", "fault"),
    [
        (never, "a further attempt is granted"),
        (at_once, "behind a failure, not"),
        (whatever_it_is, "behind a failure that is to last"),
        (without_an_end, "behind a failure that is to last"),
    ],
)
def test_a_plugin_that_keeps_none_is_seen_through(
    monkeypatch: pytest.MonkeyPatch, decide: Decide, fault: str
) -> None:
    faults = run(monkeypatch, deciding(decide))
    assert any(fault in one for one in faults), faults
