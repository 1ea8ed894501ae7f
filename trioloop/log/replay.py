"""Events to what people saw, when they saw it: a log shown again without effects.

Nothing is run and nothing is asked: the times are those of the log, and the chunks of each attempt
come from its compact stream (E4). Who waits between two moments is the caller.
"""

from collections.abc import Iterable, Iterator

import attrs

from trioloop.chunks import Chunk, Frame, expand
from trioloop.events import AssistantAttemptLogged, AssistantMessageLogged, Event


@attrs.frozen
class Moment:
    """Something that was to be seen.

    Attributes:
        at_ms: milliseconds since the first event.
        event: the event that was appended then, or that these chunks led to.
        chunks: what the model streamed at that moment; None: it is the event itself.
    """

    at_ms: int
    event: Event
    chunks: tuple[Chunk, ...] | None = None


def replay(events: Iterable[Event]) -> Iterator[Moment]:
    """Everything that happened in a log, in order, with the time at which it did.

    The frames of an attempt come before the event that records it. An attempt is logged when it
    ends, so its last frame is taken to have come then.
    """
    began: int | None = None
    last = 0
    for event in events:
        began = event.time if began is None else began
        at_ms = event.time - began
        for frame_ms, frame in _timed(_frames(event), at_ms):
            last = max(last, frame_ms)
            yield Moment(last, event, frame.chunks)
        last = max(last, at_ms)
        yield Moment(last, event)


def _frames(event: Event) -> tuple[Frame, ...]:
    data = event.data
    if isinstance(data, AssistantMessageLogged):
        return expand(data.stream, data.message.content)
    if isinstance(data, AssistantAttemptLogged):
        return expand(data.stream, ())
    return ()


def _timed(frames: tuple[Frame, ...], ended_ms: int) -> Iterator[tuple[int, Frame]]:
    for frame in frames:
        yield ended_ms - (frames[-1].at_ms - frame.at_ms), frame
