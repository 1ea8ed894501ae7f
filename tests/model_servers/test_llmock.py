"""llmock breaks answers in every way it knows, on the three APIs, and has nothing to complain of.

Each fault is met by an agent of its own, which asks a model of the fault's name, so that all of
them can be met at once.
"""

import sys
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

import trioloop
from tests.model_servers.llmock import LlmockServer
from trioloop.agent.notifications import Settled
from trioloop.events import AssistantAttemptLogged, CallConfig, ToolResultLogged
from trioloop.models import Anthropic, Deadlines, OpenAIChat, OpenAIResponses
from trioloop.models.http_model import HttpModel
from trioloop.plugins import retry
from trioloop.ports import RetryPolicy

APIS: dict[str, Callable[..., HttpModel]] = {
    "chat": OpenAIChat,
    "responses": OpenAIResponses,
    "messages": Anthropic,
}
each_api = pytest.mark.parametrize("api", APIS)
POLICY = RetryPolicy(first_delay_s=0.6, delay_max_s=2, asked_delay_max_s=5)


@attrs.frozen
class Fault:
    """What llmock does to a request, and what is to come of it.

    Attributes:
        behaviours: in its words.
        codes: of the attempts that fail.
        ends: the code of the turn's error; None: it completes.
    """

    behaviours: tuple[dict[str, Any], ...]
    codes: tuple[str, ...] = ()
    ends: str | None = None


def fails(status: int, *codes: str, ends: str | None = None, **more: object) -> Fault:
    return Fault(({"type": "fail", "status": status, "times": len(codes), **more},), codes, ends)


def breaks(kind: str, *codes: str, **more: object) -> Fault:
    times = len(codes)
    fault = {"type": "stream_fault", "kind": kind, "after_chunks": 3, "times": times, **more}
    return Fault((fault,), codes)


def refused(status: int, ends: str, **more: object) -> Fault:
    return fails(status, ends, ends=ends, **more)


FAULTS = {
    "nothing": Fault(()),
    "timeout": fails(408, "TIMEOUT", "TIMEOUT"),
    "conflict": fails(409, "SERVER"),
    "rate": fails(429, "RATE_LIMIT", "RATE_LIMIT"),
    "rate-and-wait": fails(429, "RATE_LIMIT", "RATE_LIMIT", retry_after=1),
    "rate-and-wait-a-moment": fails(429, "RATE_LIMIT", retry_after=0.35),
    "server": fails(500, "SERVER", "SERVER", "SERVER"),
    "gateway": fails(502, "SERVER", "SERVER"),
    "unavailable": fails(503, "OVERLOADED", "OVERLOADED", retry_after=1),
    "late-gateway": fails(504, "SERVER"),
    "overloaded": fails(529, "OVERLOADED", "OVERLOADED"),
    "outage": fails(503, *["OVERLOADED"] * 6, ends="OVERLOADED", retry_after=0.1),
    "invalid": refused(400, "INVALID_REQUEST"),
    "key": refused(401, "AUTH"),
    "forbidden": refused(403, "AUTH"),
    "unknown": refused(404, "INVALID_REQUEST"),
    "unprocessable": refused(422, "INVALID_REQUEST"),
    "context": refused(400, "CONTEXT_WINDOW_EXCEEDED", code="context_length_exceeded"),
    "disconnect": breaks("disconnect", "TRANSPORT", "TRANSPORT"),
    "truncate": breaks("truncate", "TRUNCATED", "TRUNCATED"),
    "truncate-at-once": breaks("truncate", "TRUNCATED", "TRUNCATED", after_chunks=0),
    "malformed": breaks("malformed", "MALFORMED_RESPONSE", "MALFORMED_RESPONSE"),
    "stall": breaks("stall", "TIMEOUT", stall_seconds=8),
    "slow-token": Fault(({"type": "slow_first_token", "seconds": 0.3},)),
    "slow-reply": Fault(({"type": "delay", "seconds": 0.3},)),
}


