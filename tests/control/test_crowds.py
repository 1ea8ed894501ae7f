"""A thousand connections, a tenth of which never read, while fifty agents run (control.md).

CI has a hundred; `TRIOLOOP_CROWD=1000` has them all, and then looks at the clock, too.
`python -m bench control` tells what they cost.
"""

import os
import re
import statistics
from itertools import chain
from pathlib import Path

import trio

from bench.control import paced
from bench.crowd import crowd
from tests.control.serving import served
from trioloop import Agent
from trioloop.control import ControlLimits
from trioloop.testing import ScriptedModel, Text

CONNECTIONS = int(os.environ.get("TRIOLOOP_CROWD", "100"))
IS_WHOLE = CONNECTIONS >= 1_000
STOPPED = CONNECTIONS // 10
AGENTS = 50
CHUNKS, CHUNK_CHARS = (100, 400) if IS_WHOLE else (40, 600)
TURN_S = 10.0 if IS_WHOLE else 1.6
TURNS = 3
GROWTH_KIB_MAX = 16 * 1024
ROOM = ControlLimits(
    connections_max=CONNECTIONS + 10,
    peer_connections_max=CONNECTIONS + 10,
    unproven_connections_max=CONNECTIONS + 10,
    send_s=600,  # who never reads stays, which is worse than to be closed after 10 s
    ping_s=600,
)


async def turn_of_each(agents: list[Agent]) -> list[float]:
    """Let all agents take a turn, not in step; how long each took, in seconds."""
    spent = list[float]()

    async def ask(agent: Agent) -> None:
        await trio.sleep(TURN_S / 2 * agents.index(agent) / len(agents))
        began = trio.current_time()
        settled = await agent.ask("go")
        assert len(settled.text) == CHUNKS * CHUNK_CHARS
        spent.append(trio.current_time() - began)

    async with trio.open_nursery() as nursery:
        for agent in agents:
            nursery.start_soon(ask, agent)
    return spent


def memory_kib() -> int:
    """What this process holds in memory."""
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1])


def unsent(port: int) -> int:
    """How many connections of a port have bytes that their peers don't take."""
    count = 0
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        _, local, _, state, queues, *_ = line.split()
        is_ours = int(local.rpartition(":")[2], 16) == port and state == "01"  # established
        count += is_ours and int(queues.partition(":")[0], 16) > 0
    return count


async def test_agents_run_as_if_nobody_watched_and_memory_stays_flat() -> None:
    words = [Text("x" * CHUNK_CHARS)] * CHUNKS
    async with served(
        ScriptedModel(lambda _: words), limits=ROOM, hooks=[paced(TURN_S / CHUNKS)]
    ) as there:
        names = [f"agent-{number}" for number in range(AGENTS)]
        agents = [await there.runtime.create_agent(name) for name in names]
        await turn_of_each(agents)
        before_kib = memory_kib()
        alone = [await turn_of_each(agents) for _ in range(TURNS - 1)]
        kept_kib = memory_kib() - before_kib  # the logs themselves
        async with crowd(
            there.address, names, connections=CONNECTIONS, stopped=STOPPED
        ) as watching:
            for _ in range(TURNS):
                await watching.tells()  # what was in the logs already
            await turn_of_each(agents)
            await watching.tells()
            before_kib = memory_kib()
            watched = list[list[float]]()
            for _ in range(TURNS - 1):
                watched.append(await turn_of_each(agents))
                await watching.tells()
            grown_kib = memory_kib() - before_kib - kept_kib
            assert there.endpoint.connections == CONNECTIONS
            assert unsent(int(there.endpoint.url.rpartition(":")[2].strip("/"))) == STOPPED
        with trio.fail_after(30):
            while there.endpoint.connections:  # noqa: ASYNC110 - nothing tells
                await trio.sleep(0.01)
    assert grown_kib < GROWTH_KIB_MAX
    usual = statistics.median(chain(*alone))
    ratio, worst = statistics.median(chain(*watched)) / usual, max(chain(*watched)) / usual
    print(
        f"a turn took {ratio:.3f} of what it takes alone ({usual:.2f} s), at worst {worst:.3f}; "
        f"{grown_kib} KiB more than the logs"
    )
    assert not IS_WHOLE or ratio < 1.5  # noise of a machine that does other things, too
