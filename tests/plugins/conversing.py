"""Conversations to make room in: drawn ones, and ones of what providers really sent."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tests.models.reading import read
from tests.models.recordings import streams
from trioloop import Agent, Request, Runtime, tool
from trioloop.chunks import Chunk
from trioloop.events import CallConfig
from trioloop.hooks import Next, PostExecution, PostPolicy, Replace
from trioloop.messages import AssistantMessage, Message, ToolResultMessage, text_of
from trioloop.models.scripted import Entry
from trioloop.ports import Capabilities, ChunkStream, RetryPolicy
from trioloop.testing import Answer, ScriptedModel, Text, ToolCall

Turns: TypeAlias = list[list[list[int]]]
"""Turns of steps of calls: how many characters each result has."""

TURNS = st.lists(
    st.lists(st.lists(st.integers(0, 3_000), min_size=1, max_size=3), max_size=4),
    min_size=1,
    max_size=4,
)


@tool(effects="read-only")
async def give(chars: int) -> str:
    """Give so many characters, no two alike in a row."""
    return "".join(chr(ord("a") + place % 26) for place in range(chars))


def script(turns: Turns) -> Iterator[Answer]:
    """What a model answers in these turns; nobody counts its tokens."""
    for turn in turns:
        for sizes in turn:
            calls = [ToolCall("give", chars=chars) for chars in sizes]
            yield Answer([Text("I look."), *calls], usage=None)
        yield Answer([Text("That was it.")], usage=None)


async def converse(runtime: Runtime, turns: int) -> Agent:
    """An agent behind so many turns."""
    agent = await runtime.create_agent("a")
    for number in range(turns):
        await agent.ask(f"question {number}")
    return agent


class Summarising(ScriptedModel):
    """A scripted model that answers asides, which its script knows nothing of, with summaries.

    Attributes:
        summaries: what it answers them with, in order; then always the same.
        asides: the requests for them.
    """

    def __init__(self, script: Iterable[Entry], *summaries: Entry, **options: Any) -> None:
        super().__init__(self._next, **options)
        self.asides: list[Request] = []
        self.summaries = list(summaries)
        self._entries = iter(script)

    @property
    def steps(self) -> list[Request]:
        """The requests of the conversation itself."""
        return [request for request in self.requests if request not in self.asides]

    def _next(self, request: Request) -> Entry:
        if getattr(request.history[-1], "source", "") != "compaction":
            return next(self._entries)
        self.asides.append(request)
        summary: Entry = self.summaries.pop(0) if self.summaries else Text("What was said.")
        return Answer([summary], usage=None) if isinstance(summary, Text) else summary


def nodes(agent: Agent) -> list[tuple[int, Message]]:
    """The history of an agent, each message with the seq of its event."""
    return list(agent.session.state.surface.nodes)


def results(agent: Agent) -> list[str]:
    """The texts of the results in an agent's history."""
    history = agent.session.state.surface.history
    return [text_of(one.content) for one in history if isinstance(one, ToolResultMessage)]


def assert_paired(history: Sequence[Message]) -> None:
    """Each call has its result directly behind its answer, in order, and each result its call."""
    due: list[str] = []
    for message in history:
        if isinstance(message, ToolResultMessage):
            assert due, f"a result of {message.call} without its call"
            assert message.call == due.pop(0)
        else:
            assert not due, f"calls {due} without a result"
            if isinstance(message, AssistantMessage):
                due = [call.call for call in message.calls]
    assert not due


# What providers sent

ANSWERS: dict[str, list[Chunk]] = {
    name: chunks
    for name, recording in streams().items()
    for chunks, failure in [read(recording, [recording["sse_text"].encode()])]
    if failure is None
}


class PlayedModel:
    """A model that answers with recorded streams, one after the other, calls and all."""

    provider = "p"
    name = "m"
    config = CallConfig(provider="p", model="m")
    capabilities = Capabilities(context_window=10_000)
    retry_policy = RetryPolicy()

    def __init__(self, answers: Sequence[str]) -> None:
        self.requests: list[Request] = []
        self._answers = list(answers)

    async def prepare(self, config: CallConfig) -> "PlayedModel":
        """It is its own prepared call."""
        return self

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ChunkStream]:
        """The next recording, or a plain answer behind the last."""
        self.requests.append(request)
        name = self._answers.pop(0) if self._answers else "anthropic-text"
        async with aclosing(self._read(ANSWERS[name])) as stream:
            yield stream

    async def _read(self, chunks: Sequence[Chunk]) -> AsyncGenerator[Sequence[Chunk], None]:
        yield chunks


def make_results_long(runtime: Runtime, chars: int = 3_000) -> None:
    """Give every call a long result, whatever its tool is."""

    @runtime.hooks.post_execute
    async def replace(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        await next()
        return Replace("0123456789" * (chars // 10))
