"""Does the profile of a turn tell whose the functions are that ran?"""

import pstats

from bench.where import TURNS, profiled, room_of, shares


async def test_a_turn_runs_functions_of_each_room() -> None:
    found = shares(pstats.Stats(await profiled(3, 2, bare=True)))
    for room in ("trioloop/agent", "trioloop/session", "trioloop/tools", "trioloop/log", "trio"):
        assert found[room].calls >= TURNS, room


async def test_more_calls_run_more_functions_of_the_tools() -> None:
    few, many = [
        shares(pstats.Stats(await profiled(calls, 2, bare=True)))["trioloop/tools"].calls
        for calls in (1, 20)
    ]
    assert many > 5 * few


def test_functions_that_attrs_wrote_count_for_their_module() -> None:
    generated = ("<attrs generated methods trioloop.hooks.points.Enter>", 29, "__init__")
    assert room_of(generated) == "trioloop/hooks"
    assert room_of(("/somewhere/site-packages/trio/_core/_run.py", 1, "spawn_impl")) == "trio"
    assert room_of(("/somewhere/json/encoder.py", 1, "encode")) == "elsewhere"
