"""What an exchange may use is bounded, and leaving it gives everything back."""

import httpx  # noqa: ASYNC127 - as in trioloop/models/transport.py
import pytest
import trio
import trio.testing

from tests.models.asking import collect, failure_of, make_request
from tests.models.serving import ANSWER, HALF, SSE, Pieces, mocked, streaming
from trioloop.events import CallConfig
from trioloop.models import ConnectionLimits, Deadlines

CONFIG = CallConfig(provider="api.test", model="m")
SILENCE = 1e6


def deadline(name: str) -> Deadlines:
    return Deadlines(**{name: 7.0})


async def test_a_response_beyond_its_limit_is_refused() -> None:
    model, _ = mocked(
        streaming(*[HALF] * 100), limits=ConnectionLimits(response_bytes_max=10 * len(HALF))
    )
    chunks, failure = await collect(model)
    assert len(chunks) == 10
    assert failure is not None
    assert failure.code == "MALFORMED_RESPONSE"


async def test_of_an_error_body_only_so_much_is_read() -> None:
    body = Pieces([b"x" * 1000] * 1000)
    model, _ = mocked(httpx.Response(500, stream=body), limits=ConnectionLimits(error_bytes_max=50))
    failure = await failure_of(model)
    assert failure.message == "500, server: " + "x" * 50
    assert body.closed


async def test_leaving_early_closes_the_reply() -> None:
    body = Pieces([HALF, HALF, SILENCE])
    model, _ = mocked(httpx.Response(200, headers=SSE, stream=body))
    call = await model.prepare(CONFIG)
    async with call.stream(make_request(config=CONFIG)) as stream:
        await anext(stream)
        assert not body.closed
    assert body.closed


async def test_a_cancel_in_the_middle_closes_the_reply_and_nothing_else_is_raised(
    autojump_clock: trio.testing.MockClock,
) -> None:
    body = Pieces([HALF, SILENCE])
    model, _ = mocked(httpx.Response(200, headers=SSE, stream=body))
    with trio.move_on_after(5) as scope:
        await collect(model)
    assert scope.cancelled_caught
    assert body.closed


async def test_a_cancel_before_the_reply_gives_the_place_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model, mock = mocked(SILENCE, streaming(ANSWER), limits=ConnectionLimits(connections_max=1))
    with trio.move_on_after(5):
        await collect(model)
    _, failure = await collect(model)
    assert failure is None
    assert len(mock.requests) == 2


async def test_exchanges_beyond_the_limit_wait_and_may_be_cancelled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model, mock = mocked(
        *[streaming(10.0, ANSWER) for _ in range(3)], limits=ConnectionLimits(connections_max=1)
    )

    async def give_up() -> None:
        with trio.move_on_after(5) as scope:
            await collect(model)
        assert scope.cancelled_caught

    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect, model)
        await trio.sleep(1)
        for _ in range(20):
            nursery.start_soon(give_up)
        await trio.sleep(1)
        nursery.start_soon(collect, model)
    assert len(mock.requests) == 2
    assert trio.current_time() == pytest.approx(20)


async def test_the_wait_for_a_place_counts_to_the_total(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model, _ = mocked(
        streaming(SILENCE),
        limits=ConnectionLimits(connections_max=1),
        deadlines=deadline("total_s"),
    )
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(failure_of, model)
    assert trio.current_time() == pytest.approx(7)
