"""A step whose model has just asked for calls, and what came of running them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
import trio
import trio.testing

from trioloop.chunks import EMPTY_STREAM, Finish
from trioloop.events import (
    FORMAT,
    AssistantMessageLogged,
    CallConfig,
    EventData,
    InboxSpliced,
    PendingMessage,
    RequestContextLogged,
    RequestHeaderLogged,
    SessionOpened,
    StepStarted,
    ToolCallStarted,
    ToolDispatched,
    ToolResultLogged,
    TurnStarted,
    UserMessageLogged,
)
from trioloop.handles import AgentHandle
from trioloop.hooks import Hooks
from trioloop.ids import SessionId, call_id
from trioloop.limits import Limits
from trioloop.messages import AssistantMessage, ToolCallBlock, UserMessage, text_of, user_message
from trioloop.ports import Approver
from trioloop.session import Session
from trioloop.tools import ToolConditionContext, ToolRegistry, tool
from trioloop.tools.batch import Batch, Progress
from trioloop.tools.call import RunningCall
from trioloop.tools.dispatch import run_batch
from trioloop.tools.places import Capacity
from trioloop.tools.threads import ToolThreads

Asked = tuple[str, dict[str, Any]] | tuple[str, str]  # a tool's name, and arguments or their text


class _Agent:
    name = SessionId("main")


class Step:
    """An open step; `run` runs the calls of its answer."""

    def __init__(self, *, approver: Approver | None = None, **limits: Any) -> None:
        self.limits = Limits(**limits)
        self.tools = ToolRegistry()
        self.hooks = Hooks()
        self.agent_hooks = Hooks()
        self.approver = approver
        self.places: Capacity | None = None
        self.threads = ToolThreads(self.limits)
        self.session = Session(SessionId("main"), clock=self._clock)
        self.contexts: list[UserMessage] = []
        self.progress: list[Progress] = []
        self.running: dict[Any, RunningCall] = {}
        self.recorded_at: dict[int, float] = {}
        self.session.observe(self._note)

    def _clock(self) -> int:
        return round(trio.current_time() * 1000)

    def _note(self, event: Any) -> None:
        if isinstance(event.data, ToolResultLogged):
            self.recorded_at[int(event.data.call.rpartition("_")[2])] = trio.current_time()

    def _hear(self, told: object) -> None:
        if isinstance(told, Progress):
            self.progress.append(told)

    async def run(self, *asked: Asked, cut: bool = False) -> list[ToolResultLogged]:
        """Open the step with these calls, run them, and give their results in log order."""
        calls = [
            ToolCallBlock(
                call=call_id(1, 1, index),
                wire_id=f"wire_{index}",
                name=name,
                arguments=given if isinstance(given, str) else msgspec.json.encode(given).decode(),
            )
            for index, (name, given) in enumerate(asked)
        ]
        tools = await self.tools.resolve(
            None, ToolConditionContext(cast(AgentHandle, _Agent()), "test", "test")
        )
        self._open(calls, tools.declarations)
        batch = Batch(
            agent=cast(AgentHandle, _Agent()),
            session=self.session,
            tools=tools,
            hooks=(self.hooks, self.agent_hooks),
            limits=self.limits,
            threads=self.threads,
            places=self.places,
            approver=self.approver,
            add_contexts=self.contexts.extend,
            notify=self._hear,
            running=self.running,
        )
        await run_batch(batch, calls, cut=cut)
        return self.results

    def _open(self, calls: Sequence[ToolCallBlock], tools: Any) -> None:
        message = user_message("go", id="msg_1")
        config = CallConfig(provider="test", model="test")
        self.session.append(SessionOpened(FORMAT, "main", 0))
        self.session.append(InboxSpliced("next-turn", 0, 0, (PendingMessage(message),)))
        self.session.append(
            TurnStarted(1),
            InboxSpliced("next-turn", 0, 1),
        )
        self.session.append(
            StepStarted(1, 1),
            UserMessageLogged(message),
            RequestHeaderLogged(config, tools, "initial"),
            RequestContextLogged("test", "test"),
        )
        answer = AssistantMessage(tuple(calls), "test", "test")
        self.session.append(
            AssistantMessageLogged(answer, Finish("tool_calls"), None, EMPTY_STREAM)
        )

    # What came of it

    @property
    def facts(self) -> list[EventData]:
        """What was appended behind the answer, in order."""
        events = [event.data for event in self.session.events()]
        answer = next(
            index for index, data in enumerate(events) if isinstance(data, AssistantMessageLogged)
        )
        return events[answer + 1 :]

    @property
    def results(self) -> list[ToolResultLogged]:
        """The results, in log order."""
        return [data for data in self.facts if isinstance(data, ToolResultLogged)]

    @property
    def codes(self) -> list[str | None]:
        """How each call ended, in log order."""
        return [result.code for result in self.results]

    @property
    def texts(self) -> list[str]:
        """What the model is told, in log order."""
        return [text_of(result.content) for result in self.results]

    @property
    def shape(self) -> list[str]:
        """The tool events, as `call 0`, `dispatch 0`, `result 0`."""
        names: dict[type[EventData], str] = {
            ToolCallStarted: "call",
            ToolDispatched: "dispatch",
            ToolResultLogged: "result",
        }
        by_seq = {
            event.seq: event.data.call
            for event in self.session.events()
            if isinstance(event.data, ToolCallStarted)
        }
        return [
            f"{names[type(data)]} {self._index(data, by_seq)}"
            for data in self.facts
            if type(data) in names
        ]

    @staticmethod
    def _index(data: Any, by_seq: Mapping[int, str]) -> str:
        call = data.call if hasattr(data, "call") else by_seq[data.call_seq]
        return str(call.rpartition("_")[2])


def under_virtual_time(main: Callable[[], Any]) -> None:
    """Run an async function in a Trio run of its own, whose clock jumps."""
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def step_of(*functions: Any, **limits: Any) -> Step:
    """A step with some functions as its read-only tools."""
    step = Step(**limits)
    for function in functions:
        step.tools.register(tool(effects="read-only")(function))
    return step


async def nap(seconds: float) -> float:
    """Sleep."""
    await trio.sleep(seconds)
    return seconds


def naps(*seconds: float) -> list[Asked]:
    """Calls of `nap`."""
    return [("nap", {"seconds": one}) for one in seconds]
