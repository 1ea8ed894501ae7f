"""What holds for all tests: Hypothesis asserts no wall time, and tells how to replay a failure.

And a test that a stray `Cancelled` ends has not passed.
"""

import functools
import gc
import inspect
from collections.abc import Awaitable, Callable

import pytest
import trio
from hypothesis import HealthCheck, settings

settings.register_profile(
    "trioloop",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("trioloop")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let no `Cancelled` out of a test: the nursery around it would take it for a quiet end."""
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.obj = _held(item.obj)


def pytest_collection_finish() -> None:
    """Keep what was imported out of the collector's way: benchmarks collect before each timing."""
    gc.collect()
    gc.freeze()


def _held(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def run(**arguments: object) -> None:
        try:
            await test(**arguments)
        except trio.Cancelled as cancelled:
            raise AssertionError("a stray Cancelled came out of the test") from cancelled

    return run
