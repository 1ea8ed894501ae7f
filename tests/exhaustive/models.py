"""A scripted model, a store and an approver in which every place that waits does so twice."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs

from tests.exhaustive.waits import handed_over, pass_waits
from trioloop.chunks import Chunk
from trioloop.events import CallConfig
from trioloop.handles import AgentHandle
from trioloop.ids import CallId
from trioloop.log.rebuild import Request
from trioloop.models.scripted import ScriptedCall, ScriptedModel
from trioloop.ports import Append, ChunkStream, CommitAnswer
from trioloop.store import MemoryStore


class WaitingModel(ScriptedModel):
    """Its preparation, the entry of its stream and each read pass waits."""

    async def prepare(self, config: CallConfig) -> "WaitingCall":
        """Resolve nothing, slowly."""
        await super().prepare(config)
        await pass_waits()
        return WaitingCall(self, config)


class WaitingCall(ScriptedCall):
    """A waiting model, ready to be asked."""

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ChunkStream]:  # type: ignore[override]
        """Ask, slowly."""
        async with super().stream(request) as chunks:
            await pass_waits()
            yield _WaitingStream(chunks)


@attrs.frozen
class _WaitingStream(AsyncIterator[Sequence[Chunk]]):
    chunks: ChunkStream

    async def __anext__(self) -> Sequence[Chunk]:
        read = await self.chunks.__anext__()
        await handed_over()
        return read


class WaitingStore(MemoryStore):
    """Its commits pass waits, before and behind the write."""

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        """Write all appends, slowly."""
        answers = await super().commit(appends)
        await handed_over()
        return answers


class WaitingApprover:
    """Lets every call run, slowly."""

    async def ask(self, agent: AgentHandle, call: CallId, question: str) -> bool:
        """Whether the call may run."""
        await pass_waits()
        return True
