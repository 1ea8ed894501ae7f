"""The file of a recording: what its lines hold, and how one request is told from another.

JSON lines: first what the model is, then one line for each exchange. It holds the prompts and
answers of its run, but no header and no key. Requests are compared without what differs from run
to run: the session, and the ids of messages.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from trioloop.chunks import Frame
from trioloop.errors import InvalidInputError, ModelFailure
from trioloop.events import CallConfig, Failure, ToolDeclaration
from trioloop.ids import MessageId
from trioloop.log.rebuild import Request
from trioloop.messages import Json, Message, SystemMessage, UserMessage
from trioloop.ports import Capabilities

FORMAT = 1


class Heading(Struct, frozen=True, kw_only=True):
    """The first line of a recording: what the model is."""

    format: int
    provider: str
    model: str
    capabilities: Capabilities


class Asked(Struct, frozen=True, kw_only=True):
    """A request without what differs from run to run."""

    config: CallConfig
    tools: tuple[ToolDeclaration, ...]
    system: tuple[SystemMessage, ...]
    messages: tuple[Message, ...]

    @classmethod
    def of(cls, request: Request) -> "Asked":
        """What a request asks."""
        messages = tuple(map(_nameless, request.history))
        return cls(
            config=request.config, tools=request.tools, system=request.system, messages=messages
        )


class Exchange(Struct, frozen=True, kw_only=True):
    """One line of a recording.

    Attributes:
        proposed: the settings before the model filled in what they left open.
        asked: the request.
        frames: what was streamed.
        failure: how the attempt failed, if it did.
        left: its reader had gone before it came to an end.
    """

    proposed: CallConfig
    asked: Asked
    frames: tuple[Frame, ...]
    failure: Failure | None = None
    left: bool = False


def read_recording(path: Path) -> tuple[Heading, list[Exchange]]:
    """What a file holds.

    Raises:
        InvalidInputError: it can't be read, or is no recording.
    """
    try:
        first, *lines = path.read_bytes().splitlines() or [b""]
        heading = msgspec.json.decode(first, type=Heading)
        exchanges = [msgspec.json.decode(line, type=Exchange) for line in lines]
    except OSError as error:
        raise InvalidInputError(f"the recording {str(path)!r} can't be read: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(f"{str(path)!r} is no recording of a model: {error}") from None
    if heading.format != FORMAT:
        raise InvalidInputError(
            f"the recording {str(path)!r} has format {heading.format}: this version reads {FORMAT}"
        )
    return heading, exchanges


def written(lines: Iterable[Heading | Exchange]) -> bytes:
    """The bytes of some lines."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def same(one: Asked, other: Asked) -> bool:
    """Whether two requests ask the same."""
    return _plain(one) == _plain(other)


def difference(one: Asked, other: Asked) -> str:
    """Where two requests first differ, without what they hold there: `messages[2].content[0]`."""
    return _difference(_plain(one), _plain(other), "")


def raised(failure: Failure) -> ModelFailure:
    """A recorded failure, to be raised again."""
    return ModelFailure(
        failure.code,
        failure.message,
        status=failure.status,
        retry_after_s=failure.retry_after_s,
        request_id=failure.request_id,
        retryable=failure.retryable,
    )


def _nameless(message: Message) -> Message:
    if isinstance(message, UserMessage):
        return msgspec.structs.replace(message, id=MessageId(""))
    return message


def _plain(asked: Asked) -> Json:
    found: Json = msgspec.json.decode(msgspec.json.encode(asked))
    return found


def _difference(one: Json, other: Json, place: str) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) != other.get(name):
                inner = f"{place}.{name}" if place else name
                return _difference(one.get(name), other.get(name), inner)
    elif isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=False)
        shorter = min(len(one), len(other))
        index = next((i for i, (left, right) in enumerate(pairs) if left != right), shorter)
        if index < shorter:
            return _difference(one[index], other[index], f"{place}[{index}]")
        return f"{place}[{index}]"
    return place
