"""One step: what is proposed, its admission, its attempts, its calls.

Reads from top to bottom as contract section 4 lists it. After each hook the driver takes a last
look at the signal (R8), so that nothing is committed after a cancel.
"""

from collections.abc import Awaitable, Sequence

import attrs
import trio

from trioloop.agent.admission import Proposal, admit
from trioloop.agent.attempt import run_attempt
from trioloop.agent.composing import with_new_id
from trioloop.agent.notifications import ToolBodyEnded, ToolProgress
from trioloop.agent.resources import Resources
from trioloop.agent.signal import TurnSignal
from trioloop.codec import strict_copy
from trioloop.errors import EventEncodingError, InternalError, NoModelError, StoreError
from trioloop.events import (
    CallConfig,
    Failure,
    PendingMessage,
    RequestHeaderLogged,
    StepEnded,
    ToolDeclaration,
)
from trioloop.hooks.dispatch import ask_waterfall, misuse
from trioloop.hooks.points import (
    AttemptFailed,
    Decision,
    Enter,
    PreStep,
    Reject,
    RequestProposal,
    Retry,
)
from trioloop.log.fold import OpenTurn
from trioloop.machine.inbox import insert
from trioloop.machine.turn import Ending
from trioloop.messages import UserMessage
from trioloop.ports import PreparedCall, RetryPolicy
from trioloop.prompt import assemble
from trioloop.tools import dispatch
from trioloop.tools.batch import Batch, BodyEnded, Progress
from trioloop.tools.registry import ResolvedToolSet, ToolConditionContext

_look = trio.lowlevel.checkpoint_if_cancelled
_UNNAMED = CallConfig(provider="", model="")


