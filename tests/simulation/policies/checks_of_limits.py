"""What `limits` promises: no step at a limit but a last one, no call in that, none beyond it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tests.simulation.policies.checks_of_calls import bodies_of
from tests.simulation.policies.counting import Count, Counts, counted
from tests.simulation.policies.script import HAND_OVER_S, LimitScript
from trioloop import Event
from trioloop.events import StepEnded, StepStarted, TurnEnded, TurnStarted, UserMessageLogged
from trioloop.plugins import Budget

if TYPE_CHECKING:
    from tests.simulation.lives import Life
    from tests.simulation.world import World

SLACK_S = 12  # what comes before the first pre-step, and a body's time behind its cancel
CODES = {
    f"{scope}_{what}_LIMIT".upper(): (scope, what)
    for scope in ("turn", "session")
    for what in ("steps", "calls", "tokens", "money")
}
BEGINNINGS = (TurnStarted, StepEnded)


def of_limits(world: "World", life: "Life") -> Iterator[str]:
    """Of each plugin that was open whenever the agent worked."""
    if _hides_messages(world):
        return
    events = life.agent.session.events()
    for script in world.script.policies.limits:
        if script.agent is None:
            yield from _of_steps(script, events)
            yield from _of_time(script, events)
            yield from _of_calls(world, life, script, events)
    yield from _of_codes(world, life, events)


def _hides_messages(world: "World") -> bool:
    """Whether a listener outside the plugin enters a step that it rejects, or drops its message."""
    harmless = ("pass", "reject", "raise", "leak", "twice")
    return any(
        hook.place == "pre_step" and hook.does not in harmless for hook in world.script.hooks
    )


def _budgets(script: LimitScript) -> Iterator[tuple[str, Budget]]:
    if script.turn is not None:
        yield "turn", script.turn
    if script.session is not None:
        yield "session", script.session


def _is_reached(budget: Budget, count: Count) -> bool:
    pairs = (
        (budget.steps, count.steps),
        (budget.calls, count.calls),
        (budget.tokens, count.tokens),
        (budget.money, count.money + 1e-9),
    )
    return any(limit is not None and used >= limit for limit, used in pairs)


def last_steps(events: Sequence[Event]) -> dict[tuple[int, int], str]:
    """The steps that a message of the plugin joined, as turn and number, with its source."""
    found: dict[tuple[int, int], str] = {}
    step = (0, 0)
    for event in events:
        if isinstance(event.data, StepStarted):
            step = (event.data.turn, event.data.step)
        elif isinstance(event.data, UserMessageLogged):
            source = event.data.message.source
            if source.startswith("limits/"):
                found[step] = source
    return found


def _of_steps(script: LimitScript, events: Sequence[Event]) -> Iterator[str]:
    """At a limit no step begins but a last one, and none behind that which it granted itself."""
    granted = last_steps(events)
    for scope, budget in _budgets(script):
        before = Count()  # what had been spent when the step was prepared, asides not counted
        had_last = False
        for event, counts in counted(events):
            data = event.data
            if isinstance(data, BEGINNINGS):
                before = _behind(counts, event, scope)
            if isinstance(data, TurnStarted) and data.retry_of is None and scope == "turn":
                had_last = False
            if isinstance(data, StepStarted) and _is_reached(budget, before):
                source = granted.get((data.turn, data.step))
                if source is None or not script.hands_over or had_last:
                    yield f"step {event.seq} begins with {before} of {scope} {budget}"
                had_last = had_last or (source or "").startswith(f"limits/{scope}/")


def _behind(counts: Counts, event: Event, scope: str) -> Count:
    after = Counts(counts.of("session"), counts.of("turn"), counts.began, counts.model)
    after.take(event)
    return after.of(scope)


def _of_time(script: LimitScript, events: Sequence[Event]) -> Iterator[str]:
    """A turn is over soon when its seconds are."""
    for scope, budget in _budgets(script):
        if budget.seconds is None:
            continue
        most = budget.seconds + (HAND_OVER_S if script.hands_over else 0) + SLACK_S
        for event, counts in counted(events):
            if isinstance(event.data, TurnEnded) and counts.began is not None:
                took = counts.of(scope).ms + event.time - counts.began
                own = event.time - counts.began
                if took > most * 1000 and own > SLACK_S * 1000:
                    yield f"turn {event.data.turn} ended {took} ms into its {scope} of {budget}"


def _of_calls(
    world: "World", life: "Life", script: LimitScript, events: Sequence[Event]
) -> Iterator[str]:
    """No body runs in a last step, and none beyond a limit of calls."""
    granted = last_steps(events)
    bodies = list(bodies_of(world, life))
    step, chain = (0, 0), 0
    steps: list[tuple[int, int]] = []
    chains: list[int] = []
    for event in events:
        if isinstance(event.data, StepStarted):
            step = (event.data.turn, event.data.step)
        elif isinstance(event.data, TurnStarted) and event.data.retry_of is None:
            chain += 1
        steps.append(step)
        chains.append(chain)
    for body in bodies:
        if steps[body.seq] in granted:
            yield f"{body.call} ran in a last step"
    for scope, budget in _budgets(script):
        of = [chains[body.seq] if scope == "turn" else 0 for body in bodies]
        for number in set(of):
            if budget.calls is not None and of.count(number) > budget.calls:
                yield f"{of.count(number)} bodies ran in the {scope} of {budget}"


def _of_codes(world: "World", life: "Life", events: Sequence[Event]) -> Iterator[str]:
    """A turn that a limit blocked had come to it."""
    for event, counts in counted(events):
        data = event.data
        if not (isinstance(data, TurnEnded) and data.code in CODES):
            continue
        scope, what = CODES[data.code]
        budgets = [getattr(one, scope) for one in world.script.policies.limits]
        limits = [getattr(one, what) for one in budgets if one is not None]
        used = getattr(counts.of(scope), what)
        if not any(limit is not None and used >= limit - 1e-9 for limit in limits):
            yield f"turn {data.turn} was blocked by {data.code} with {counts.of(scope)}"


def of_trees(world: "World") -> Iterator[str]:
    """No step begins at a tree's limit of steps, but one of each agent that began together."""
    if _hides_messages(world):
        return
    for script in world.script.policies.limits:
        if script.tree is None or script.tree.steps is None:
            continue
        steps: dict[str, int] = {}
        sessions: dict[str, set[str]] = {}
        for life, event in world.chronicle:
            if isinstance(event.data, StepStarted):
                root = world.children.root_of(life)
                steps[root] = steps.get(root, 0) + 1
                sessions.setdefault(root, set()).add(life.agent.name)
        for root, number in steps.items():
            together = len(sessions[root]) * (2 if script.hands_over else 1)
            if number > script.tree.steps + together:
                yield f"the tree of {root} had {number} steps of {script.tree}"
