"""What a command runs: model, tools, session and settings, opened as one agent."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
from msgspec.structs import replace

from trioloop.agent.agent import Agent
from trioloop.agent.notifications import StreamEnded
from trioloop.cli.model_choice import ModelChoice
from trioloop.errors import UnknownSessionError
from trioloop.events import CallConfig
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import AttemptFailed, Hooks, RequestProposal, Retry
from trioloop.limits import Limits
from trioloop.plugins.retry import retry
from trioloop.ports import Approver
from trioloop.runtime.open import Plugin, open_runtime
from trioloop.runtime.runtime import Runtime
from trioloop.tools import Tool

FIRST_STEP = "first"
_GRACE_S = 3  # somebody waits at a terminal, so a tool that is cancelled isn't given longer


@attrs.frozen(kw_only=True)
class Setup:
    """What is to be run, as the command line says it.

    Attributes:
        model: which model is asked.
        tools: what it may call.
        system: the system prompt; "" is none.
        store: the file that keeps the session; None: memory.
        session: its name; None: a new one is made.
        tool_choice: as `CallConfig` has it, or `first`: a call is forced in the first step of a
            turn and none may come later, for models too small to choose.
        max_tokens: output tokens of one answer.
        temperature: sampling temperature.
    """

    model: ModelChoice
    tools: tuple[Tool, ...] = ()
    system: str = ""
    store: Path | None = None
    session: str | None = None
    tool_choice: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None

    @property
    def config(self) -> CallConfig:
        """The settings of each request."""
        model = self.model.model
        return CallConfig(
            provider=model.provider,
            model=model.name,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            tool_choice=None if self.tool_choice == FIRST_STEP else self.tool_choice,
        )


@asynccontextmanager
async def opened(setup: Setup) -> AsyncIterator[Agent]:
    """The agent of a setup, in a runtime of its own; leaving closes and stores its log.

    Raises:
        TrioloopError: the store, the session or the tools can't be used.
    """
    async with opened_runtime(setup) as runtime:
        yield await _open_agent(runtime, setup.session)


@asynccontextmanager
async def opened_runtime(
    setup: Setup, *, approver: Approver | None = None, plugins: Iterable[Plugin] = ()
) -> AsyncIterator[Runtime]:
    """The runtime of a setup; leaving closes and stores its logs.

    Args:
        setup: what it runs.
        approver: answers the questions of pre-policies.
        plugins: further policies.

    Raises:
        TrioloopError: the store or the tools can't be used.
    """
    async with open_runtime(
        model=setup.model.model,
        tools=setup.tools,
        system=setup.system,
        store=setup.store,
        config=setup.config,
        limits=Limits(grace_s=_GRACE_S),
        hooks=[_choose_by_step] if setup.tool_choice == FIRST_STEP else [],
        approver=approver,
        plugins=[_patience_where_somebody_answers, retry, *plugins],
    ) as runtime:
        yield runtime


async def _open_agent(runtime: Runtime, session: str | None) -> Agent:
    if session is None:
        return await runtime.create_agent()
    try:
        return await runtime.resume_agent(session)
    except UnknownSessionError:
        return await runtime.create_agent(session)


def _choose_by_step(hooks: Hooks) -> None:
    @hooks.request
    async def force_first(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        config = await next()
        if proposal.step > 1:
            return replace(config, tool_choice="none")
        return replace(config, tool_choice="required", parallel_tool_calls=False)


@asynccontextmanager
async def _patience_where_somebody_answers(runtime: Runtime) -> AsyncIterator[None]:
    """Don't retry for a server that was never reached: most likely there is none."""
    reached = False

    def note(ended: StreamEnded) -> None:
        nonlocal reached
        reached = reached or ended.outcome == "message"

    async def answer(failed: AttemptFailed, next: Next[Retry | None]) -> Retry | None:
        unreached = failed.failure.code == "TRANSPORT" and not reached
        return None if unreached else await next()

    with runtime.on(StreamEnded.kind, note), runtime.hooks.request_error.add(answer):
        yield
