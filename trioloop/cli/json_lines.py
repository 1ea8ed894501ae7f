"""`--json`: the events of the log, one JSON object a line, on standard output."""

import re
from typing import TextIO

import trio

from trioloop.cli.display import Seen
from trioloop.cli.pipes import write
from trioloop.codec import encode_event
from trioloop.events import Event

_CONTROLS = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class JsonLines:
    """A display that shows each event as its canonical JSON, and notifications not at all."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lines: list[str] = []

    def feed(self, seen: Seen, at: float) -> None:
        """Take an event."""
        if isinstance(seen, Event):
            self._lines.append(json_line(seen))

    def tick(self, now: float) -> None:
        """Time isn't shown."""

    async def flush(self) -> None:
        """Write what was taken. A checkpoint."""
        if self._lines:
            await trio.to_thread.run_sync(self._write)
        else:
            await trio.lowlevel.checkpoint()

    def _write(self) -> None:
        lines, self._lines = self._lines, []
        write(self._out, "".join(f"{line}\n" for line in lines))


def json_line(event: Event) -> str:
    """An event as one line; characters that steer a terminal are written as JSON escapes."""
    return harmless(encode_event(event).decode())


def harmless(json: str) -> str:
    """JSON that means the same, and steers no terminal."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", json)