def model_of(api: str, server: LlmockServer) -> HttpModel:
    return APIS[api](
        "any",
        base_url=server.base_url(api),
        provider="llmock",
        retry_policy=POLICY,
        deadlines=Deadlines(idle_bytes_s=2),
    )


@each_api
async def test_its_report_over_all_faults_has_no_complaint(
    llmock_server: LlmockServer, api: str
) -> None:
    await trio.to_thread.run_sync(llmock_server.reset)
    for name, fault in FAULTS.items():
        if fault.behaviours:
            aimed = [{**one, "match": {"model": name}} for one in fault.behaviours]
            await trio.to_thread.run_sync(llmock_server.script, *aimed)
    ends: dict[str, tuple[Settled, list[str]]] = {}

    async def meet(runtime: trioloop.Runtime, name: str) -> None:
        agent = await runtime.create_agent(
            name, config=CallConfig(provider="llmock", model=name, max_tokens=100)
        )
        with trio.fail_after(60):
            settled = await agent.ask("Say hello.")
        events = [event.data for event in agent.session.events()]
        codes = [
            event.failure.code
            for event in events
            if isinstance(event, AssistantAttemptLogged) and event.failure is not None
        ]
        ends[name] = settled, codes

    model = model_of(api, llmock_server)
    async with (
        trioloop.open_runtime(model=model, plugins=[retry], strict=True) as runtime,
        trio.open_nursery() as nursery,
    ):
        for name in FAULTS:
            nursery.start_soon(meet, runtime, name)
            await trio.sleep(0.05)  # so that delays don't drown in work
    for name, fault in FAULTS.items():
        settled, codes = ends[name]
        assert (name, codes) == (name, list(fault.codes))
        assert (name, settled.code) == (name, fault.ends)
        assert (name, settled.reason) == (name, "error" if fault.ends else "completed")
        assert fault.ends or settled.text
    requests = await trio.to_thread.run_sync(llmock_server.requests)
    for name, fault in FAULTS.items():
        asked = sum(request["model"] == name for request in requests)
        assert (name, asked) == (name, len(fault.codes) + (not fault.ends))
    assert "PASS" in await report(llmock_server)


async def report(server: LlmockServer) -> str:
    """What `llmock report` says of us; it may complain of nothing."""
    program = "from llmock.cli import app; app()"
    command = [sys.executable, "-c", program, "report", "--strict", "--url", server.url]
    done = await trio.run_process(command, capture_stdout=True, check=False)
    said = done.stdout.decode()
    assert done.returncode == 0, said
    return said


def broken_call(kind: str) -> dict[str, Any]:
    return {"type": "tool_fault", "kind": kind}


@each_api
@pytest.mark.parametrize(
    ("behaviours", "code", "ran"),
    [
        ((), None, ["mock-city"]),
        ((broken_call("malformed_arguments"),), "INVALID_ARGUMENTS", []),
        ((broken_call("unknown_tool"),), "UNKNOWN_TOOL", []),
    ],
    ids=["a whole call", "broken arguments", "an unknown tool"],
)
async def test_a_tool_runs_only_for_a_call_that_is_whole(
    llmock_server: LlmockServer,
    api: str,
    behaviours: tuple[dict[str, Any], ...],
    code: str | None,
    ran: list[str],
) -> None:
    await trio.to_thread.run_sync(llmock_server.reset)
    if behaviours:
        await trio.to_thread.run_sync(llmock_server.script, *behaviours)
    cities = []

    @trioloop.tool(effects="read-only")
    async def weather(city: str) -> str:
        """Get the weather of a city."""
        cities.append(city)
        return "sunny"

    model = model_of(api, llmock_server)
    async with trioloop.open_runtime(model=model, tools=[weather], strict=True) as runtime:
        agent = await runtime.create_agent("a")
        with trio.fail_after(60):
            settled = await agent.ask("What is the weather in Paris?")
        results = [
            event.data
            for event in agent.session.events()
            if isinstance(event.data, ToolResultLogged)
        ]
    assert settled.reason == "completed"
    assert settled.text
    assert [result.code for result in results] == [code]
    assert cities == ran
