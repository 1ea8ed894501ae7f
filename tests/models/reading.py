"""Reads recordings with the reader of their API, without any transport."""

from collections.abc import Iterable

from tests.models.recordings import Recording
from trioloop.chunks import Chunk, Frame
from trioloop.errors import ModelFailure
from trioloop.ids import call_id
from trioloop.models.answer_reader import AnswerReader, Reading
from trioloop.models.anthropic_stream import AnthropicReader
from trioloop.models.chat_stream import ChatReader
from trioloop.models.responses_stream import ResponsesReader
from trioloop.stream.assemble import Assembled, assemble

READERS: dict[str, type[AnswerReader]] = {
    "openai_chat": ChatReader,
    "openai_responses": ResponsesReader,
    "anthropic_messages": AnthropicReader,
}


def reader_of(
    api: str,
    *,
    output_tokens_max: int | None = None,
    event_bytes_max: int = 1_000_000,
    arguments_chars_max: int = 100_000,
) -> AnswerReader:
    """A reader of an API."""
    reading = Reading(
        replay_key="p",
        event_bytes_max=event_bytes_max,
        arguments_chars_max=arguments_chars_max,
        output_tokens_max=output_tokens_max,
    )
    return READERS[api](reading)


def read(recording: Recording, pieces: Iterable[bytes]) -> tuple[list[Chunk], ModelFailure | None]:
    """The chunks of a recording's bytes, and how it failed."""
    limit = (recording.get("request") or {}).get("max_output_tokens")
    reader = reader_of(recording["api"], output_tokens_max=limit)
    chunks = [chunk for piece in pieces for chunk in reader.feed(piece)]
    chunks += reader.close()
    assert reader.finished == (reader.failure is None)
    return chunks, reader.failure


def assembled(chunks: Iterable[Chunk]) -> Assembled:
    """What some chunks come to."""
    return assemble(
        [Frame(0, tuple(chunks))],
        provider="p",
        model="m",
        call_id=lambda index: call_id(1, 1, index),
        used_wire_ids=(),
    )
