"""Places that pools share: fair, and lent to nested calls (T3, T14)."""

from collections.abc import Sequence

import trio
from trio.testing import MockClock

from tests.tools.batches import Step, nap, naps, step_of
from trioloop.events import ToolCallStarted
from trioloop.hooks import CallRequest, Next
from trioloop.ports import ToolOutcome
from trioloop.tools import ToolContext, tool
from trioloop.tools.places import Place, Places
from trioloop.tools.pool import Call, run_calls


async def test_pools_that_share_places_take_turns(autojump_clock: MockClock) -> None:
    places = Places(1)
    steps = [step_of(nap) for _ in range(3)]
    async with trio.open_nursery() as nursery:
        for step in steps:
            step.places = places
            nursery.start_soon(step.run, *naps(1, 1))
    assert trio.current_time() - min(min(step.recorded_at.values()) for step in steps) == 5
    for step in steps:  # nobody had a second place before everybody had a first
        first, second = step.recorded_at.values()
        assert second - first == 3
    assert places.free == 1


async def test_a_call_cancelled_while_it_waits_for_a_place_takes_none(
    autojump_clock: MockClock,
) -> None:
    places = Places(1, wider=Places(3))
    step = step_of(nap)
    step.places = places
    await places.take()
    with trio.move_on_after(1):
        await step.run(*naps(1, 1))
    assert step.codes == ["TOOL_ABORTED_BEFORE_DISPATCH"] * 2
    places.give()
    assert places.free == 1


async def test_no_place_is_lost_when_the_wider_ones_are_waited_for_in_vain(
    autojump_clock: MockClock,
) -> None:
    wider = Places(1)
    narrow = Places(1, wider=wider)
    await wider.take()
    assert not narrow.take_nowait()
    with trio.move_on_after(1):
        await narrow.take()
    assert narrow.free == 1
    wider.give()
    assert narrow.take_nowait()


async def test_a_body_that_lends_its_place_lets_its_own_calls_run_under_a_limit_of_one(
    autojump_clock: MockClock,
) -> None:
    places = Places(1)

    async def inner(index: int) -> int:
        place = Place(places)
        await place.take()
        try:
            await trio.sleep(1)
        finally:
            place.give_back()
        return index

    async def outer() -> list[int]:
        place = Place(places)
        await place.take()
        try:
            async with place.lent():
                results = await run_calls([Call(inner, (index,)) for index in range(3)], limit=3)
        finally:
            place.give_back()
        return [result.unwrap() for result in results]

    with trio.fail_after(10):
        assert await outer() == [0, 1, 2]
    assert places.free == 1


async def test_a_lent_place_is_others_until_the_block_is_left(autojump_clock: MockClock) -> None:
    starts: dict[str, float] = {}

    @tool(effects="read-only")
    async def lender(context: ToolContext) -> float:
        """Lend the place for 5 s, then work for 1 s."""
        async with context.lend_place():
            await trio.sleep(5)
        began = trio.current_time()
        await trio.sleep(1)
        return began

    def places_of(steps: Sequence[Step]) -> None:
        for step in steps:
            step.places = places

    places = Places(1)
    one, other = step_of(), step_of(nap)
    one.tools.register(lender)
    places_of([one, other])
    other.session.observe(
        lambda event: (
            starts.update({event.data.call: trio.current_time()})
            if isinstance(event.data, ToolCallStarted)
            else None
        )
    )
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run, ("lender", {}))
        await trio.sleep(1)
        nursery.start_soon(other.run, *naps(7))
    assert float(one.texts[0]) - began == 8
    assert trio.current_time() - began == 9
    assert places.free == 1


async def test_a_call_that_was_handed_a_place_as_it_was_cancelled_does_not_run(
    autojump_clock: MockClock,
) -> None:
    places, asked = Places(1), list[str]()
    step = step_of(nap)
    step.places = places
    await places.take()

    @step.hooks.execute
    async def around(request: CallRequest, next: Next[ToolOutcome]) -> ToolOutcome:
        asked.append(request.call)
        return await next()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(step.run, *naps(1))
        await trio.sleep(1)
        places.give()
        nursery.cancel_scope.cancel()
    assert step.codes == ["TOOL_ABORTED_BEFORE_DISPATCH"]
    assert not asked
    assert places.free == 1
