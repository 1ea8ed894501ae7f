"""Reads the tool calls of a Chat Completions stream, whose pieces come in many forms.

The first piece of a call should have its id and name, and later ones only its index and a part of
the arguments. Real servers repeat the id and the name on every piece, leave the index out, send an
empty id, arguments as null or as an object, or a whole call at once.
"""

from collections.abc import Iterator

import attrs
import msgspec

from trioloop.chunks import ArgumentsDelta, Chunk, ToolCallStart
from trioloop.models.failures import check_arguments, unnamed_call
from trioloop.models.reading import Object, an_object, string


@attrs.define(eq=False)
class _Call:
    number: int
    wire_id: str = ""
    name: str = ""
    pieces: list[str] = attrs.Factory(list)
    chars: int = 0
    started: bool = False

    @property
    def whole(self) -> bool:
        """Its arguments are JSON as they are."""
        try:
            msgspec.json.decode("".join(self.pieces))
        except (msgspec.DecodeError, RecursionError):
            return False
        return True


class CallReader:
    """The calls of one answer, in the order of their first sight.

    Args:
        arguments_chars_max: the longest raw arguments of one call.
    """

    def __init__(self, arguments_chars_max: int) -> None:
        self._chars_max = arguments_chars_max
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._uses_tool_calls = False

    @property
    def any(self) -> bool:
        """Whether there is a call."""
        return bool(self._calls)

    @property
    def complete(self) -> bool:
        """Whether no call looks cut: its arguments are JSON, or there are none."""
        return all(not call.chars or call.whole for call in self._calls)

    def read(self, delta: Object) -> Iterator[Chunk]:
        """The chunks of the calls in a delta.

        Raises:
            ModelFailure: MALFORMED_RESPONSE, a call's arguments are longer than their limit.
        """
        pieces = delta.get("tool_calls")
        if isinstance(pieces, list) and pieces:
            self._uses_tool_calls = True
            for piece in pieces:
                if isinstance(piece, dict):
                    yield from self._read_piece(piece)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict) and not self._uses_tool_calls:
            yield from self._read_piece({"index": 0, "function": legacy})

    def check_names(self) -> None:
        """Check, at the end, that each call has a name.

        Raises:
            ModelFailure: MALFORMED_RESPONSE, one has none.
        """
        if any(not call.name for call in self._calls):
            raise unnamed_call()

    def _read_piece(self, piece: Object) -> Iterator[Chunk]:
        function = an_object(piece.get("function"))
        wire_id, name = string(piece.get("id")), string(function.get("name"))
        text = _arguments(function.get("arguments"))
        call = self._call_of(piece.get("index"), wire_id, name, text)
        call.wire_id = call.wire_id or wire_id
        call.name = call.name or name
        self._add(call, text)
        if call.started:
            held = text
        elif call.name:
            call.started = True
            held = "".join(call.pieces)
            yield ToolCallStart(call.number, call.wire_id, call.name)
        else:
            return  # its arguments wait for its name
        if held:
            yield ArgumentsDelta(call.number, held)

    def _call_of(self, index: object, wire_id: str, name: str, text: str) -> _Call:
        if not isinstance(index, int):
            return self._call_without_index(wire_id, name, text)
        call = self._by_index.get(index)
        another = call is not None and wire_id and name and call.wire_id not in {"", wire_id}
        if call is None or (another and call.whole):
            # The second case: a server that numbers all of its calls 0.
            call = self._by_index[index] = self._new()
        return call

    def _call_without_index(self, wire_id: str, name: str, text: str) -> _Call:
        last = self._calls[-1] if self._calls else None
        if wire_id:
            known = (call for call in self._calls if call.wire_id == wire_id)
            return next(known, None) or self._new()
        if last is None or (name and text and last.whole):
            return self._new()
        return last

    def _new(self) -> _Call:
        call = _Call(len(self._calls))
        self._calls.append(call)
        return call

    def _add(self, call: _Call, text: str) -> None:
        if not text:
            return
        call.pieces.append(text)
        call.chars += len(text)
        check_arguments(call.chars, self._chars_max)


def _arguments(value: object) -> str:
    """A piece of raw arguments; a server that sends them as an object sends them whole."""
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return string(value)
