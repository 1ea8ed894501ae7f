"""peers: a turn on trioloop to the same turn on pydantic-ai, openai-agents, langgraph and anyio.

Each runs in a process and an environment of its own, ours and theirs in turn; what is compared is
the CPU time of a turn, once everything is imported and one turn is over. Peers whose environment
wasn't made are skipped: `python -m bench.peers.environments` makes them.
"""

import json
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import attrs
import trio

from bench.peers.environments import PACKAGES, python_of, versions_of
from bench.report import Figure, compared
from bench.timing import Effort, Spent, Timed, alternate

NAME = "peers"
ROOT = Path(__file__).parents[2]
OURS = Path(sys.executable)


@attrs.frozen
class Turns:
    """Turns that everybody does."""

    case: str
    calls: int
    steps: int
    turns: int

    @property
    def arguments(self) -> Sequence[str]:
        """As `bench.peers.turns` reads them."""
        return [f"--{name}={getattr(self, name)}" for name in ("calls", "steps", "turns")]


WORK = (
    Turns("one-call", calls=1, steps=2, turns=40),
    Turns("100-calls", calls=100, steps=2, turns=5),
    Turns("50-steps", calls=1, steps=50, turns=3),
)


async def run(effort: Effort) -> AsyncGenerator[Figure, None]:
    """Each kind of turn on each peer that is there."""
    for peer in PACKAGES:
        if not python_of(peer).exists():
            print(
                f"peers: {peer} is skipped, because it isn't installed: "
                f"python -m bench.peers.environments {peer}",
                file=sys.stderr,
            )
            continue
        for work in WORK:
            yield await _compare(effort, peer, attrs.evolve(work, turns=effort.size(work.turns)))


async def _compare(effort: Effort, peer: str, work: Turns) -> Figure:
    timings = await alternate(
        _process(OURS, "trioloop", work), _process(python_of(peer), peer, work), effort.runs
    )
    return compared(NAME, f"{peer}-{work.case}", timings, unit="us/turn", versus=versions_of(peer))


def _process(python: Path, peer: str, work: Turns) -> Timed:
    """Time a process of its own: it tells what a turn took."""
    module = f"bench.peers.on_{peer.replace('-', '_')}"

    async def once() -> Spent:
        done = await trio.run_process(
            [str(python), "-m", module, *work.arguments], cwd=ROOT, capture_stdout=True
        )
        return Spent(**json.loads(done.stdout))

    return once
