"""A runtime without surprises, and what is checked of each log when it is left.

Strict, seeded, on Trio's clock.
"""

import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from trioloop.agent.notifications import Created
from trioloop.events import (
    AsideStarted,
    AssistantAttemptLogged,
    AssistantMessageLogged,
    CallConfig,
    Event,
)
from trioloop.ids import Ids
from trioloop.limits import Limits
from trioloop.log.fold import LogState
from trioloop.log.rebuild import Request, aside_of, request_of
from trioloop.models.scripted import ScriptedModel
from trioloop.ports import Approver, Durability, Model, SessionStore
from trioloop.prompt import Section
from trioloop.runtime.models import ModelSource
from trioloop.runtime.open import HookSetup, Plugin, open_runtime
from trioloop.runtime.runtime import Runtime
from trioloop.session import Session
from trioloop.tools.tool import Function, Tool


def seeded_ids(seed: int = 0) -> Ids:
    """Identifiers that are the same in every run with that seed (G10)."""
    source = random.Random(seed)
    return Ids(token_hex=lambda count: source.randbytes(count).hex())


def _virtual_clock() -> int:
    return round(trio.current_time() * 1000)


@asynccontextmanager
async def open_test_runtime(
    *,
    model: ModelSource | None = None,
    models: Iterable[ModelSource] = (),
    tools: Iterable[Tool | Function] = (),
    system: str | Sequence[Section] = (),
    store: SessionStore | str | Path | None = None,
    durability: Durability = "step",
    limits: Limits | None = None,
    plugins: Iterable[Plugin] = (),
    hooks: Iterable[HookSetup] = (),
    config: CallConfig | None = None,
    approver: Approver | None = None,
    ids: Ids | None = None,
    clock: Callable[[], int] = _virtual_clock,
    strict: bool = True,
) -> AsyncIterator[Runtime]:
    """As `open_runtime`, but strict, seeded, on Trio's clock, and checking every log at the end.

    Raises:
        AssertionError: a log isn't what it should be; see `check_session`.
        GrammarError: a log breaks the grammar (G1).
    """
    sessions: list[Session] = []
    known: list[Model] = [one for one in (model, *models) if isinstance(one, ScriptedModel)]
    async with open_runtime(
        model=model,
        models=models,
        tools=tools,
        system=system,
        store=store,
        durability=durability,
        limits=limits,
        plugins=plugins,
        hooks=hooks,
        config=config,
        approver=approver,
        ids=ids or seeded_ids(),
        clock=clock,
        strict=strict,
    ) as runtime:

        def remember(created: Created) -> None:
            sessions.append(runtime.agents[created.agent].session)

        with runtime.on("created", remember):
            yield runtime
    told = [request for session in sessions for request in _checked(session)]
    _check_requests(told, known)


def check_session(session: Session) -> None:
    """Check a session's log against what the contract promises of every log.

    Its grammar (G1), that folding it gives the live state (G9), and that nothing is left open.

    Raises:
        GrammarError: the log breaks the grammar.
        AssertionError: the rest.
    """
    _checked(session)


def _checked(session: Session) -> list[object]:
    """Check a session's log; the answer is the requests that it tells of."""
    state, told = LogState(), list[object]()
    for event in session.events():
        if _was_sent(event):
            told.append(_frozen(request_of(state)))
        elif isinstance(event.data, AsideStarted):
            told.append(_frozen(aside_of(state, event.data)))
        state.apply(event)
    assert _comparable(state) == _comparable(session.state), "the fold isn't the live state"
    assert session.state.turn is None, "a turn is still open"
    return told


def _comparable(state: LogState) -> object:
    return attrs.asdict(state, recurse=False, filter=lambda field, _: field.name != "surface")


def _check_requests(told: Sequence[object], models: Iterable[Model]) -> None:
    """Every request that a scripted model received is the one that a log tells of (G2)."""
    received = [
        _frozen(request)
        for model in models
        if isinstance(model, ScriptedModel)
        for request in model.requests
    ]
    missing = [request for request in received if request not in told]
    assert not missing, f"a model received what no log tells of: {missing[0]}"


def _was_sent(event: Event) -> bool:
    data = event.data
    return isinstance(data, AssistantMessageLogged) or (
        isinstance(data, AssistantAttemptLogged) and data.sent
    )


def _frozen(request: Request) -> object:
    return (request.config, request.tools, tuple(request.messages), request.session)
