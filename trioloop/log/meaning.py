"""Events without what differs from run to run: times, and identifiers that chance made.

Two runs of the same script write logs that are equal in this reading, though the wall clock and the
random numbers were others (G10). Which event is the first to differ is told in `explain`.
"""

from typing import Any

import msgspec

from trioloop.codec import encode_event
from trioloop.events import Event

_PACE = frozenset({"times", "sizes", "order", "lengths"})  # how a stream came, of a TimedStream
_IDS = frozenset({"id", "wire_id", "request_id", "session", "parent"})


class Meaning:
    """Reads the events of one log, in order, as JSON values without what is to be ignored.

    An identifier is read as the place at which its log first tells of it, so that two logs which
    use different ones in the same way are equal.

    Args:
        times: whether times count, and how the pieces of a stream came.
        ids: whether the identifiers of messages, sessions, calls and requests count, and folders.
    """

    def __init__(self, *, times: bool, ids: bool) -> None:
        self._times = times
        self._ids = ids
        self._places: dict[str, str] = {}

    def of(self, event: Event) -> Any:  # Any: JSON
        """The next event."""
        row = msgspec.json.decode(encode_event(event))
        if not self._times:
            _take_times(row)
        return row if self._ids else self._renamed(row)

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._renamed(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {key: self._member(key, item) for key, item in value.items() if key != "cwd"}

    def _member(self, key: str, value: Any) -> Any:
        names_one = key in _IDS or (key == "message" and str(value) in self._places)
        if isinstance(value, str) and names_one:
            return self._places.setdefault(value, f"#{len(self._places) + 1}")
        return self._renamed(value)


def _take_times(row: dict[str, Any]) -> None:
    """Leave out when an event came, and how the pieces of its stream did."""
    row.pop("time")
    data = row["data"]
    data.pop("created", None)
    stream = data.get("stream")
    if isinstance(stream, dict):
        data["stream"] = {key: value for key, value in stream.items() if key not in _PACE}
