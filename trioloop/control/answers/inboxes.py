"""The two lists of pending messages: list, remove, replace, restore."""

from trioloop.control import parameters
from trioloop.control.faults import WireError
from trioloop.control.results import Done, Inbox, Restored
from trioloop.control.service import Service
from trioloop.errors import InvalidInputError
from trioloop.ids import MessageId
from trioloop.messages import as_blocks


async def list_inbox(service: Service, asked: parameters.OneAgent) -> Inbox:
    """The pending messages."""
    inbox = (await service.live(asked.agent)).inbox
    return Inbox(next_turn=inbox.next_turn, next_step=inbox.next_step)


async def remove(service: Service, asked: parameters.OneMessage) -> Done:
    """Discard a pending message."""
    agent = await service.live(asked.agent)
    changed = agent.inbox.remove(MessageId(asked.message))
    await agent.session.checkpoint()
    return Done(changed=changed)


async def replace(service: Service, asked: parameters.Replacement) -> Done:
    """Put other content in a pending message's place."""
    agent = await service.live(asked.agent)
    try:
        changed = agent.inbox.replace(MessageId(asked.message), as_blocks(asked.content))
    except InvalidInputError:
        raise WireError("invalid_params", field="$.content") from None
    await agent.session.checkpoint()
    return Done(changed=changed)


async def restore(service: Service, asked: parameters.OneTurn) -> Restored:
    """Put back what a turn claimed and didn't admit."""
    agent = await service.live(asked.agent)
    messages = agent.inbox.restore(asked.turn)
    await agent.session.checkpoint()
    return Restored(messages=messages)
