"""What is done to policies without waiting: plan mode selected, questions answered."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tests.simulation.policies.script import AnswerScript

if TYPE_CHECKING:
    from tests.simulation.lives import Life
    from tests.simulation.script import Deed, DeedKind
    from tests.simulation.world import World


def _select(world: "World", life: "Life", deed: "Deed", by: str) -> None:
    for whose, mode in world.policies.modes:
        if whose in (None, life.number) and not (life.disposing or world.left):
            mode.select(life.agent, active=deed.kind == "plan")


def _answer(world: "World", life: "Life", deed: "Deed", by: str) -> None:
    approvals = world.policies.approvals
    asked = () if approvals is None else approvals.open
    if asked:
        world.policies.answer(asked[deed.pick % len(asked)], AnswerScript(deed.pick % 3 != 0))


def _forget(world: "World", life: "Life", deed: "Deed", by: str) -> None:
    if world.policies.approvals is not None:
        world.policies.approvals.forget(life.agent)


POLICY_DEEDS: Mapping["DeedKind", Callable[["World", "Life", "Deed", str], None]] = {
    "plan": _select,
    "work": _select,
    "answer": _answer,
    "forget": _forget,
}
