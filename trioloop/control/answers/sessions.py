"""Logs: pages of events, parts of large ones, the story of a message."""

import msgspec
from msgspec import Raw

from trioloop.control import parameters
from trioloop.control.encoded import large_event
from trioloop.control.faults import WireError
from trioloop.control.results import Events, Part, Story
from trioloop.control.service import Service
from trioloop.errors import InvalidInputError
from trioloop.log.explain import explain as story_of
from trioloop.ports import StoredRow

_encode = msgspec.json.Encoder().encode


async def events(service: Service, asked: parameters.EventPage) -> Events:
    """A page of durable events, of a live session or a stored one."""
    name = service.name(asked.agent)
    rows = await service.runtime.stored_events(name, after=asked.after, limit=asked.limit + 1)
    page: list[Raw] = []
    size = 0
    for row in rows[: asked.limit]:
        told = large_event(row.payload, row.seq, service.limits.frame_bytes_max)
        event = row.payload if told is None else _encode(told)
        size += len(event)
        if page and size > service.limits.page_bytes_max:
            break
        page.append(Raw(event))
    return Events(events=tuple(page), more=len(page) < len(rows))


async def part(service: Service, asked: parameters.EventPart) -> Part:
    """A part of one event's JSON text."""
    row = await _row(service, asked.agent, asked.seq)
    text = row.payload.decode()
    characters = service.limits.page_bytes_max // 4  # of at most four bytes each
    return Part(text=text[asked.offset : asked.offset + characters], characters=len(text))


async def explain(service: Service, asked: parameters.OneMessage) -> Story:
    """What happened to a message of a live session."""
    agent = service.agent(asked.agent)
    try:
        story = story_of(agent.session.events(), asked.message)
    except InvalidInputError:
        raise WireError("not_found", field="$.message") from None
    fate = story.fate
    return Story(
        message=story.message,
        status=fate.status,
        turn=fate.turn,
        why=fate.why,
        events=story.events,
    )


async def _row(service: Service, agent: str, seq: int) -> StoredRow:
    rows = await service.runtime.stored_events(service.name(agent), after=seq - 1, limit=1)
    if not rows or rows[0].seq != seq:
        raise WireError("not_found", field="$.seq")
    return rows[0]
