"""Requests, and one way to ask a model: shared by the tests of models."""

from collections.abc import Sequence

import attrs
from msgspec import Raw

from trioloop.chunks import Chunk, Frame
from trioloop.errors import ModelFailure
from trioloop.events import CallConfig, ToolDeclaration
from trioloop.ids import call_id, session_id
from trioloop.log.history import History
from trioloop.log.rebuild import Request
from trioloop.messages import Message, SystemMessage, user_message
from trioloop.ports import Model
from trioloop.stream.assemble import Assembled, assemble


@attrs.frozen
class Asked:
    """What a model streamed, and what it came to."""

    batches: list[tuple[Chunk, ...]]
    assembled: Assembled


TEMPERATURE = ToolDeclaration(
    "temperature",
    "Temperature of a city.",
    Raw(b'{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'),
)


def make_request(
    *messages: Message,
    system: Sequence[SystemMessage] = (),
    tools: Sequence[ToolDeclaration] = (),
    config: CallConfig | None = None,
) -> Request:
    """A request of these messages, by default one from a user."""
    return Request(
        config=config or CallConfig(provider="p", model="m"),
        tools=tuple(tools),
        system=tuple(system),
        history=History.of(messages or (user_message("hello"),)),
        session=session_id("test"),
    )


async def ask(model: Model, request: Request | None = None) -> Asked:
    """Ask a model and read its answer to the end."""
    config = CallConfig(provider=model.provider, model=model.name)
    if request is None:
        request = make_request(config=config)
    call = await model.prepare(config)
    batches = []
    async with call.stream(request) as stream:
        async for batch in stream:
            batches.append(tuple(batch))  # noqa: PERF401 - a comprehension would hide the stream
    assembled = assemble(
        [Frame(0, batch) for batch in batches],
        provider=model.provider,
        model=model.name,
        call_id=lambda index: call_id(1, 1, index),
        used_wire_ids=(),
    )
    return Asked(batches, assembled)


async def collect(model: Model) -> tuple[list[Chunk], ModelFailure | None]:
    """All chunks of an answer, and how it failed."""
    chunks: list[Chunk] = []
    config = CallConfig(provider=model.provider, model=model.name)
    call = await model.prepare(config)
    try:
        async with call.stream(make_request(config=call.config)) as stream:
            async for batch in stream:
                assert batch
                chunks += batch
    except ModelFailure as failure:
        return chunks, failure
    return chunks, None


async def failure_of(model: Model) -> ModelFailure:
    """How an answer fails."""
    _, failure = await collect(model)
    assert failure is not None
    return failure
