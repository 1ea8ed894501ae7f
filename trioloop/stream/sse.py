"""Decodes server-sent events by the rules of WHATWG, without any I/O, in bounded memory.

Bytes may be cut anywhere: inside a UTF-8 sequence, between CR and LF, inside the byte order mark.
Fields that no model provider uses (`id`, `retry`) are skipped like unknown ones.
"""

from collections.abc import Iterator

from msgspec import Struct

from trioloop.errors import ModelFailure

_BOM = b"\xef\xbb\xbf"


class ServerEvent(Struct, frozen=True, gc=False):
    """One event: its name (`message` where the stream gives none), and its data lines joined by LF.

    The data stays bytes: it is read as JSON next, and may be cut UTF-8 where a server is broken.
    A struct, because one is made for each piece of an answer.
    """

    name: str
    data: bytes


class SseDecoder:
    """Turns bytes, cut anywhere, into events.

    Args:
        event_bytes_max: the most that the lines of one event may have together.
    """

    def __init__(self, *, event_bytes_max: int) -> None:
        self._bytes_max = event_bytes_max
        self._line: list[bytes] = []  # the pieces of the line that hasn't ended yet
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = b""
        self._after_cr = False
        self._at_start = True

    @property
    def held_bytes(self) -> int:
        """How much of the stream it keeps at the moment: a part of one event."""
        return self._line_bytes + self._data_bytes + len(self._name)

    def feed(self, data: bytes) -> Iterator[ServerEvent]:
        """The events that these bytes complete. Take them all, or feed it no more.

        Raises:
            ModelFailure: MALFORMED_RESPONSE, an event is larger than its limit.
        """
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        head, newline, rest = data.partition(b"\n")
        self._extend_line(head)
        if not newline:
            return
        first = b"".join(self._line)
        *lines, last = rest.split(b"\n")
        self._line, self._line_bytes = [], 0
        for line in (first, *lines):
            event = self._take(line)
            if event is not None:
                yield event
        self._extend_line(last)

    def close(self) -> ServerEvent | None:
        """The event that the end of the stream left without its blank line, perhaps cut short."""
        line, self._line = b"".join(self._line), []
        return (self._take(line) if line else None) or self._take(b"")

    def _extend_line(self, piece: bytes) -> None:
        if piece:
            self._line.append(piece)
            self._line_bytes += len(piece)
            self._check_size(self._line_bytes)

    def _take(self, line: bytes) -> ServerEvent | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._check_size(len(line))
            self._data.append(value)
            self._data_bytes += len(line)
        elif field == b"event":
            self._check_size(len(line))
            self._name = value
        return None

    def _dispatch(self) -> ServerEvent | None:
        name, data = self._name, self._data
        self._name, self._data, self._data_bytes = b"", [], 0
        if not data:
            return None
        return ServerEvent(name.decode("utf-8", "replace") or "message", b"\n".join(data))

    def _check_size(self, line_bytes: int) -> None:
        if self._data_bytes + line_bytes > self._bytes_max:
            raise ModelFailure(
                "MALFORMED_RESPONSE",
                f"an event of the model's stream is larger than {self._bytes_max} bytes",
            )
