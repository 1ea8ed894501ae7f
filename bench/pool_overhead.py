"""pool-overhead: a batch of no-op calls, through the pool alone and through a whole turn."""

from collections.abc import AsyncIterator

import trioloop
from bench.observed import observed_agent
from bench.raw_trio import nursery_with_limiter
from bench.report import Figure, alternate, cpu_time
from trioloop.models import ScriptedModel
from trioloop.testing import Text, ToolCall
from trioloop.tools.pool import Call, run_calls

NAME = "pool-overhead"
LIMIT = 8
SIZES = (1, 10, 100, 1000)
RUNS = 9


async def noop(index: int) -> int:
    """Do nothing."""
    return index


async def run() -> AsyncIterator[Figure]:
    """All cases."""
    for size in SIZES:
        yield await _alone(size)
    for size in SIZES:
        yield await _step(size)


async def _alone(size: int) -> Figure:
    calls = [Call(noop, (index,)) for index in range(size)]
    repeat = max(3, 2000 // size)
    ours, baseline = await alternate(
        cpu_time(lambda: run_calls(calls, limit=LIMIT), repeat, size),
        cpu_time(lambda: nursery_with_limiter(noop, size, LIMIT), repeat, size),
        RUNS,
    )
    return Figure(NAME, f"alone-n{size}", "us/call", tuple(ours), "raw-trio", tuple(baseline))


async def _step(size: int) -> Figure:
    asked = [ToolCall("noop", index=index) for index in range(size)]
    model = ScriptedModel(lambda request: Text("done") if _has_results(request) else [*asked])
    repeat = max(2, 50 // size)
    tool = trioloop.tool(effects="read-only", description="Does nothing.")(noop)
    async with observed_agent(model, [tool], trioloop.Limits(calls_max=LIMIT)) as agent:
        ours, baseline = await alternate(
            cpu_time(lambda: agent.ask("go"), repeat, size),
            cpu_time(lambda: nursery_with_limiter(noop, size, LIMIT), repeat * 10, size),
            RUNS,
        )
        facts: dict[str, float | int | str] = {"events": agent.session.seq + 1}
    return Figure(NAME, f"step-n{size}", "us/call", tuple(ours), "raw-trio", tuple(baseline), facts)


def _has_results(request: trioloop.Request) -> bool:
    history = request.history
    return not isinstance(history[len(history) - 1], trioloop.UserMessage)
