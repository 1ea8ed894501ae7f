"""All policies on one agent that a real model plays: its log, its memory and its steps' cost.

`TRIOLOOP_LOCAL_TURNS` says how many turns; by hand, give 200. What grows is looked at from 100 on.
The model is too small to decide when it calls: the turn's number does.
"""

import os
from collections import Counter
from pathlib import Path

import attrs
import msgspec

import trioloop
from tests.agent.reading import facts
from tests.local_model.asking import model_of
from tests.plugins.together import (
    KINDS,
    PACKAGE,
    Together,
    counted,
    furnished,
    growth,
    held_by,
    save,
    taken,
    traced,
)
from trioloop.events import CallConfig, StepEnded, ToolResultLogged
from trioloop.hooks import Next, RequestProposal
from trioloop.testing import check_session

TURNS = int(os.environ.get("TRIOLOOP_LOCAL_TURNS", "2"))
QUARTER = max(TURNS // 4, 1)
GROWTH_FROM = 100  # turns: in fewer, one compaction more or less decides
WINDOW = 1_600
SAVE = "Use the save tool to save a note."
PLAN = "Use the exit_plan_mode tool to hand in a plan."
PAGE = "Use the page tool."
RESEARCH = "Use the research tool to find a colour."
HELLO = "Say hello."
ASKED = (SAVE, PLAN, HELLO, PAGE, RESEARCH, *(HELLO, SAVE, HELLO, PAGE, HELLO) * 3)


@trioloop.tool(name="page", effects="read-only")
async def short_page(number: int) -> str:
    """A page of text."""
    return f"Page {number}. " + "All work and no play. " * 25


@attrs.frozen
class Cost:
    """What a turn cost.

    Attributes:
        steps: that it had.
        calls: of functions of the package, for each of its steps.
        messages: that the last request held.
    """

    steps: int
    calls: float
    messages: int


async def call_as_asked(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
    """The first step of a turn must call, if a tool is asked for; no other step may."""
    asked = ASKED[(proposal.turn - 1) % len(ASKED)]
    asks = proposal.agent.name == "a" and asked != HELLO
    choice = "required" if proposal.step == 1 and asks else "none"
    return msgspec.structs.replace(await next(), tool_choice=choice, parallel_tool_calls=False)


async def take_turn(together: Together, agent: trioloop.Agent) -> Cost:
    """Ask one more thing, and see what it cost."""
    asked = ASKED[agent.session.state.turns % len(ASKED)]
    if asked == PLAN:
        together.mode.select(agent, active=True)
    before = agent.session.seq
    with counted(PACKAGE) as calls:
        settled = await agent.ask(asked)
    assert settled.reason in ("completed", "max-tokens"), settled
    together.mode.select(agent, active=False)  # whatever the model made of its plan
    new = agent.session.events(before)
    steps = sum(isinstance(event.data, StepEnded) for event in new)
    return Cost(steps, calls[0] / steps, len(list(agent.session.state.surface.nodes)))


async def test_all_policies_work_together_under_a_real_model(
    local_model: str, tmp_path: Path
) -> None:
    model = model_of("chat", local_model, max_tokens=60)
    sizes: dict[int, tuple[int, int]] = {}
    costs: list[Cost] = []
    with traced():
        async with furnished(
            WINDOW,
            result_chars_max=200,
            model=model,
            tools=[short_page, save],
            store=tmp_path / "a.db",
        ) as together:
            together.runtime.hooks.request.add(call_as_asked)
            agent = await together.runtime.create_agent("a")
            for turn in range(1, TURNS + 1):
                costs.append(await take_turn(together, agent))
                if turn % 10 == 0:
                    print(f"{turn} turns, {agent.session.seq} events, {taken()} bytes", flush=True)
                if turn in (QUARTER, TURNS):
                    sizes[turn] = (taken(), agent.session.seq)
            check_session(agent.session)
        _check_memory(agent, sizes)
    await model.aclose()
    _check_costs(costs)
    _check_work(agent)


def _check_memory(agent: trioloop.Agent, sizes: dict[int, tuple[int, int]]) -> None:
    """What the turns leave behind is their log."""
    (before, first), (behind, _) = sizes[QUARTER], sizes[TURNS]
    events = agent.session.events()
    log = held_by(events) - held_by(events[: first + 1])
    print(f"\n{TURNS} turns, {len(events)} events; since turn {QUARTER}", end=" ")
    print(f"{behind - before} bytes more, of which {log} are the log")
    if TURNS >= GROWTH_FROM:
        assert behind - before <= 1.6 * log


def _check_costs(costs: list[Cost]) -> None:
    steps = [cost.calls for cost in costs]
    messages = [float(cost.messages) for cost in costs]
    if TURNS >= GROWTH_FROM:
        print(f"the last fifth to the second: calls {growth(steps):.3f},", end=" ")
        print(f"messages {growth(messages):.3f}; {steps[:5]} {steps[-5:]}")
        assert growth(steps) <= 1.1
        assert growth(messages) <= 1.5


def _check_work(agent: trioloop.Agent) -> None:
    """Each policy did its work."""
    kinds = Counter(event.type for event in agent.session.events())
    codes = Counter(one.code for one in facts(agent, ToolResultLogged))
    print({kind: kinds[kind] for kind in sorted(KINDS)}, dict(codes))
    assert kinds["approval/answer"]
    assert kinds["plan/mode"]
    if TURNS >= GROWTH_FROM:
        assert {kind for kind in KINDS if kinds[kind]} >= KINDS - {"assistant/attempt"}
