"""A runtime with an endpoint, and a client of it, as most tests here need them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from trioloop import Agent, Runtime, SessionId
from trioloop.control import Control, ControlLimits, Endpoint, connect, serve
from trioloop.events import Event
from trioloop.plugins import Approvals
from trioloop.ports import SessionStore
from trioloop.testing import ScriptedModel, Text, open_test_runtime

ROOMY = ControlLimits(messages_burst_max=100_000, messages_per_s_max=100_000)


@attrs.frozen
class Served:
    """What is served, and how to get there."""

    runtime: Runtime
    endpoint: Endpoint
    address: str


@asynccontextmanager
async def served(
    model: ScriptedModel | None = None,
    *,
    limits: ControlLimits = ROOMY,
    listen: str = "127.0.0.1:0",
    store: SessionStore | Path | None = None,
    token: str | None = None,
    tls: Any = None,
    hosts: Sequence[str] = (),
    **options: Any,
) -> AsyncIterator[Served]:
    """A runtime and its endpoint, with a token that may do everything."""
    model = model or ScriptedModel(lambda _: Text("hi"))
    options.setdefault("approver", Approvals())
    async with (
        open_test_runtime(model=model, store=store, **options) as runtime,
        serve(runtime, limits=limits, listen=listen, tls=tls, hosts=hosts) as endpoint,
    ):
        shown = endpoint.tokens.issue("tests", "admin", token=token)
        yield Served(runtime, endpoint, endpoint.address(shown))


@asynccontextmanager
async def controlled(
    model: ScriptedModel | None = None, **options: Any
) -> AsyncIterator[tuple[Control, Runtime]]:
    """The same, with a client connected."""
    async with (
        served(model, **options) as there,
        connect(there.address, tls_context=options.get("tls")) as control,
    ):
        yield control, there.runtime


def agent_of(runtime: Runtime, name: str) -> Agent:
    """A live agent."""
    return runtime.agents[SessionId(name)]


async def read_log(control: Control, agent: str, *, upto: int, after: int = -1) -> list[Event]:
    """A session's events as a subscriber gets them, up to a seq."""
    events: list[Event] = []
    async with control.subscribe(agent, after=after) as feed:
        while after + len(events) < upto:
            told = await anext(feed)
            assert isinstance(told, Event)
            events.append(told)
    return events


def types(events: Sequence[Event]) -> list[str]:
    """Their wire names."""
    return [event.type for event in events]
