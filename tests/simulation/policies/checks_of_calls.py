"""What `plan_mode` and `approval` promise of calls: none that isn't allowed runs."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from trioloop import Event
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    NestedCallStarted,
    RequestHeaderLogged,
    ToolCallStarted,
    ToolDispatched,
    TurnStarted,
)
from trioloop.plugins.approval import ApprovalAnswered, ApprovalRequested, ApprovalsForgotten
from trioloop.plugins.plan_mode import PlanModeSet

if TYPE_CHECKING:
    from tests.simulation.bodies import Started
    from tests.simulation.lives import Life
    from tests.simulation.world import World


def _is_overruled(world: "World") -> bool:
    """Whether a listener outside the plugins may let run what they hold."""
    return any(
        hook.place == "pre_execute" and hook.does in ("ask", "change", "misuse", "deny")
        for hook in world.script.hooks
    )


def bodies_of(world: "World", life: "Life") -> Iterator["Started"]:
    """The bodies that started in an agent's log."""
    return (one for one in world.started if one.session.name == life.agent.name)


# Plan mode


def of_plans(world: "World", life: "Life") -> Iterator[str]:
    """Its tool is declared while it is on, and only then; nothing with effects runs."""
    if None not in world.script.policies.plans:
        return
    events = life.agent.session.events()
    active = False
    declared = False
    actives: list[bool] = []
    for event in events:
        data = event.data
        if isinstance(data, PlanModeSet):
            active = data.active
        elif isinstance(data, RequestHeaderLogged):
            declared = "exit_plan_mode" in {tool.name for tool in data.tools}
        elif _was_sent(event) and declared != active:
            yield f"behind {event.seq} plan mode is {active}, its tool declared: {declared}"
        actives.append(active)
    if _is_overruled(world):
        return
    for body in bodies_of(world, life):
        if actives[body.seq] and body.effects != "read-only":
            yield f"{body.call} of {body.name} ran in plan mode"


def _was_sent(event: Event) -> bool:
    data = event.data
    return isinstance(data, AssistantMessageLogged) or (
        isinstance(data, AssistantAttemptLogged) and data.sent
    )


# Approvals


def of_rules(world: "World", life: "Life") -> Iterator[str]:
    """No call that is asked about runs without a yes; each question is closed in its time."""
    rules = world.script.policies.rules
    if rules is None:
        return
    events = life.agent.session.events()
    yield from _of_questions(world, events)
    if rules.agent is not None or _is_overruled(world):
        return
    for body in bodies_of(world, life):
        before = events[: body.seq + 1]
        if body.effects in rules.effects and not _is_allowed(before, body.call, body.name):
            yield f"{body.call} of {body.name} ran, and nobody had allowed it"


def _of_questions(world: "World", events: Sequence[Event]) -> Iterator[str]:
    asked: dict[str, ApprovalRequested] = {}
    answered: list[tuple[str, bool]] = []
    for event in events:
        data = event.data
        if isinstance(data, ApprovalRequested):
            asked[data.approval] = data
        elif isinstance(data, ApprovalAnswered):
            question = asked.pop(data.approval, None)
            if question is None:
                yield f"{event.seq} answers what nobody asks"
            elif question.until is not None and data.outcome in ("answered", "expired"):
                late = event.time - question.until
                if late > 1 or (data.outcome == "expired" and late < -1):
                    yield f"{event.seq} is {data.outcome} {late} ms behind its time"
            if data.outcome == "answered":
                answered.append((data.approval, data.allow))
    if asked:
        yield f"the questions {sorted(asked)} are still open"
    given = [(one.approval, one.allow) for one in world.policies.given]
    for one in answered:
        if one not in given:
            yield f"the answer {one} was given by nobody"


def _is_allowed(events: Sequence[Event], call: str, name: str) -> bool:
    """Whether a person has said yes, to this call or to one that is like it."""
    started = _arguments_of(events, call)
    about = f"{name} {msgspec.json.encode(started, order='deterministic').decode()}"
    questions: dict[str, ApprovalRequested] = {}
    held: dict[str, ApprovalAnswered] = {}
    allowed = False
    for event in events:
        data = event.data
        if isinstance(data, ApprovalRequested):
            questions[data.approval] = data
        elif isinstance(data, ApprovalAnswered) and data.approval in questions:
            question = questions[data.approval]
            if question.call == call:
                allowed = data.allow
            if data.remember is not None:
                held[question.about] = data
        elif isinstance(data, ApprovalsForgotten):
            held.clear()
        elif isinstance(data, TurnStarted) and data.retry_of is None:
            held = {key: one for key, one in held.items() if one.remember == "session"}
    return allowed or (about in held and held[about].allow)


def _arguments_of(events: Sequence[Event], call: str) -> object:
    raw, seqs = "{}", set[int]()
    for event in events:
        data = event.data
        if isinstance(data, ToolCallStarted | NestedCallStarted) and data.call == call:
            raw = data.arguments or "{}"
            seqs.add(event.seq)
        elif isinstance(data, ToolDispatched) and data.call_seq in seqs and data.arguments:
            raw = data.arguments
    return msgspec.json.decode(raw)