class AttemptsExhausted(Exception):  # noqa: N818 - it ends a turn, it isn't raised to users
    """The last attempt of a step failed and nobody retries it (P13)."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@attrs.frozen
class FreshTurn:
    """A listener asks for the turn to be repeated, `delay` seconds from now (R2)."""

    failure: Failure
    delay: float


@attrs.frozen
class Entered:
    """The step was committed and is over."""


StepOutcome = Entered | FreshTurn | Ending | None


async def run_step(resources: Resources, signal: TurnSignal) -> StepOutcome:
    """Propose a step and, if it is entered, carry it through to its end.

    A checkpoint. Cancelled before admission it commits nothing (G3).

    Returns:
        `Entered`; a `FreshTurn` to be opened; the `Ending` of a turn that was rejected; None where
        there was nothing to enter with.
    """
    signal.place = "the conditions of its tools"
    tools = await _resolve_tools(resources)
    try:
        proposal = await _propose(resources, signal, tools)
        if not isinstance(proposal, Proposal):
            return proposal
        fresh = await _ask_model(resources, signal, proposal)
        if fresh is None:
            signal.place = "its tools"
            await _run_calls(resources, tools)
        turn = _open_turn(resources)
        assert turn.step is not None
        resources.session.append(StepEnded(turn.number, turn.step.number))
        return fresh or Entered()
    finally:
        tools.dispose()


def _open_turn(resources: Resources) -> OpenTurn:
    turn = resources.session.state.turn
    assert turn is not None  # a step lies inside a turn
    return turn


async def _resolve_tools(resources: Resources) -> ResolvedToolSet:
    header = resources.session.state.header
    selected = header.config if header is not None else resources.selection.default
    context = ToolConditionContext(
        agent=resources.agent,
        provider=selected.provider if selected is not None else "",
        model=selected.model if selected is not None else "",
    )
    wider, own = resources.tools
    tools = await own.resolve(wider, context)
    await _look()
    return tools


# Before admission


async def _propose(
    resources: Resources, signal: TurnSignal, tools: ResolvedToolSet
) -> Proposal | Ending | None:
    turn = _open_turn(resources)
    signal.place = "system_prompt.assemble"
    sections = await assemble(
        resources.prompts, [hooks.assemble for hooks in resources.hooks], resources.agent
    )
    await _look()
    signal.place = "agent.pre_step"
    decision, by = await _decide(resources, turn, tools.declarations)
    await _look()
    if isinstance(decision, Reject):
        return Ending(reason="blocked", code=decision.code, message=decision.reason, by=by)
    messages = decision.messages
    if by is not None:
        messages = tuple([_with_id(resources, message) for message in messages])
    if not messages and turn.owed is None:
        return None
    return Proposal(
        turn=turn.number,
        step=turn.steps + 1,
        messages=messages,
        sections=sections,
        tools=tools.declarations,
        starts_series=decision.starts_request_series,
    )


async def _decide(
    resources: Resources, turn: OpenTurn, tools: tuple[ToolDeclaration, ...]
) -> tuple[Decision, str | None]:
    claimed = tuple([one.pending.message for one in turn.fresh])
    payload = PreStep(resources.agent, turn.number, turn.steps + 1, claimed, tools)

    async def unchanged() -> Decision:
        return Enter(claimed)

    answered = await ask_waterfall(
        [hooks.pre_step for hooks in resources.hooks], payload, unchanged
    )
    if answered.by is not None:
        _check_decision(resources, answered.answer, claimed, answered.by)
    return answered.answer, answered.by


def _check_decision(
    resources: Resources, decision: Decision, claimed: Sequence[UserMessage], by: str
) -> None:
    if isinstance(decision, Reject):
        return
    if not isinstance(decision, Enter):
        raise misuse(f"agent.pre_step answers Enter or Reject, but {by} gave {decision!r}", by)
    ours = {message.id for message in claimed}
    seen: set[str] = set()
    for message in decision.messages:
        if not isinstance(message, UserMessage):
            raise misuse(f"{by} entered {message!r}, which is no UserMessage", by)
        known = message.id in resources.session.state.fates and message.id not in ours
        if message.id and (known or message.id in seen):
            raise misuse(f"{by} entered the message id {message.id!r} a second time", by)
        seen.add(message.id)


def _with_id(resources: Resources, message: UserMessage) -> UserMessage:
    if message.id:
        return message
    return with_new_id(message, resources.session.state, resources.ids)


# The model


async def _ask_model(
    resources: Resources, signal: TurnSignal, proposal: Proposal
) -> FreshTurn | None:
    """Attempts until one answers; None after an answer."""
    attempt = 1
    while True:
        prepared = await _prepare(resources, signal, attempt)
        request = admit(resources, proposal, prepared)
        signal.place = "its durable gate"
        await resources.session.gate()
        generation = resources.session.state.surface.generation
        signal.place = "its model's stream"
        failure = await run_attempt(resources, signal, prepared, request)
        if failure is None:
            return None
        await _look()
        signal.place = "agent.request_error"
        retry = await _ask_for_retry(resources, failure, prepared.retry_policy)
        await _look()
        if retry is None or _stuck_overflow(resources, failure, generation):
            raise AttemptsExhausted(failure)
        if retry.fresh_turn:
            return FreshTurn(failure, retry.delay)
        signal.place = "its wait before a retry"
        await trio.sleep(retry.delay)
        attempt += 1


def _stuck_overflow(resources: Resources, failure: Failure, generation: int) -> bool:
    """Whether the same request would overflow again (R6)."""
    unchanged = resources.session.state.surface.generation == generation
    return failure.code == "CONTEXT_WINDOW_EXCEEDED" and unchanged


async def _prepare(resources: Resources, signal: TurnSignal, attempt: int) -> PreparedCall:
    turn = _open_turn(resources)
    step = turn.steps + 1 if turn.step is None else turn.step.number
    payload = RequestProposal(resources.agent, turn.number, step, attempt)
    passed: list[CallConfig] = []

    async def chosen() -> CallConfig:
        config = resources.selection.default or _UNNAMED
        passed.append(config.with_own_extra())
        return passed[0]

    signal.place = "agent.request"
    answered = await ask_waterfall([hooks.request for hooks in resources.hooks], payload, chosen)
    await _look()
    config = answered.answer
    if not passed or not isinstance(config, CallConfig):
        raise misuse(
            f"agent.request answers the CallConfig of next(), perhaps changed, not {config!r}",
            answered.by,
        )
    if answered.by is not None and config.extra:
        _check_extra(config, answered.by)
    if not config.provider:
        raise NoModelError(
            f"{resources.agent.name!r} has no model: give open_runtime(model=...) one, or name one "
            "in a listener of agent.request"
        )
    signal.place = "its model's preparation"
    prepared = await resources.selection.model_for(config).prepare(config)
    await _look()
    return prepared


def _check_extra(config: CallConfig, by: str) -> None:
    try:
        strict_copy(RequestHeaderLogged(config, (), "initial"))
    except EventEncodingError as error:
        raise misuse(f"{by} answered settings that can't be logged: {error}", by) from error


async def _ask_for_retry(
    resources: Resources, failure: Failure, policy: RetryPolicy
) -> Retry | None:
    turn = _open_turn(resources)
    assert turn.step is not None
    payload = AttemptFailed(
        resources.agent,
        turn.number,
        turn.step.number,
        failure,
        tuple(turn.failures[:-1]),
        policy,
    )

    async def nobody() -> Retry | None:
        return None

    hooks = [hooks.request_error for hooks in resources.hooks]
    answered = await ask_waterfall(hooks, payload, nobody)
    retry = answered.answer
    if retry is not None and not isinstance(retry, Retry):
        raise misuse(f"agent.request_error answers None or Retry, not {retry!r}", answered.by)
    return retry


# The calls


async def _run_calls(resources: Resources, tools: ResolvedToolSet) -> None:
    step = resources.session.state.step
    assert step is not None
    assert step.answer is not None  # a step whose attempts all failed never comes here
    answer = step.answer
    if not answer.message.calls:
        return
    cut = answer.finish is not None and answer.finish.reason == "length"
    await _scheduled(dispatch.run_batch(_batch(resources, tools), answer.message.calls, cut=cut))


async def run_open_calls(resources: Resources, signal: TurnSignal) -> Ending:
    """Run the calls again that a dead process left open, with the tools as they are now (D4).

    A checkpoint.

    Returns:
        How the turn ends: what the model would have said to the results, nobody knows.
    """
    signal.place = "the conditions of its tools"
    tools = await _resolve_tools(resources)
    try:
        signal.place = "its tools"
        turn = _open_turn(resources)
        step = turn.step
        assert step is not None  # else repair would have closed the turn
        calls = [step.calls[block.call] for block in step.unanswered]
        await _scheduled(dispatch.run_open_calls(_batch(resources, tools), calls))
        resources.session.append(StepEnded(turn.number, step.number))
        return Ending(reason="interrupted")
    finally:
        tools.dispose()


def _batch(resources: Resources, tools: ResolvedToolSet) -> Batch:
    return Batch(
        agent=resources.agent,
        session=resources.session,
        tools=tools,
        hooks=resources.hooks,
        limits=resources.limits,
        threads=resources.threads,
        places=resources.places,
        approver=resources.approver,
        add_contexts=lambda contexts: _add_contexts(resources, contexts),
        notify=lambda told: _tell_of_call(resources, told),
        running=resources.running_calls,
    )


async def _scheduled(batch: Awaitable[None]) -> None:
    try:
        await batch
    except StoreError:
        raise
    except Exception as error:  # bodies and policies never raise out of a batch
        raise InternalError(
            f"the tool scheduler failed: {type(error).__name__}: {error}"
        ) from error


def _tell_of_call(resources: Resources, told: Progress | BodyEnded) -> None:
    notifications, agent = resources.notifications, resources.agent.name
    if not notifications.heard:
        return
    if isinstance(told, BodyEnded):
        notifications.send(ToolBodyEnded(told.call, agent=agent))
    else:
        notifications.send(
            ToolProgress(told.call, told.message, told.done, told.total, agent=agent)
        )


def _add_contexts(resources: Resources, contexts: Sequence[UserMessage]) -> None:
    """Let messages that results added wait in next-step, in a disposal, too (T7, I5)."""
    session = resources.session
    for context in contexts:
        message = _with_id(resources, context)
        if message.id not in session.state.fates:
            pending = PendingMessage(message, wakeup=False)
            session.append(insert(session.state.inbox, "next-step", pending))
