"""Records a run as messages between lanes: who told whom what, in order.

Everything is seen from outside, by listeners, an observer of the log, and a model and tools that
tell of themselves; the runtime is the one that users have.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal, TypeAlias

import attrs
import trio

from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Settled
from trioloop.chunks import Chunk, Finish, ToolCallStart
from trioloop.errors import ModelFailure
from trioloop.events import CallConfig, Event
from trioloop.hooks.points import Hooks
from trioloop.log.rebuild import Request
from trioloop.ports import Capabilities, ChunkStream, PreparedCall, RetryPolicy
from trioloop.testing import ScriptedModel

Lane: TypeAlias = Literal["user", "agent", "hooks", "model", "tools", "log"]
LANES: tuple[Lane, ...] = ("user", "agent", "hooks", "model", "tools", "log")

RECORDED_HOOKS = ("assemble", "pre_step", "request", "request_error", "turn_stopping")
RECORDED_TOOL_HOOKS = ("pre_execute", "post_execute")
"""The hooks that a recording listens to. `model.stream` and `tools.execute` only wrap."""


@attrs.frozen
class Told:
    """One lane tells another something, at a virtual time in seconds.

    Attributes:
        answer: it comes back to who asked.
        key: which of several works of one lane it begins or ends.
    """

    source: Lane
    target: Lane
    text: str
    at: float
    answer: bool = False
    key: str = ""


@attrs.define
class Appended:
    """Events of one append, at a virtual time in seconds."""

    events: list[Event]
    last_seq: int
    at: float


Row: TypeAlias = Told | Appended


class Recorder:
    """What is seen of a run, in order."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._agent: Agent | None = None
        self._durable_seq = -1

    def watch(self, agent: Agent) -> None:
        """Record an agent's log and its settlements."""
        self._agent = agent
        agent.session.observe(self._observe)
        agent.on("settled", self._note_settled)

    def tell(
        self, source: Lane, target: Lane, text: str, *, answer: bool = False, key: str = ""
    ) -> None:
        """Note what one lane tells another; before it, how far the log is durable by now."""
        if self._agent is not None and self._agent.session.durable_seq > self._durable_seq:
            self._durable_seq = self._agent.session.durable_seq
            self._add("log", "agent", f"durable to {self._durable_seq}", answer=True)
        self._add(source, target, text, answer=answer, key=key)

    def _add(self, source: Lane, target: Lane, text: str, *, answer: bool, key: str = "") -> None:
        self.rows.append(Told(source, target, text, trio.current_time(), answer, key))

    def _observe(self, event: Event) -> None:
        assert self._agent is not None
        last = self.rows[-1] if self.rows else None
        if isinstance(last, Appended) and event.seq <= last.last_seq:
            last.events.append(event)
        else:
            self.rows.append(Appended([event], self._agent.session.seq, trio.current_time()))

    def _note_settled(self, settled: Settled) -> None:
        self.tell("agent", "user", f"settled: {settled.reason}", answer=True)

    # Hooks

    def listen(self, hooks: Hooks, names: Sequence[str]) -> None:
        """Record the hooks of those attributes."""
        for name in names:
            hook = getattr(hooks, name)
            hook.add(self._serial(hook.name) if name == "turn_stopping" else self._waterfall(name))

    def _serial(self, name: str) -> Callable[[object], Awaitable[None]]:
        async def listener(_: object) -> None:
            self.tell("agent", "hooks", name)
            self.tell("hooks", "agent", "nothing", answer=True)

        return listener

    def _waterfall(
        self, attribute: str
    ) -> Callable[[object, Callable[[], Awaitable[object]]], Awaitable[object]]:
        name = getattr(Hooks(), attribute).name

        async def listener(_: object, next: Callable[[], Awaitable[object]]) -> object:
            self.tell("agent", "hooks", name)
            try:
                answer = await next()
            except trio.Cancelled:
                self.tell("hooks", "agent", "Cancelled", answer=True)
                raise
            self.tell("hooks", "agent", _answer(answer), answer=True)
            return answer

        return listener


def _answer(answer: object) -> str:
    return "sections" if isinstance(answer, tuple) else type(answer).__name__.replace("Type", "")


# A model that tells of itself


@attrs.frozen
class RecordedModel:
    """A scripted model whose requests and answers are recorded."""

    script: ScriptedModel
    recorder: Recorder

    @property
    def provider(self) -> str:
        """That of the script."""
        return self.script.provider

    @property
    def name(self) -> str:
        """That of the script."""
        return self.script.name

    async def prepare(self, config: CallConfig) -> PreparedCall:
        """Record it. Checkpoint."""
        self.recorder.tell("agent", "model", "prepare")
        prepared = await self.script.prepare(config)
        self.recorder.tell("model", "agent", "PreparedCall", answer=True)
        return _RecordedCall(prepared, self.recorder)


@attrs.frozen
class _RecordedCall:
    call: PreparedCall
    recorder: Recorder

    @property
    def config(self) -> CallConfig:
        return self.call.config

    @property
    def capabilities(self) -> Capabilities:
        return self.call.capabilities

    @property
    def retry_policy(self) -> RetryPolicy:
        return self.call.retry_policy

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ChunkStream]:
        tell = self.recorder.tell
        tell("agent", "model", f"request, {sum(1 for _ in request.messages)} messages")
        try:
            async with self.call.stream(request) as stream, aclosing(self._read(stream)) as read:
                yield read
        except trio.Cancelled:
            tell("model", "agent", "Cancelled", answer=True)
            raise
        except ModelFailure as failure:
            tell("model", "agent", f"failure: {failure.code}", answer=True)
            raise

    async def _read(self, stream: ChunkStream) -> AsyncGenerator[Sequence[Chunk], None]:
        async for chunks in stream:
            self.recorder.tell("model", "agent", _read_text(chunks), answer=True)
            yield chunks


def _read_text(chunks: Sequence[Chunk]) -> str:
    return ", ".join(dict.fromkeys(_chunk_text(chunk) for chunk in chunks))


def _chunk_text(chunk: Any) -> str:  # every class of chunks, told by its name
    if isinstance(chunk, Finish):
        return f"finish: {chunk.reason}"
    if isinstance(chunk, ToolCallStart):
        return f"call {chunk.name}"
    return type(chunk).__name__.removesuffix("Delta").removesuffix("Chunk").lower()
