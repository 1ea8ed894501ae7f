"""A model whose answers are written down once, and played back from then on.

So a test of an agent meets a real model's answers without its network, its price and its whims.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import attrs
import trio

from trioloop.chunks import Chunk, Finish, Frame
from trioloop.errors import ModelFailure
from trioloop.events import CallConfig, Failure
from trioloop.log.rebuild import Request
from trioloop.models.recording_file import (
    FORMAT,
    Asked,
    Exchange,
    Heading,
    difference,
    raised,
    read_recording,
    same,
    written,
)
from trioloop.ports import Capabilities, ChunkStream, Closable, Model, PreparedCall, RetryPolicy


class RecordedModel:
    """A model that answers as it did once before.

    Each request is answered by the first recorded exchange that asked the same and wasn't played
    yet; so agents may ask at once, and retries fail as they did.

    Args:
        path: the file of the recording. It holds prompts and answers, but no key.
        live: the model to ask; what it answers is written to the file, over what that held. None:
            the file is played back, without any network.
        in_time: answers come as slowly as they did, by Trio's clock; otherwise at once.

    Raises:
        InvalidInputError: the file is to be played back, and can't be read or is no recording.
    """

    def __init__(
        self, path: str | Path, *, live: Model | None = None, in_time: bool = False
    ) -> None:
        self.path = Path(path)
        self._live = live
        self._in_time = in_time
        self._began = False
        self._exchanges: list[Exchange] = []
        self._capabilities = Capabilities()
        if live is not None:
            self.provider, self.name = live.provider, live.name
        else:
            heading, self._exchanges = read_recording(self.path)
            self.provider, self.name = heading.provider, heading.model
            self._capabilities = heading.capabilities

    def __repr__(self) -> str:
        doing = "plays" if self._live is None else "records"
        return f"<RecordedModel {self.name!r} {doing} {str(self.path)!r}>"

    async def prepare(self, config: CallConfig) -> PreparedCall:
        """Fill in settings as the live model does, or did. Checkpoint.

        Raises:
            ModelFailure: as the live model raises it.
        """
        if self._live is not None:
            return RecordingCall(self, config, await self._live.prepare(config))
        await trio.lowlevel.checkpoint()
        known = (one.asked.config for one in self._exchanges if one.proposed == config)
        return PlayedCall(self, next(known, config), self._capabilities)

    async def aclose(self) -> None:
        """Close the live model, if it can be closed. Checkpoint. Closing again does nothing."""
        if isinstance(self._live, Closable):
            await self._live.aclose()
        await trio.lowlevel.checkpoint()

    def write(self, exchange: Exchange, capabilities: Capabilities) -> None:
        """Append an exchange to the file.

        It is written in Trio's thread: its reader may have been cancelled, and a virtual clock
        would jump ahead while another thread works. A line takes a fraction of a millisecond.
        """
        lines: list[Heading | Exchange] = [exchange]
        if not self._began:
            lines.insert(0, self._heading(capabilities))
        with self.path.open("ab" if self._began else "wb") as file:
            file.write(written(lines))
        self._began = True

    def take(self, request: Request) -> Exchange:
        """The exchange that answers a request; it is played once.

        Raises:
            ModelFailure: UNKNOWN, none asked that, or all that did were played.
        """
        asked = Asked.of(request)
        for place, exchange in enumerate(self._exchanges):
            if same(exchange.asked, asked):
                return self._exchanges.pop(place)
        raise ModelFailure("UNKNOWN", f"{self._why_not(asked)}: record it anew")

    @asynccontextmanager
    async def play(self, request: Request) -> AsyncIterator[ChunkStream]:
        """Play the exchange of a request; see `PreparedCall.stream`."""
        exchange = self.take(request)
        await trio.lowlevel.checkpoint()
        yield _Playing(exchange, in_time=self._in_time)

    def _heading(self, capabilities: Capabilities) -> Heading:
        return Heading(
            format=FORMAT, provider=self.provider, model=self.name, capabilities=capabilities
        )

    def _why_not(self, asked: Asked) -> str:
        if not self._exchanges:
            return f"all of the recording {str(self.path)!r} has been played"
        place = difference(self._exchanges[0].asked, asked)
        return f"a request isn't as in the recording {str(self.path)!r}: it differs at {place}"


@attrs.frozen
class RecordingCall:
    """A live model that is ready to be asked, and whose answers are written down."""

    model: RecordedModel
    proposed: CallConfig
    call: PreparedCall

    @property
    def config(self) -> CallConfig:
        """The settings, defaults filled in."""
        return self.call.config

    @property
    def capabilities(self) -> Capabilities:
        """What the live model can do."""
        return self.call.capabilities

    @property
    def retry_policy(self) -> RetryPolicy:
        """How its failures are to be retried."""
        return self.call.retry_policy

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ChunkStream]:
        """Ask the live model, and write down what it answers; see `PreparedCall.stream`."""
        notes = _Notes(trio.current_time())
        try:
            async with self.call.stream(request) as live:
                yield _Noting(live, notes)
        except ModelFailure as failure:
            notes.failure = Failure.of(failure)
            raise
        finally:
            exchange = Exchange(
                proposed=self.proposed,
                asked=Asked.of(request),
                frames=tuple(notes.frames),
                failure=notes.failure,
                left=notes.left,
            )
            self.model.write(exchange, self.capabilities)


@attrs.frozen
class PlayedCall:
    """A recorded model, ready to be asked."""

    model: RecordedModel
    config: CallConfig
    capabilities: Capabilities
    retry_policy: RetryPolicy = attrs.field(factory=RetryPolicy)

    def stream(self, request: Request) -> AbstractAsyncContextManager[ChunkStream]:
        """Play the exchange of this request; see `PreparedCall.stream`."""
        return self.model.play(request)


@attrs.define
class _Notes:
    """What is seen of a live answer."""

    began: float
    frames: list[Frame] = attrs.Factory(list)
    failure: Failure | None = None

    @property
    def left(self) -> bool:
        chunks = (chunk for frame in self.frames for chunk in frame.chunks)
        return self.failure is None and not any(isinstance(chunk, Finish) for chunk in chunks)


class _Noting:
    """A live answer, noted as it is read."""

    def __init__(self, live: ChunkStream, notes: _Notes) -> None:
        self._live = live
        self._notes = notes

    def __aiter__(self) -> "_Noting":
        return self

    async def __anext__(self) -> Sequence[Chunk]:
        try:
            chunks = tuple(await anext(self._live))
        except ModelFailure as failure:
            self._notes.failure = Failure.of(failure)
            raise
        at_ms = round((trio.current_time() - self._notes.began) * 1000)
        self._notes.frames.append(Frame(at_ms, chunks))
        return chunks


class _Playing:
    """The reads of an exchange, as they came."""

    def __init__(self, exchange: Exchange, *, in_time: bool) -> None:
        self._exchange = exchange
        self._frames = iter(exchange.frames)
        self._in_time = in_time
        self._began = trio.current_time()

    def __aiter__(self) -> "_Playing":
        return self

    async def __anext__(self) -> Sequence[Chunk]:
        frame = next(self._frames, None)
        if frame is not None:
            await trio.sleep_until(self._began + (frame.at_ms / 1000 if self._in_time else 0))
            return frame.chunks
        await trio.lowlevel.checkpoint()
        if self._exchange.failure is not None:
            raise raised(self._exchange.failure)
        if self._exchange.left:
            await trio.sleep_forever()  # it was left here, and will be left again
        raise StopAsyncIteration
