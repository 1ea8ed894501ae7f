"""A fold of an application's own gives the same state live as from the log, at every event (G9)."""

from hypothesis import given
from hypothesis import strategies as st

from tests.log.random_logs import written_logs
from tests.log.writing import LogWriter
from trioloop import Event, Fold
from trioloop.ids import SessionId
from trioloop.session import Session
from trioloop.testing import ScriptedModel, Text, open_test_runtime


def _counted(counts: tuple[tuple[str, int], ...], event: Event) -> tuple[tuple[str, int], ...]:
    before = dict(counts)
    return tuple({**before, event.type: before.get(event.type, 0) + 1}.items())


COUNTS: Fold[tuple[tuple[str, int], ...]] = Fold(tuple, _counted)


@given(written_logs(), st.data())
def test_a_fold_is_the_same_whenever_it_is_asked_for(log: LogWriter, data: st.DataObject) -> None:
    events = log.events
    session = Session(SessionId("a"), clock=lambda: 0)
    session.load(events)
    seen = data.draw(st.lists(st.integers(0, len(events)), max_size=4).map(sorted))
    for end in seen:
        session.load(events[:end])
        assert session.folded(COUNTS) == COUNTS(events[:end])


async def test_a_fold_follows_the_log_event_by_event() -> None:
    model = ScriptedModel([Text("1"), Text("2")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        seen: list[bool] = []
        agent.session.observe(
            lambda event: seen.append(
                agent.session.folded(COUNTS) == COUNTS(agent.session.events())
            )
        )
        await agent.ask("one")
        await agent.ask("two")
        assert len(seen) > 10
        assert all(seen)


async def test_each_event_is_folded_once() -> None:
    folded: list[int] = []

    def note(state: None, event: Event) -> None:
        folded.append(event.seq)

    fold: Fold[None] = Fold(lambda: None, note)
    async with open_test_runtime(model=ScriptedModel([Text("1")])) as runtime:
        agent = await runtime.create_agent("a")
        agent.session.folded(fold)
        await agent.ask("one")
        agent.session.folded(fold)
        agent.session.folded(fold)
        assert folded == list(range(agent.session.seq + 1))
