"""Where a turn's time goes: `python -m bench.where [--calls N] [--steps N] [--bare] [--top N]`.

Runs turns of an agent under Python's profiler, and tells for each room of trioloop, and for Trio,
how many functions ran in a turn and which part of the time was their own. Built-in functions count
for whoever called them. Calls are counted, so on a busy machine they say more than the times do.
"""

import argparse
import cProfile
import pstats
import re
from collections import defaultdict
from itertools import chain, cycle

import attrs
import trio

import trioloop
from bench.observed import listen, observed_agent
from bench.prepared_model import DONE, PreparedModel, calls_of

TURNS = 30
Function = tuple[str, int, str]  # file, line, name: as pstats has it


@attrs.define
class Share:
    """What one room took in all turns.

    Attributes:
        calls: of functions.
        seconds: of their own.
    """

    calls: int = 0
    seconds: float = 0


async def noop(index: int) -> int:
    """Do nothing."""
    return index


async def profiled(calls: int, steps: int, *, bare: bool) -> cProfile.Profile:
    """The profile of some turns.

    Args:
        calls: of each step but the last.
        steps: of each turn.
        bare: without listeners, a subscriber and a watcher.
    """
    asked = [calls_of("noop", calls, step * calls) for step in range(steps - 1)]
    answers = chain([DONE], cycle([*asked, DONE]))
    tool = trioloop.tool(effects="read-only")(noop)
    profile = cProfile.Profile()
    async with observed_agent(
        PreparedModel(lambda request: next(answers), encodes=True),
        [tool],
        hooks=() if bare else (listen,),
        watched=not bare,
        subscribed=not bare,
    ) as agent:
        await agent.ask("hello")
        await agent.ask("warm up")
        profile.enable()
        for _ in range(TURNS):
            await agent.ask("go")
        profile.disable()
    return profile


def room_of(function: Function) -> str:
    """Whose a function is: a room of trioloop, or a package."""
    path = function[0]
    generated = re.match(r"<attrs generated methods ([\w.]+)", path)
    if generated:
        path = generated[1].rpartition(".")[0].replace(".", "/") + ".py"
    ours = re.search(r"trioloop/(\w+)", path)
    if ours:
        return f"trioloop/{ours[1]}"
    for package in ("trio", "contextlib", "bench"):
        if re.search(rf"(^|/){package}[/.]", path):
            return package
    return "elsewhere"


def shares(stats: pstats.Stats) -> dict[str, Share]:
    """What each room took."""
    found: dict[str, Share] = defaultdict(Share)
    for function, (_, calls, seconds, _, callers) in stats.stats.items():  # type: ignore[attr-defined]
        if function[0] != "~":
            found[room_of(function)].calls += calls
            found[room_of(function)].seconds += seconds
            continue
        for caller, (_, called, own, _) in callers.items():
            room = "elsewhere" if caller[0] == "~" else room_of(caller)
            found[room].calls += called
            found[room].seconds += own
    return found


def print_shares(found: dict[str, Share]) -> None:
    """Print the rooms, those that take most first."""
    whole = sum(share.seconds for share in found.values())
    print(f"{'room':20} {'calls/turn':>10} {'own time':>9}")
    for room, share in sorted(found.items(), key=lambda item: -item[1].seconds):
        print(f"{room:20} {share.calls / TURNS:10.1f} {share.seconds / whole:9.1%}")
    calls = sum(share.calls for share in found.values())
    print(
        f"{'all':20} {calls / TURNS:10.1f} {whole / TURNS * 1e6:6.0f} us a turn, profiler included"
    )


def main() -> None:
    """Read the command line, profile, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.where", description=__doc__)
    parser.add_argument("--calls", type=int, default=1, help="of each step but the last")
    parser.add_argument("--steps", type=int, default=2, help="of each turn")
    parser.add_argument("--bare", action="store_true", help="nobody listens, reads or watches")
    parser.add_argument("--top", type=int, default=25, help="functions to show after the rooms")
    asked = parser.parse_args()
    profile = trio.run(lambda: profiled(asked.calls, asked.steps, bare=asked.bare))
    stats = pstats.Stats(profile)
    print_shares(shares(stats))
    stats.sort_stats("tottime").print_stats(asked.top)


if __name__ == "__main__":
    main()
