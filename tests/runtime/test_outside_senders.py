"""Sends from threads, signal handlers and guest-mode hosts (I1)."""

import logging
import queue
import threading
from collections.abc import Callable

import pytest
import trio

from tests.agent.reading import admitted, pending
from trioloop.errors import AgentDisposedError, DuplicateMessageError
from trioloop.messages import user_message
from trioloop.testing import ScriptedModel, Text, open_test_runtime


async def test_a_worker_thread_sends_and_has_the_answer() -> None:
    async with open_test_runtime(model=ScriptedModel([Text("hi")])) as runtime:
        agent = await runtime.create_agent("a")

        def work() -> str:
            return agent.from_thread.send(user_message("one", id="m-1"))

        assert await trio.to_thread.run_sync(work) == "m-1"
        await agent.wait_idle()
        assert admitted(agent) == ["one"]


async def test_a_worker_thread_gets_the_error_of_its_send() -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        agent.inject(user_message("one", id="m-1"))

        def work() -> None:
            agent.from_thread.send(user_message("one", id="m-1"))

        with pytest.raises(DuplicateMessageError):
            await trio.to_thread.run_sync(work)
        await agent.dispose()
        with pytest.raises(AgentDisposedError):
            await trio.to_thread.run_sync(work)


async def test_a_foreign_thread_sends_with_either_call() -> None:
    """A thread that Trio never started."""
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        done = trio.Event()
        token = trio.lowlevel.current_trio_token()

        def work() -> None:
            agent.from_thread.send("waited", target="next-step", wakeup=False)
            agent.send_soon("soon", target="next-step", wakeup=False)
            token.run_sync_soon(done.set)

        threading.Thread(target=work).start()
        await done.wait()
        assert pending(agent) == ["waited", "soon"]


async def test_what_send_soon_would_raise_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        await agent.dispose()
        with caplog.at_level(logging.ERROR, logger="trioloop.agent"):
            agent.send_soon("late")
            await trio.testing.wait_all_tasks_blocked()
    assert "AgentDisposedError" in caplog.text


async def test_sends_in_a_row_from_outside_keep_their_order() -> None:
    async with open_test_runtime(model=ScriptedModel([])) as runtime:
        agent = await runtime.create_agent("a")
        for number in range(20):
            agent.send_soon(str(number), wakeup=False)
        await trio.testing.wait_all_tasks_blocked()
        assert pending(agent) == [str(number) for number in range(20)]


def test_a_runtime_runs_in_guest_mode_and_its_host_sends() -> None:
    jobs: queue.Queue[Callable[[], object]] = queue.Queue()
    texts: list[str] = []
    over: list[object] = []

    async def guest() -> None:
        async with open_test_runtime(model=ScriptedModel([Text("hi"), Text("ho")])) as runtime:
            agent = await runtime.create_agent("a")
            sent = trio.Event()
            agent.on("inserted", lambda one: one.message.id == "m-host" and sent.set())
            message = user_message("from the host", id="m-host")
            jobs.put(lambda: agent.send_soon(message))
            texts.append((await agent.ask("one")).text)
            await sent.wait()
            await agent.wait_idle()
            texts.extend(admitted(agent))

    trio.lowlevel.start_guest_run(
        guest,
        run_sync_soon_threadsafe=jobs.put,
        done_callback=over.append,
    )
    while not over:
        jobs.get(timeout=10)()
    over[0].unwrap()  # type: ignore[attr-defined]
    assert texts == ["hi", "one", "from the host"]
