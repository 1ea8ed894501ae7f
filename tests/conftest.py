"""What holds for every test: one that a stray `Cancelled` ends has not passed."""

import functools
import inspect
from collections.abc import Awaitable, Callable

import pytest
import trio


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let no `Cancelled` out of a test: the nursery around it would take it for a quiet end."""
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.obj = _held(item.obj)


def _held(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def run(**arguments: object) -> None:
        try:
            await test(**arguments)
        except trio.Cancelled as cancelled:
            raise AssertionError("a stray Cancelled came out of the test") from cancelled

    return run
