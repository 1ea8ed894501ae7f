"""Something ends the work before any of its task steps: what must hold wherever that was (G3, G5).

A turn's cancel, a disposal, a host's cancel, an asker's. Every place that waits does so twice, once
for a value that is handed over, so that a cancel can come too late for it. The test runtime checks
each log when it is left.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest
import trio

from tests.agent.reading import ends, facts, pending, reasons, status
from tests.agent.sweeping import SCENES, Fates, asked, check_fates, check_order
from trioloop.agent.agent import Agent
from trioloop.errors import AgentDisposedError
from trioloop.events import AssistantMessageLogged, Event, StepStarted
from trioloop.testing import CancelPoint, cancel_at_every_checkpoint

NAMES = sorted(SCENES)
SENDS_LATER = ("steer", "stopping")


def check_cancelled(agent: Agent, at: list[float], causes: set[str]) -> None:
    """What holds behind a cancel, wherever it came."""
    assert all(end.reason in ("completed", "error", "aborted") for end in ends(agent))
    assert {end.cause for end in ends(agent) if end.reason == "aborted"} <= causes
    errors = [end.code for end in ends(agent) if end.reason == "error"]
    assert errors in ([], ["SERVER"]), "only the retry scene's own turn may fail"
    if at:
        assert trio.current_time() == at[0], "a cancel takes no time"


class Canceller:
    """Does something at the point, and remembers when, and how long the log was."""

    def __init__(self, act: Callable[[], object], agent: Agent) -> None:
        self.at: list[float] = []
        self._act = act
        self._agent = agent
        self._seq = -1

    def __call__(self) -> None:
        self.at.append(trio.current_time())
        self._seq = self._agent.session.seq
        self._act()

    def behind(self) -> tuple[Event, ...]:
        """The events behind the point, once it was reached."""
        return self._agent.session.events(self._seq) if self.at else ()


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_cancelled_anywhere_closes_its_log_and_the_agent_goes_on(name: str) -> None:
    """No step begins behind the cancel, unless a message came after it (I4)."""
    scene = SCENES[name]
    messages: set[int] = set()

    async def run(point: CancelPoint) -> None:
        async with scene.open() as (_, agent):
            fates = Fates(agent)
            cancel = Canceller(lambda: agent.cancel("why"), agent)
            point.arm(cancel)
            await scene.act(agent)
            await agent.wait_idle()
            point.disarm()
            check_cancelled(agent, [] if name in SENDS_LATER else cancel.at, {"why"})
            if name not in SENDS_LATER:
                behind = cancel.behind()
                assert not any(isinstance(event.data, StepStarted) for event in behind)
            if not point.reached:
                assert trio.current_time() == scene.takes_s
                assert "aborted" not in reasons(agent)
            messages.add(len(facts(agent, AssistantMessageLogged)))
            while pending(agent) and "error" not in reasons(agent)[-1:]:
                agent.wake()
                await agent.wait_idle()
            check_fates(agent, fates)
            check_order(agent)

    assert cancel_at_every_checkpoint(run) > 20
    assert len(messages) > 1


@pytest.mark.parametrize("name", ["plain", "queue"])
def test_a_discarding_cancel_anywhere_leaves_nothing_pending(name: str) -> None:
    scene = SCENES[name]

    async def run(point: CancelPoint) -> None:
        async with scene.open() as (_, agent):
            fates = Fates(agent)
            cancel = Canceller(lambda: agent.cancel("why", discard_inbox=True), agent)
            point.arm(cancel)
            await scene.act(agent)
            await agent.wait_idle()
            point.disarm()
            check_cancelled(agent, cancel.at, {"why"})
            check_fates(agent, fates)
            assert pending(agent) == []

    assert cancel_at_every_checkpoint(run) > 20


@pytest.mark.parametrize(
    ("name", "discards"), [*((name, False) for name in NAMES), ("queue", True)]
)
def test_an_agent_disposed_of_anywhere_closes_its_log(name: str, discards: bool) -> None:
    scene = SCENES[name]

    async def run(point: CancelPoint) -> None:
        async with scene.open() as (runtime, agent):
            fates = Fates(agent)
            dispose = Canceller(
                lambda: agent.begin_disposal("disposed", discard_inbox=discards), agent
            )
            point.arm(dispose)
            with suppress(AgentDisposedError):
                await scene.act(agent)
            await agent.wait_idle()
            point.disarm()
            if point.reached:
                await agent.dispose()
                assert "a" not in runtime.agents
                assert status(agent) == "idle"
                if discards:
                    assert pending(agent) == []
            check_cancelled(agent, [] if name in SENDS_LATER else dispose.at, {"disposed"})
            check_fates(agent, fates)
            check_order(agent)

    assert cancel_at_every_checkpoint(run) > 20


@pytest.mark.parametrize("name", NAMES)
def test_a_host_cancelled_anywhere_leaves_whole_logs(name: str) -> None:
    scene = SCENES[name]

    async def run(point: CancelPoint) -> None:
        agents: list[Agent] = []
        fates: list[Fates] = []
        with trio.CancelScope() as host:
            async with scene.open() as (_, agent):
                cancel = Canceller(host.cancel, agent)
                agents.append(agent)
                fates.append(Fates(agent))
                point.arm(cancel)
                await scene.act(agent)
                await agent.wait_idle()
                point.disarm()
        point.disarm()
        assert host.cancelled_caught == point.reached
        check_cancelled(agents[0], cancel.at, {"host-cancelled"})
        check_fates(agents[0], fates[0])
        check_order(agents[0])
        assert agents[0].session.durable_seq == agents[0].session.seq

    assert cancel_at_every_checkpoint(run) > 20


@pytest.mark.parametrize("name", ["plain", "tools", "retry"])
def test_an_asker_cancelled_anywhere_leaves_nothing_running(name: str) -> None:
    scene = SCENES[name]

    async def run(point: CancelPoint) -> None:
        async with scene.open() as (_, agent):
            fates = Fates(agent)
            agent.inject("others")
            with trio.CancelScope() as asking:
                cancel = Canceller(asking.cancel, agent)
                point.arm(cancel)
                assert await asked(agent, "one") == "completed"
            await agent.wait_idle()
            point.disarm()
            check_cancelled(agent, cancel.at, {"asker-cancelled"})
            check_fates(agent, fates)
            discarded = [
                id
                for id, fate in agent.session.state.fates.items()
                if fate.status == "discarded" and fate.list == "next-step"
            ]
            assert discarded == []

    assert cancel_at_every_checkpoint(run) > 20
