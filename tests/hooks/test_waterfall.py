"""How listeners of a waterfall wrap each other around a default answer (H1 to H3)."""

from collections.abc import Awaitable, Callable

import attrs
import pytest
import trio
from trio.testing import MockClock

from trioloop.errors import HookMisuseError, HookTimeoutError, InvalidInputError
from trioloop.hooks.dispatch import (
    Next,
    Serial,
    Waterfall,
    ask_waterfall,
    raised_by,
    run_serial,
    run_waterfall,
)


def make_hook() -> Waterfall[str, str]:
    """A hook of text."""
    return Waterfall[str, str]("test.hook")


async def default() -> str:
    """The default answer."""
    await trio.lowlevel.checkpoint()
    return "default"


def wrapping(mark: str) -> Callable[[str, Next[str]], Awaitable[str]]:
    """A listener that puts marks around the answer."""

    async def listener(payload: str, next: Next[str]) -> str:
        return f"{mark}({await next()})"

    return listener


async def test_without_listeners_the_answer_is_the_default() -> None:
    assert await run_waterfall([make_hook(), make_hook()], "p", default) == "default"


async def test_listeners_wrap_in_order_of_registration_outermost_first() -> None:
    hook = make_hook()
    hook.add(wrapping("a"))
    hook.add(wrapping("b"))
    assert await run_waterfall([hook], "p", default) == "a(b(default))"


async def test_a_wider_scope_wraps_a_narrower_one() -> None:
    wide, narrow = make_hook(), make_hook()
    narrow.add(wrapping("n"))
    wide.add(wrapping("w"))
    assert await run_waterfall([wide, narrow], "p", default) == "w(n(default))"


async def test_a_decorated_listener_is_registered_and_stays_itself() -> None:
    hook = make_hook()

    @hook
    async def listener(payload: str, next: Next[str]) -> str:
        return payload

    assert await run_waterfall([hook], "p", default) == "p"
    assert await listener("direct", default) == "direct"


async def test_a_listener_may_answer_alone() -> None:
    hook, asked = make_hook(), list[str]()

    @hook
    async def outer(payload: str, next: Next[str]) -> str:
        return "mine"

    @hook
    async def inner(payload: str, next: Next[str]) -> str:
        asked.append(payload)
        return await next()

    assert await run_waterfall([hook], "p", default) == "mine"
    assert asked == []


async def test_a_second_next_raises_and_asks_nobody_again() -> None:
    hook, asked = make_hook(), list[str]()

    @hook
    async def twice(payload: str, next: Next[str]) -> str:
        await next()
        return await next()

    @hook
    async def inner(payload: str, next: Next[str]) -> str:
        asked.append("inner")
        return await next()

    with pytest.raises(HookMisuseError, match="twice") as caught:
        await run_waterfall([hook], "p", default)
    assert asked == ["inner"]
    assert (raised_by(caught.value) or "").endswith("twice")


async def test_each_listener_has_a_next_of_its_own() -> None:
    """An inner listener that calls `next` once is not counted against the outer one."""
    hook = make_hook()
    for mark in "abc":
        hook.add(wrapping(mark))
    for _ in range(3):
        assert await run_waterfall([hook], "p", default) == "a(b(c(default)))"


async def test_a_closed_registration_is_not_asked() -> None:
    hook = make_hook()
    with hook.add(wrapping("a")):
        assert await run_waterfall([hook], "p", default) == "a(default)"
    assert await run_waterfall([hook], "p", default) == "default"
    assert not hook


async def test_one_function_registered_twice_is_removed_once() -> None:
    hook, listener = make_hook(), wrapping("a")
    first = hook.add(listener)
    hook.add(listener)
    first.close()
    first.close()
    assert await run_waterfall([hook], "p", default) == "a(default)"


async def test_a_dispatch_uses_the_listeners_of_its_beginning() -> None:
    hook = make_hook()

    @hook
    async def adds(payload: str, next: Next[str]) -> str:
        registration.close()
        hook.add(wrapping("late"))
        return await next()

    registration = hook.add(wrapping("early"))
    assert await run_waterfall([hook], "p", default) == "early(default)"
    assert await run_waterfall([hook], "p", default) == "late(default)"


async def test_what_a_listener_raises_comes_out_and_names_it() -> None:
    hook = make_hook()
    error = ValueError("mine")

    @hook
    async def outer(payload: str, next: Next[str]) -> str:
        return await next()

    @hook
    async def broken(payload: str, next: Next[str]) -> str:
        raise error

    with pytest.raises(ValueError, match="mine") as caught:
        await run_waterfall([hook], "p", default)
    assert caught.value is error
    assert (raised_by(error) or "").endswith("broken")


async def test_what_the_default_raises_is_blamed_on_nobody_without_listeners() -> None:
    async def failing() -> str:
        raise ValueError("ours")

    with pytest.raises(ValueError, match="ours") as caught:
        await run_waterfall([make_hook()], "p", failing)
    assert raised_by(caught.value) is None


async def test_a_frozen_exception_comes_out_as_it_is() -> None:
    @attrs.frozen
    class FrozenError(Exception):
        what: str

    hook = make_hook()

    @hook
    async def broken(payload: str, next: Next[str]) -> str:
        raise FrozenError("mine")

    with pytest.raises(FrozenError) as caught:
        await run_waterfall([hook], "p", default)
    assert (raised_by(caught.value) or "").endswith("broken")


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan")])
def test_a_timeout_that_is_no_time_is_refused(timeout_s: float) -> None:
    with pytest.raises(InvalidInputError):
        make_hook().add(wrapping("a"), timeout_s=timeout_s)


