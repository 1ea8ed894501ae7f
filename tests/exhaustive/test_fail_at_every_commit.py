"""Every commit goes wrong, in every way; then the log is taken up again (D3, P19, P20).

Each append is a commit of its own. Nothing starts once the store has failed, nothing in memory is
lost, and what is durable is the beginning of what was in memory.
"""

import attrs
import pytest

from tests.exhaustive.cancelling import go_on
from tests.exhaustive.checks import COMMITS, Ledger, check_durable, check_end, check_messages
from tests.exhaustive.scenes import SCENES, UNWATCHED, Scene, Stage
from trioloop.codec import encode_event
from trioloop.events import Event
from trioloop.ids import SessionId
from trioloop.testing import (
    FaultyStore,
    ScriptedModel,
    StoreFault,
    Text,
    fail_at_every_commit,
    open_test_runtime,
)

ONE_BY_ONE = attrs.evolve(UNWATCHED, commit_events_max=1)
FAULTS: dict[str, tuple[StoreFault, int | None]] = {
    "fails for good": ("fails", None),
    "fails once": ("fails", 1),
    "fails until it is healed": ("fails", None),
    "loses its answers": ("torn", None),
    "loses one answer": ("torn", 1),
    "is fenced": ("fenced", 1),
}
RECOVERS = ("fails once", "fails until it is healed", "loses one answer")
CODES = {"fails": "STORE_FAILED", "torn": "STORE_FAILED", "fenced": "FENCED"}


class Watcher:
    """Notes what begins though the store has failed."""

    def __init__(self, stage: Stage) -> None:
        self.began: list[Event] = []
        self._session = stage.agent.session
        self._session.observe(self._observe)

    def _observe(self, event: Event) -> None:
        if self._session.failure is not None and isinstance(event.data, COMMITS):
            self.began.append(event)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", SCENES)
def test_whichever_commit_goes_wrong_the_log_is_whole_and_goes_on(name: str, fault: str) -> None:
    scene = SCENES[name]
    kind, count = FAULTS[fault]

    async def run(store: FaultyStore) -> None:
        log = await _first_life(scene, fault, store, CODES[kind])
        await _second_life(store, log, is_whole=fault in RECOVERS or not store.failed)

    assert fail_at_every_commit(run, fault=kind, count=count) > 6


async def _first_life(scene: Scene, fault: str, store: FaultyStore, code: str) -> list[bytes]:
    """Run a scene on a store that goes wrong.

    Returns:
        Its log, as it was in memory.
    """
    async with scene.open(store=store, limits=ONE_BY_ONE) as stage:
        ledger, watcher = Ledger(stage), Watcher(stage)
        await scene.act(stage.agent)
        await stage.agent.wait_idle()
        _check_ends(ledger, scene, store, code)
        if fault in RECOVERS:
            store.heal()
            await stage.agent.session.retry_store()
            await go_on(stage.agent)
    assert watcher.began == []
    check_end(ledger)
    if fault in RECOVERS:
        check_durable(ledger)
    return [encode_event(event) for event in ledger.events]


def _check_ends(ledger: Ledger, scene: Scene, store: FaultyStore, code: str) -> None:
    """A turn that the failure met ended with it; those before it ended as they always do."""
    ends = [end for end in ledger.ends if end.code not in ("STORE_FAILED", "FENCED")]
    assert {end.code for end in ledger.ends} - {end.code for end in ends} <= {code}
    assert [end.reason for end in ends] == list(scene.ends)[: len(ends)]
    assert store.failed or len(ends) == len(scene.ends)


async def _second_life(store: FaultyStore, log: list[bytes], *, is_whole: bool) -> None:
    """Take the log up from the store inside, as another process would."""
    durable = [row.payload for row in await store.kept.read(SessionId("a"))]
    assert durable == log[: len(durable)]
    assert not is_whole or len(durable) == len(log)
    model = ScriptedModel(lambda request: Text("on"))
    async with open_test_runtime(model=model, store=store.kept) as runtime:
        agent = await runtime.resume_agent("a")
        loaded = [encode_event(event) for event in agent.session.events()]
        assert loaded[: len(durable)] == durable
        check_messages(agent.session)
        await go_on(agent)
        assert (await agent.ask("another")).reason == "completed"
        assert check_messages(agent.session) == []
