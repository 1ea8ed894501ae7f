"""Events as they go out: encoded once, however many clients read them. No I/O.

Those who follow a session are close to its end, so the last few encodings serve all of them; who
reads old events pays for them.
"""

from collections import OrderedDict

import attrs
from msgspec import Raw

from trioloop.codec import encode_event
from trioloop.control.results import LargeEvent
from trioloop.events import Event
from trioloop.ids import SessionId

_KEPT_BYTES_MAX = 4 * 1024 * 1024  # of all sessions together
_NOTHING = Raw(b"null")


@attrs.frozen
class Encoded:
    """An event as it is told.

    Attributes:
        event: the very event; another session of the same name has others.
        whole: its JSON; `null` where it is too large for a frame.
        large: what is told in its place then.
    """

    event: Event
    whole: Raw
    large: LargeEvent | None


class EncodedEvents:
    """The encodings of the events that were told last.

    Args:
        frame_bytes_max: of an event that is told whole.
        kept_bytes_max: of the encodings that are kept.
    """

    def __init__(self, frame_bytes_max: int, kept_bytes_max: int = _KEPT_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._kept_bytes_max = kept_bytes_max
        self._kept: OrderedDict[tuple[SessionId, int], Encoded] = OrderedDict()
        self._bytes = 0

    def of(self, session: SessionId, event: Event) -> Encoded:
        """An event as it is told, from what is kept where it can be had."""
        key = (session, event.seq)
        known = self._kept.get(key)
        if known is not None and known.event is event:
            return known
        payload = encode_event(event)
        large = large_event(payload, event.seq, self._frame_bytes_max)
        encoded = Encoded(event, Raw(payload) if large is None else _NOTHING, large)
        self._keep(key, encoded)
        return encoded

    def _keep(self, key: tuple[SessionId, int], encoded: Encoded) -> None:
        replaced = self._kept.pop(key, None)
        if replaced is not None:
            self._bytes -= _size(replaced)
        self._kept[key] = encoded
        self._bytes += _size(encoded)
        while self._bytes > self._kept_bytes_max:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= _size(oldest)


_ENTRY_BYTES = 500  # of an entry beside its JSON, roughly


def _size(encoded: Encoded) -> int:
    return len(bytes(encoded.whole)) + _ENTRY_BYTES


def large_event(payload: bytes, seq: int, bytes_max: int) -> LargeEvent | None:
    """What is told of an event that is too large for a frame; None: it isn't."""
    if len(payload) <= bytes_max:
        return None
    head = payload[: payload.index(b",")]
    return LargeEvent(
        seq=seq,
        type=head.partition(b":")[2].strip(b'"').decode(),
        characters=len(payload.decode()),
    )
