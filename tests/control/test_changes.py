"""What has changed behind a cursor: nothing is missed, nothing is told twice, little is kept."""

from contextlib import aclosing

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from trioloop.control.changes import Changed, Changes
from trioloop.ids import SessionId

A, B, C = SessionId("a"), SessionId("b"), SessionId("c")
names = st.sampled_from([A, B, C, None])  # None: the questions


async def told_first(changes: Changes) -> tuple[Changed, Changed]:
    """What a new reader is told, and then of a change of B's."""
    async with aclosing(changes.each()) as each:
        first = await anext(each)
        changes.note(B)
        return first, await anext(each)


async def test_a_new_reader_looks_at_everything_then_at_what_changes() -> None:
    changes = Changes()
    changes.note(A)
    first, then = await told_first(changes)
    assert first.everything
    assert first.questions
    assert then == Changed(everything=False, agents=frozenset((B,)), questions=False)


async def test_who_waits_is_woken_by_the_next_change(autojump_clock: MockClock) -> None:
    changes, told = Changes(), list[Changed]()

    async def read() -> None:
        async with aclosing(changes.each()) as each:
            async for changed in each:
                told.append(changed)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        for _ in range(1_000):
            changes.note(A)
        changes.note_questions()
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert told[1:] == [Changed(everything=False, agents=frozenset((A,)), questions=True)]


@given(st.lists(st.tuples(names, st.booleans()), max_size=40), st.integers(1, 4))
def test_a_cursor_sees_each_change_behind_it_once(
    noted: list[tuple[SessionId | None, bool]], kept_max: int
) -> None:
    async def main() -> None:
        changes, since = Changes(kept_max), set[SessionId | None]()
        async with aclosing(changes.each()) as each:
            await anext(each)
            for name, reads in noted:
                if name is None:
                    changes.note_questions()
                else:
                    changes.note(name)
                since.add(name)
                if reads:
                    changed = await anext(each)
                    seen = {*changed.agents, *((None,) if changed.questions else ())}
                    assert changed.everything or seen == since
                    assert not changed.everything or len(since - {None}) > kept_max
                    since.clear()

    trio.run(main)
