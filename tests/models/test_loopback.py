"""The adapter against a real server on loopback: connections kept, broken, left and closed."""

import gc
import json
import random

import pytest
import trio
import trio.testing

from tests.models.asking import ask, collect, failure_of, make_request
from tests.models.serving import HALF, Connection, Loopback, loopback
from trioloop.chunks import TextDelta
from trioloop.events import CallConfig
from trioloop.messages import user_message
from trioloop.models import ConnectionLimits, Deadlines, OpenAIChat


def model_of(server: Loopback, **options: object) -> OpenAIChat:
    return OpenAIChat("m", base_url=server.base_url, **options)  # type: ignore[arg-type]


async def polite(connection: Connection) -> None:
    while await connection.request():
        await connection.answer()


async def test_many_requests_share_one_connection() -> None:
    async with loopback(polite) as server:
        model = model_of(server)
        for _ in range(50):
            assert (await ask(model)).assembled.message.text == "hi"
        assert server.connections == 1
        assert len(server.requests) == 50
        await model.aclose()


async def test_requests_at_once_have_a_connection_each() -> None:
    async with loopback(polite) as server:
        model = model_of(server)
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask, model)
        assert server.connections == 5
        await model.aclose()


async def test_a_kept_connection_that_the_server_closes_is_replaced_once_unnoticed() -> None:
    async def closes_instead_of_a_second_answer(connection: Connection) -> None:
        if await connection.request():
            await connection.answer()
        await connection.request()

    async with loopback(closes_instead_of_a_second_answer) as server:
        model = model_of(server)
        for _ in range(10):
            assert (await ask(model)).assembled.message.text == "hi"
        await model.aclose()


async def test_a_long_conversation_arrives_whole_also_where_it_is_sent_once_more() -> None:
    async def closes_instead_of_a_second_answer(connection: Connection) -> None:
        if await connection.request():
            await connection.answer()
        await connection.request()

    texts = [f"{number}: {'word ' * 100}" for number in range(500)]
    async with loopback(closes_instead_of_a_second_answer) as server:
        model = model_of(server)
        config = CallConfig(provider=model.provider, model=model.name)
        request = make_request(*map(user_message, texts), config=config)
        for _ in range(2):
            assert (await ask(model, request)).assembled.message.text == "hi"
        await model.aclose()
    assert len(server.requests) == 3
    for sent in server.requests:
        assert [message["content"] for message in json.loads(sent)["messages"]] == texts
    assert not any(b"transfer-encoding" in head for head in server.heads)


async def test_a_fresh_connection_that_the_server_closes_is_a_failure() -> None:
    async def closes_at_once(connection: Connection) -> None:
        await connection.request()

    async with loopback(closes_at_once) as server:
        model = model_of(server)
        failure = await failure_of(model)
        assert failure.code == "TRANSPORT"
        assert failure.retryable
        assert len(server.requests) == 1
        await model.aclose()


async def test_the_second_connection_is_the_last_try() -> None:
    async def answers_only_the_first_request(connection: Connection) -> None:
        if await connection.request() and connection.number == 1:
            await connection.answer()
            await connection.request()

    async with loopback(answers_only_the_first_request) as server:
        model = model_of(server)
        await ask(model)
        assert (await failure_of(model)).code == "TRANSPORT"
        assert server.connections == 2
        assert len(server.requests) == 3
        await model.aclose()


async def test_a_disconnect_in_the_middle_keeps_the_part_and_is_not_tried_again() -> None:
    async def breaks_off(connection: Connection) -> None:
        await connection.request()
        await connection.head()
        await connection.part(HALF)

    async with loopback(breaks_off) as server:
        model = model_of(server)
        chunks, failure = await collect(model)
        assert chunks == [TextDelta("par")]
        assert failure is not None
        assert failure.code == "TRANSPORT"
        assert len(server.requests) == 1
        await model.aclose()


async def test_a_server_that_is_not_there_is_a_transport_failure() -> None:
    async with loopback(polite) as server:
        pass
    failure = await failure_of(model_of(server))
    assert failure.code == "TRANSPORT"
    assert "can't be reached" in failure.message


