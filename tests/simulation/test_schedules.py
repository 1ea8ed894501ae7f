"""The task order is drawn from the seed alone, and really differs from seed to seed."""

import pytest

from tests.simulation.script import (
    AgentScript,
    BodyAct,
    Deed,
    HookScript,
    Script,
    ToolScript,
    UserAct,
    UserScript,
)
from tests.simulation.world import run_script
from trioloop.testing import Answer, Text, ToolCall

SCHEDULES = 200
ORDERS_LEAST = 50

FIXED = Script(
    seed=0,
    agents=(AgentScript((Answer((Text("I look"), ToolCall("a"), ToolCall("b"))),)),) * 2,
    users=(
        UserScript((UserAct(0, Deed("followup", 0)), UserAct(0, Deed("steer", 1)))),
        UserScript((UserAct(0, Deed("followup", 1)), UserAct(0, Deed("inject", 0)))),
    ),
    tools=(
        ToolScript("a", "read-only", acts=(BodyAct("wait", 1),)),
        ToolScript("b", "read-only", acts=(BodyAct("context"),)),
    ),
    hooks=(HookScript("pre_step", "add", (1,)),),
)


def test_one_script_runs_in_many_task_orders(capsys: pytest.CaptureFixture[str]) -> None:
    orders = {run_script(FIXED, schedule=seed).order for seed in range(SCHEDULES)}
    with capsys.disabled():
        print(f"\n{len(orders)} task orders of {SCHEDULES} seeds:", *sorted(orders))
    assert len(orders) >= ORDERS_LEAST


def test_equal_seeds_give_equal_orders_and_logs() -> None:
    one, other = run_script(FIXED), run_script(FIXED)
    assert (one.order, one.digest) == (other.order, other.digest)