def test_what_cant_be_called_is_no_listener() -> None:
    with pytest.raises(InvalidInputError):
        make_hook().add("text")  # type: ignore[arg-type]


# Time


async def test_a_listener_over_its_time_is_cancelled_and_named(autojump_clock: MockClock) -> None:
    hook = make_hook()

    async def slow(payload: str, next: Next[str]) -> str:
        await trio.sleep(10)
        return await next()

    hook.add(slow, timeout_s=2)
    with pytest.raises(HookTimeoutError, match="slow") as caught:
        await run_waterfall([hook], "p", default)
    assert trio.current_time() == 2
    assert (raised_by(caught.value) or "").endswith("slow")


async def test_time_inside_next_does_not_count(autojump_clock: MockClock) -> None:
    hook = make_hook()

    async def measured(payload: str, next: Next[str]) -> str:
        await trio.sleep(1)
        answer = await next()
        await trio.sleep(0.5)
        return answer

    async def slow() -> str:
        await trio.sleep(100)
        return "slow"

    hook.add(measured, timeout_s=2)
    assert await run_waterfall([hook], "p", slow) == "slow"
    assert trio.current_time() == 101.5


async def test_time_before_and_after_next_counts_together(autojump_clock: MockClock) -> None:
    hook = make_hook()

    async def measured(payload: str, next: Next[str]) -> str:
        await trio.sleep(1.5)
        answer = await next()
        await trio.sleep(1.5)
        return answer

    async def slow() -> str:
        await trio.sleep(100)
        return "slow"

    hook.add(measured, timeout_s=2)
    with pytest.raises(HookTimeoutError):
        await run_waterfall([hook], "p", slow)
    assert trio.current_time() == 102


async def test_an_inner_listener_that_times_out_is_the_one_named(
    autojump_clock: MockClock,
) -> None:
    hook = make_hook()

    async def outer(payload: str, next: Next[str]) -> str:
        return await next()

    async def inner(payload: str, next: Next[str]) -> str:
        await trio.sleep(10)
        return await next()

    hook.add(outer, timeout_s=1)
    hook.add(inner, timeout_s=5)
    with pytest.raises(HookTimeoutError) as caught:
        await run_waterfall([hook], "p", default)
    assert trio.current_time() == 5
    assert (raised_by(caught.value) or "").endswith("inner")


async def test_a_cancel_from_outside_is_no_timeout(autojump_clock: MockClock) -> None:
    hook = make_hook()

    async def slow(payload: str, next: Next[str]) -> str:
        await trio.sleep(10)
        return await next()

    hook.add(slow, timeout_s=5)
    with trio.move_on_after(1) as scope:
        await run_waterfall([hook], "p", default)
    assert scope.cancelled_caught
    assert trio.current_time() == 1


# Serial hooks


async def test_a_serial_hook_asks_all_whatever_they_return() -> None:
    wide, narrow = Serial[str]("test.serial"), Serial[str]("test.serial")
    asked: list[str] = []

    def listener(mark: str) -> Callable[[str], Awaitable[object]]:
        async def listen(payload: str) -> object:
            await trio.lowlevel.checkpoint()
            asked.append(mark + payload)
            return True

        return listen

    narrow.add(listener("n"))
    wide.add(listener("w1"))
    wide.add(listener("w2"))
    await run_serial([wide, narrow], "!")
    assert asked == ["w1!", "w2!", "n!"]


async def test_a_serial_listener_that_raises_stops_the_rest_and_is_named() -> None:
    hook, asked = Serial[str]("test.serial"), list[str]()

    @hook
    async def broken(payload: str) -> None:
        raise ValueError("mine")

    @hook
    async def behind(payload: str) -> None:
        asked.append(payload)

    with pytest.raises(ValueError, match="mine") as caught:
        await run_serial([hook], "p")
    assert asked == []
    assert (raised_by(caught.value) or "").endswith("broken")


async def test_a_serial_listener_over_its_time_is_cancelled(autojump_clock: MockClock) -> None:
    hook = Serial[str]("test.serial")

    async def slow(payload: str) -> None:
        await trio.sleep(10)

    hook.add(slow, timeout_s=2)
    with pytest.raises(HookTimeoutError):
        await run_serial([hook], "p")
    assert trio.current_time() == 2


async def test_a_serial_dispatch_uses_the_listeners_of_its_beginning() -> None:
    wide, narrow = Serial[str]("test.serial"), Serial[str]("test.serial")
    asked: list[str] = []

    async def late(payload: str) -> None:
        asked.append(payload)

    @wide
    async def registering(payload: str) -> None:
        narrow.add(late)

    await run_serial([wide, narrow], "first")
    assert asked == []
    await run_serial([wide, narrow], "second")
    assert asked == ["second"]


async def test_an_answer_is_told_as_that_of_whoever_changed_it_last() -> None:
    hook = make_hook()

    @hook
    async def passing(payload: str, next: Next[str]) -> str:
        return await next()

    @hook
    async def changing(payload: str, next: Next[str]) -> str:
        return f"{await next()}, changed"

    @hook
    async def inner(payload: str, next: Next[str]) -> str:
        return f"{await next()}, inner"

    answered = await ask_waterfall([hook], "p", default)
    assert answered.answer == "default, inner, changed"
    assert (answered.by or "").endswith("changing")