async def test_a_stalled_server_is_left_at_the_deadline() -> None:
    async def stalls(connection: Connection) -> None:
        await connection.request()
        await connection.head()
        await connection.part(HALF)
        await connection.until_client_leaves()

    async with loopback(stalls) as server:
        model = model_of(server, deadlines=Deadlines(idle_bytes_s=0.05))
        failure = await failure_of(model)
        assert "idle_bytes_s" in failure.message
        with trio.fail_after(5):
            await server.left.wait()
        await model.aclose()


@pytest.mark.parametrize("how", ["leave", "cancel in a read", "cancel before the reply"])
async def test_the_server_sees_a_client_leave_at_once(how: str) -> None:
    async def goes_on_for_ever(connection: Connection) -> None:
        await connection.request()
        if how != "cancel before the reply":
            await connection.head()
            await connection.part(HALF)
        await connection.until_client_leaves()

    async with loopback(goes_on_for_ever) as server:
        model = model_of(server)
        call = await model.prepare(CallConfig(provider=model.provider, model=model.name))
        with trio.CancelScope() as scope:
            if how == "cancel before the reply":
                scope.deadline = trio.current_time() + 0.05
            async with call.stream(make_request(config=call.config)) as stream:
                await anext(stream)
                if how == "cancel in a read":
                    scope.deadline = trio.current_time() + 0.01
                    await anext(stream)
        with trio.fail_after(5):
            await server.left.wait()
        await model.aclose()
    gc.collect()  # a generator or socket left behind would be a warning now


async def test_many_cancelled_requests_leave_no_place_taken() -> None:
    async def slow(connection: Connection) -> None:
        while await connection.request():
            await trio.sleep(0.02)
            await connection.answer()

    async with loopback(slow) as server:
        model = model_of(server, limits=ConnectionLimits(connections_max=2))
        for _ in range(10):
            with trio.move_on_after(0.01):
                async with trio.open_nursery() as nursery:
                    for _ in range(6):
                        nursery.start_soon(ask, model)
        with trio.fail_after(5):
            assert (await ask(model)).assembled.message.text == "hi"
        await model.aclose()


async def test_closing_lets_an_exchange_under_way_end_and_the_model_can_go_on() -> None:
    begun, go_on = trio.Event(), trio.Event()

    async def waits(connection: Connection) -> None:
        while await connection.request():
            begun.set()
            await go_on.wait()
            await connection.answer()

    async with loopback(waits) as server:
        model = model_of(server)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, model)
            await begun.wait()
            await model.aclose()
            go_on.set()
        assert (await ask(model)).assembled.message.text == "hi"
        assert server.connections == 2
        await model.aclose()
        await model.aclose()


def test_a_model_may_serve_one_trio_run_after_another() -> None:
    models: list[OpenAIChat] = []

    async def first() -> int:
        async with loopback(polite) as server:
            models.append(model_of(server))
            await ask(models[0])
            return server.port

    async def second() -> None:
        async with loopback(polite, port) as server:
            assert (await ask(models[0])).assembled.message.text == "hi"
            assert server.connections == 1
            await models[0].aclose()

    port = trio.run(first)
    trio.run(second)
    gc.collect()


async def test_behind_200_requests_cancelled_at_random_the_next_goes_through_at_once() -> None:
    go_on = trio.Event()

    async def waits(connection: Connection) -> None:
        while await connection.request():
            await go_on.wait()
            await connection.answer()

    chance = random.Random(7)
    async with loopback(waits) as server:
        model = model_of(server, limits=ConnectionLimits(connections_max=5))
        for _ in range(4):
            async with trio.open_nursery() as nursery:
                scopes = [trio.CancelScope() for _ in range(50)]
                for scope in scopes:
                    nursery.start_soon(_ask_within, scope, model)
                await trio.testing.wait_all_tasks_blocked(0.01)
                for scope in chance.sample(scopes, len(scopes)):
                    scope.cancel()
                    if chance.random() < 0.5:
                        await trio.lowlevel.checkpoint()
        go_on.set()
        with trio.fail_after(5):
            assert (await ask(model)).assembled.message.text == "hi"
        await model.aclose()


async def _ask_within(scope: trio.CancelScope, model: OpenAIChat) -> None:
    with scope:
        await ask(model)
