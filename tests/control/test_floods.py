"""Who sends too fast is told once, is forgiven after a pause, and is cut otherwise."""

import json

import pytest
import trio.testing

from tests.control.raw_client import raw_connection
from tests.control.serving import served
from trioloop.control import ControlLimits
from trioloop.control.connection import Connection, ConnectionEndedError

LIMITS = ControlLimits(messages_burst_max=3, messages_per_s_max=1)


async def ask(connection: Connection, id: int) -> str:
    """What a request comes to: its code, or `done`."""
    await connection.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "runtime/info"}))
    answer = json.loads(await connection.receive())
    assert answer["id"] == id
    code: str = answer["error"]["data"]["code"] if "error" in answer else "done"
    return code


async def test_the_first_message_too_many_is_told_so_and_the_second_is_the_last(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with served(limits=LIMITS) as there, raw_connection(there.address) as connection:
        assert [await ask(connection, id) for id in range(4)] == ["done"] * 3 + ["rate_limited"]
        with pytest.raises(ConnectionEndedError) as caught:
            await ask(connection, 4)
        assert caught.value.close_code == 1008


async def test_who_was_told_and_then_waits_is_told_again_before_it_is_cut(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with served(limits=LIMITS) as there, raw_connection(there.address) as connection:
        for round in range(3):
            told = [await ask(connection, 10 * round + number) for number in range(4)]
            assert told == ["done"] * 3 + ["rate_limited"]
            mock_clock.jump(3)
