"""The contracts that services keep: stores, models, approvers.

Only protocols and the facts that pass through them; what implements them is on the floor above.
"""

import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import attrs
from msgspec import Struct

from trioloop.chunks import Chunk
from trioloop.errors import InvalidInputError
from trioloop.events import CallConfig
from trioloop.handles import AgentHandle
from trioloop.ids import CallId, SessionId
from trioloop.log.rebuild import Request
from trioloop.machine.backoff import retry_delay_s
from trioloop.messages import (
    Block,
    Json,
    UserMessage,
    as_blocks,
)

# The store (durability.md)


@attrs.frozen
class Owner:
    """Who writes a session: told to whoever comes second."""

    pid: int
    host: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name or 'process'} {self.pid} on {self.host}"


@attrs.frozen
class Lease:
    """The right to write one session. `epoch` grows with each owner, so an old one is fenced."""

    session: SessionId
    epoch: int
    next_seq: int


class StoredRow(Struct, frozen=True, gc=False):
    """One event as a store keeps it: canonical bytes, and the CRC-32 chained over the session."""

    seq: int
    payload: bytes
    crc: int


@attrs.frozen
class Append:
    """Rows for one session. A repeated `append_id` is recognised and gives the first answer."""

    lease: Lease
    expected_seq: int
    append_id: str
    rows: tuple[StoredRow, ...]


@attrs.frozen
class Committed:
    """The answer to an append that is durable now."""

    next_seq: int


@attrs.frozen
class Refused:
    """The answer to an append that wrote nothing, though others in its transaction may have."""

    error: Exception


CommitAnswer: TypeAlias = Committed | Refused
Durability: TypeAlias = Literal["step", "relaxed"]


@attrs.frozen
class SessionSummary:
    """What a store tells of a session without reading it."""

    session: SessionId
    events: int
    bytes: int
    created: int
    changed: int
    epoch: int


class SessionStore(Protocol):
    """The durable home of logs. One conformance suite runs on every implementation.

    All methods may block for I/O and are checkpoints; cancelling `commit` leaves the transaction
    either whole or absent. Errors: `StoreFailedError` where the store itself fails.
    """

    async def open(self, session: SessionId, owner: Owner, *, create: bool) -> Lease:
        """Take the right to write a session.

        Raises:
            SessionLockedError: a live owner has it.
            SessionExistsError: `create`, and the store has one of that name.
            UnknownSessionError: not `create`, and the store has none of that name.
        """
        ...

    async def commit(self, appends: Sequence[Append]) -> list[CommitAnswer]:
        """Write all appends in one transaction and answer each, in order."""
        ...

    async def read(
        self, session: SessionId, *, after: int = -1, limit: int | None = None
    ) -> list[StoredRow]:
        """Rows with a seq greater than `after`, in order. Needs no lease.

        Raises:
            UnknownSessionError: the store has none of that name.
        """
        ...

    async def sessions(self) -> list[SessionSummary]:
        """All sessions, by name."""
        ...

    async def put_blob(self, content: bytes) -> str:
        """Keep content in a side file, synced before this returns; the answer is its locator."""
        ...

    async def get_blob(self, locator: str) -> bytes:
        """The content of a locator.

        Raises:
            StoreError: there is none, or it isn't what was put.
        """
        ...

    async def renew(self, leases: Sequence[Lease]) -> list[Lease]:
        """Extend leases that expire; the answer lists those still held."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give the right to write back."""
        ...

    async def delete(self, session: SessionId) -> None:
        """Remove a session and its events.

        Raises:
            SessionLockedError: a live owner has it.
        """
        ...

    async def aclose(self) -> None:
        """Unlock and close. Closing again does nothing."""
        ...


# The model (models.md section 8)


@attrs.frozen
class Capabilities:
    """What a model can do, as far as it is known.

    Attributes:
        context_window: tokens of prompt and answer; None: unknown.
        images: it can be shown images.
        system_update: how a changed section reaches it (E1): `replace` rewrites the head,
            `in-history` appends a system message.
        parallel_tool_calls: it may ask for several calls in one answer.
    """

    context_window: int | None = None
    images: bool = False
    system_update: Literal["replace", "in-history"] = "replace"
    parallel_tool_calls: bool = True


