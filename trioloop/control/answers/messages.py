"""Sending. The server alone decides which turn takes a message; a client doesn't race for it."""

from trioloop.agent.agent import Agent
from trioloop.control import parameters
from trioloop.control.faults import WireError
from trioloop.control.results import Sent
from trioloop.control.service import Service
from trioloop.errors import DuplicateMessageError, InvalidInputError
from trioloop.events import InboxSpliced, PendingMessage
from trioloop.ids import MessageId
from trioloop.messages import MessageList, UserMessage, as_blocks

_PRESETS: dict[parameters.Preset, tuple[MessageList, bool]] = {
    "followup": ("next-turn", True),
    "steer": ("next-step", True),
    "inject": ("next-step", False),
}


async def send(service: Service, asked: parameters.Send) -> Sent:
    """Send a message, or tell what became of it where it was sent before."""
    agent = await service.live(asked.agent)
    target, wakeup = _route(asked)
    message = UserMessage(
        as_blocks(asked.message.content), MessageId(asked.message.id), asked.message.source
    )
    try:
        agent.send(message, target=target, wakeup=wakeup)
    except DuplicateMessageError:
        if not _is_same(_first(agent, message.id), message, target, wakeup):
            raise WireError("id_conflict", field="$.message.id") from None
    except InvalidInputError:
        raise WireError("invalid_params", field="$.message") from None
    await agent.session.checkpoint()
    return _sent(agent, message.id)


def _route(asked: parameters.Send) -> tuple[MessageList, bool]:
    if isinstance(asked.preset, str):
        if isinstance(asked.target, str) or isinstance(asked.wakeup, bool):
            raise WireError("invalid_params", field="$.preset")
        return _PRESETS[asked.preset]
    target: MessageList = asked.target if isinstance(asked.target, str) else "next-turn"
    return target, asked.wakeup if isinstance(asked.wakeup, bool) else True


def _first(agent: Agent, id: MessageId) -> tuple[MessageList, PendingMessage] | None:
    """How a message first came; None: it didn't come by the inbox."""
    for event in agent.session.events():
        if isinstance(event.data, InboxSpliced):
            for pending in event.data.inserted:
                if pending.message.id == id:
                    return event.data.list, pending
    return None


def _is_same(
    first: tuple[MessageList, PendingMessage] | None,
    message: UserMessage,
    target: MessageList,
    wakeup: bool,
) -> bool:
    if first is None:
        return False
    list_, pending = first
    return (
        pending.message == message
        and pending.wakeup == wakeup
        and (list_ == target or pending.after_cancel)  # the server has chosen another (I4)
    )


def _sent(agent: Agent, id: MessageId) -> Sent:
    state = agent.session.state
    fate = state.fates[id]
    waits_behind = None if state.turn is None else state.turn.number
    turn = waits_behind if fate.status == "pending" else fate.turn
    return Sent(message=id, status=fate.status, turn=turn, seq=fate.seq)
