"""Every wait for a model's server has a deadline, and a failure names the one that fired."""

import httpx  # noqa: ASYNC127 - as in trioloop/models/transport.py
import pytest
import trio
import trio.testing

from tests.models.asking import ask, collect, failure_of, make_request
from tests.models.serving import ANSWER, HALF, Pieces, mocked, streaming
from trioloop.chunks import Finish, TextDelta
from trioloop.events import CallConfig
from trioloop.models import Deadlines

CONFIG = CallConfig(provider="api.test", model="m")
SILENCE = 1e6


def deadline(name: str) -> Deadlines:
    return Deadlines(**{name: 7.0})


async def test_a_late_connection_names_its_deadline() -> None:
    model, _ = mocked(httpx.ConnectTimeout("late"), deadlines=deadline("connect_s"))
    failure = await failure_of(model)
    assert failure.code == "TIMEOUT"
    assert failure.message == "api.test didn't accept a connection within 7 s (deadline connect_s)"


async def test_a_late_first_byte_names_its_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model, _ = mocked(SILENCE, deadlines=deadline("first_byte_s"))
    failure = await failure_of(model)
    assert failure.code == "TIMEOUT"
    assert "deadline first_byte_s" in failure.message
    assert trio.current_time() == pytest.approx(7)


async def test_a_silent_stream_names_its_deadline_and_keeps_its_part(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model, _ = mocked(streaming(HALF, 6.0, HALF, SILENCE), deadlines=deadline("idle_bytes_s"))
    chunks, failure = await collect(model)
    assert chunks == [TextDelta("par"), TextDelta("par")]
    assert failure is not None
    assert failure.code == "TIMEOUT"
    assert "deadline idle_bytes_s" in failure.message
    assert trio.current_time() == pytest.approx(13)


async def test_comments_are_no_progress_for_ever(autojump_clock: trio.testing.MockClock) -> None:
    pings = [piece for _ in range(100) for piece in (1.0, b": ping\n\n")]
    model, _ = mocked(streaming(HALF, *pings), deadlines=deadline("idle_progress_s"))
    failure = await failure_of(model)
    assert "deadline idle_progress_s" in failure.message
    assert trio.current_time() == pytest.approx(7)


async def test_a_stream_that_never_ends_names_its_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    parts = [piece for _ in range(100) for piece in (1.0, HALF)]
    model, _ = mocked(streaming(*parts), deadlines=deadline("total_s"))
    chunks, failure = await collect(model)
    assert failure is not None
    assert "deadline total_s" in failure.message
    assert len(chunks) in {6, 7}


async def test_an_error_body_that_never_ends_is_told_by_its_status(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model, _ = mocked(httpx.Response(503, stream=Pieces([b"{", SILENCE])))
    assert (await failure_of(model)).code == "OVERLOADED"


async def test_once_the_finish_is_told_the_end_is_not_waited_for_long(
    autojump_clock: trio.testing.MockClock,
) -> None:
    finish = ANSWER.replace(b"data: [DONE]\n\n", b"")
    model, _ = mocked(streaming(finish, SILENCE))
    asked = await ask(model)
    assert asked.assembled.finish == Finish("stop", "stop")
    assert trio.current_time() < 10


async def test_a_caller_that_waits_between_reads_is_no_late_server(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model, _ = mocked(streaming(HALF, ANSWER), deadlines=deadline("idle_bytes_s"))
    call = await model.prepare(CONFIG)
    async with call.stream(make_request(config=CONFIG)) as stream:
        assert list(await anext(stream)) == [TextDelta("par")]
        await trio.sleep(100)
        assert Finish("stop", "stop") in list(await anext(stream))