def _from_0(most: float) -> "Callable[[object, attrs.Attribute[Any], object], None]":
    def check(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if not isinstance(value, int | float) or not 0 <= value <= most:
            raise InvalidInputError(f"{field.name} must be 0 to {most}, not {value!r}")

    return check


@attrs.frozen(kw_only=True)
class RetryPolicy:
    """How a model's provider wants failures retried; `plugins.retry` follows it.

    Attributes:
        retries_max: retries after the first attempt of a step, until one succeeds.
        first_delay_s: seconds before the first; each further one waits twice as long.
        delay_max_s: seconds that none of those is longer than.
        jitter: the largest part of such a delay, 0 to 1, that chance takes off.
        asked_delay_max_s: the longest wait that a provider may ask for; beyond it there is none.

    Raises:
        InvalidInputError: a value is below 0, or is no number, or the jitter is above 1.
    """

    retries_max: int = attrs.field(default=5, validator=_from_0(1_000_000))
    first_delay_s: float = attrs.field(default=0.5, validator=_from_0(math.inf))
    delay_max_s: float = attrs.field(default=10.0, validator=_from_0(math.inf))
    jitter: float = attrs.field(default=0.1, validator=_from_0(1))
    asked_delay_max_s: float = attrs.field(default=120.0, validator=_from_0(math.inf))

    def delay_s(self, retry: int, asked_s: float | None, random: float) -> float | None:
        """Seconds before a retry; None: there is none.

        Args:
            retry: which one, from 1.
            asked_s: seconds that the provider asked to wait, if it did.
            random: a number from 0 to 1, for the jitter.
        """
        if retry > self.retries_max:
            return None
        return retry_delay_s(
            retry,
            asked_s=asked_s,
            asked_max_s=self.asked_delay_max_s,
            first_s=self.first_delay_s,
            max_s=self.delay_max_s,
            jitter=self.jitter,
            random=random,
        )


ChunkStream: TypeAlias = AsyncIterator[Sequence[Chunk]]


class PreparedCall(Protocol):
    """A model with its settings resolved, ready to be asked."""

    @property
    def config(self) -> CallConfig:
        """The settings as they will be logged, defaults filled in."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""
        ...

    @property
    def retry_policy(self) -> RetryPolicy:
        """How its failures are to be retried."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[ChunkStream]:
        """Ask. The block is given an iterator over the chunks of each network read.

        The last chunk is the one `Finish`. Leaving the block, by any way, closes the connection
        at once.

        Raises:
            ModelFailure: from entering the block or from the iterator.
        """
        ...


class Model(Protocol):
    """A model that an agent may ask."""

    @property
    def provider(self) -> str:
        """The service's name."""
        ...

    @property
    def name(self) -> str:
        """The model's name there."""
        ...

    async def prepare(self, config: CallConfig) -> PreparedCall:
        """Resolve settings, capabilities and retry policy from known facts, without network (H4).

        Raises:
            ModelFailure: the settings can't be served, such as an effort the model doesn't know.
        """
        ...


@runtime_checkable
class Closable(Protocol):
    """A model that keeps connections, which a runtime closes when it is left."""

    async def aclose(self) -> None:
        """Close the connections that are kept. Closing again does nothing."""
        ...


# Tools


Effects: TypeAlias = Literal["read-only", "idempotent", "once"]
Mode: TypeAlias = Literal["concurrent", "barrier"]


@attrs.frozen(kw_only=True)
class ToolOutcome:
    """What a call came to, before it is recorded.

    Attributes:
        content: what the model is told.
        value: what a program that called the tool is given (section 5 of tools.md).
        meta: what people are shown of it.
        is_error: the model is told of a failure.
        code: the stable code of a failure.
        concludes_turn: no further step is owed once the batch is recorded (T8).
        additional_contexts: messages that join next-step after the batch's results (T7).
    """

    content: tuple[Block, ...] = attrs.field(converter=as_blocks)
    value: Json = None
    meta: dict[str, Json] | None = None
    is_error: bool = False
    code: str | None = None
    concludes_turn: bool = False
    additional_contexts: tuple[UserMessage, ...] = ()


# Approving


class Approver(Protocol):
    """Answers questions of the pre-policy that only a person can answer."""

    async def ask(self, agent: AgentHandle, call: CallId, question: str) -> bool | str:
        """Whether a call may run. Waits for the answer; cancelling withdraws the question.

        Args:
            agent: whose call.
            call: the call's id.
            question: what is asked.

        Returns:
            True: it may. False, or words that tell the model why: it may not.
        """
        ...
