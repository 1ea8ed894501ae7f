"""What tests of agents need: a runtime without surprises, scripted models, sweeps of cancel points.

For users' tests and ours. A test runtime is strict, its identifiers are seeded, its clock is
Trio's, and when it is left every log in it is checked.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio
import trio.testing

from trioloop.agent.notifications import Created
from trioloop.errors import InvalidInputError
from trioloop.events import AssistantAttemptLogged, AssistantMessageLogged, CallConfig, Event
from trioloop.ids import Ids
from trioloop.limits import Limits
from trioloop.log.fold import LogState, check, fold
from trioloop.log.rebuild import Request, rebuild_request
from trioloop.models.scripted import (
    Answer,
    Fail,
    Reasoning,
    Refusal,
    ScriptedModel,
    Stall,
    Text,
    ToolCall,
    Wait,
)
from trioloop.ports import Approver, Durability, Model, SessionStore
from trioloop.prompt import Section
from trioloop.runtime.models import ModelSource
from trioloop.runtime.open import HookSetup, Plugin, open_runtime
from trioloop.runtime.runtime import Runtime
from trioloop.session import Session
from trioloop.tools.tool import Function, Tool

__all__ = [
    "Answer",
    "CancelPoint",
    "Fail",
    "Reasoning",
    "Refusal",
    "ScriptedModel",
    "Stall",
    "Text",
    "ToolCall",
    "Wait",
    "cancel_at_every_checkpoint",
    "check_session",
    "open_test_runtime",
    "seeded_ids",
]


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
    for session in sessions:
        check_session(session)
    _check_requests(sessions, known)


def check_session(session: Session) -> None:
    """Check a session's log against what the contract promises of every log.

    Its grammar (G1), that folding it gives the live state (G9), and that nothing is left open.

    Raises:
        GrammarError: the log breaks the grammar.
        AssertionError: the rest.
    """
    events = session.events()
    check(events)
    assert _comparable(fold(events)) == _comparable(session.state), "the fold isn't the live state"
    assert session.state.turn is None, "a turn is still open"


def _comparable(state: LogState) -> object:
    return attrs.asdict(state, recurse=False, filter=lambda field, _: field.name != "surface")


def _check_requests(sessions: Iterable[Session], models: Iterable[Model]) -> None:
    """Every request that a scripted model received is the one that the log tells of (G2)."""
    received = [
        _frozen(request)
        for model in models
        if isinstance(model, ScriptedModel)
        for request in model.requests
    ]
    told = [
        _frozen(rebuild_request(session.events(), event.seq))
        for session in sessions
        for event in session.events()
        if _was_sent(event)
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


@attrs.define(eq=False)
class CancelPoint(trio.abc.Instrument):
    """One point of a sweep: the task step before which something is done.

    Attributes:
        number: which task step after `arm`, counted from 1.
        reached: whether the run came to it.
    """

    number: int
    reached: bool = False
    _action: Callable[[], object] | None = None
    _left: int = 0

    def arm(self, action: Callable[[], object]) -> None:
        """Count task steps from here on, and call `action` before the one that is meant.

        Args:
            action: such as `agent.cancel` or a cancel scope's `cancel`; synchronous.
        """
        self._action = action
        self._left = self.number

    def disarm(self) -> None:
        """Count no further; a run that comes here unreached is the last."""
        self._action = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count one task step."""
        if self._action is None:
            return
        self._left -= 1
        if self._left == 0:
            action, self._action = self._action, None
            self.reached = True
            action()


def cancel_at_every_checkpoint(
    scenario: Callable[[CancelPoint], Awaitable[None]], *, points_max: int = 100_000
) -> int:
    """Run a scenario again and again, and do something before its first, second, ... task step.

    Each run is a `trio.run` of its own under a virtual clock. The scenario arms its point, does
    its work, disarms it, and asserts what must hold wherever the point fell.

    Args:
        scenario: `async def scenario(point)`; it calls `point.arm(action)`.
        points_max: after so many points the sweep gives up.

    Returns:
        How many points were reached.

    Raises:
        InvalidInputError: there are more points than `points_max`.
        BaseException: whatever a run raised, with a note that names the point.
    """
    for number in range(1, points_max + 1):
        point = CancelPoint(number)
        clock = trio.testing.MockClock(autojump_threshold=0)
        try:
            trio.run(scenario, point, clock=clock, instruments=[point])
        except BaseException as error:
            error.add_note(f"at point {number}")
            raise
        if not point.reached:
            return number - 1
    raise InvalidInputError(f"the scenario has more than {points_max} points: raise points_max")
