"""Sending from outside the Trio thread."""

import logging
from typing import Protocol

import trio

from trioloop.errors import TrioloopError
from trioloop.ids import MessageId
from trioloop.messages import Content, MessageList, UserMessage

_log = logging.getLogger("trioloop.agent")


class Sender(Protocol):
    """Whoever takes messages on the Trio thread."""

    def send(
        self, message: Content | UserMessage, *, target: MessageList, wakeup: bool
    ) -> MessageId:
        """Take a message."""
        ...


class FromThread:
    """An agent's sends for other threads."""

    __slots__ = ("_agent", "_token")

    def __init__(self, agent: Sender, token: trio.lowlevel.TrioToken) -> None:
        self._agent = agent
        self._token = token

    def send(
        self,
        message: Content | UserMessage,
        *,
        target: MessageList = "next-turn",
        wakeup: bool = True,
    ) -> MessageId:
        """Send from a worker thread and wait for the answer; raises what `Agent.send` raises.

        Not from a guest-mode host's own thread, which it would block for ever: use `send_soon`.
        """

        def send() -> MessageId:
            return self._agent.send(message, target=target, wakeup=wakeup)

        return trio.from_thread.run_sync(send, trio_token=self._token)

    def send_soon(
        self,
        message: Content | UserMessage,
        *,
        target: MessageList = "next-turn",
        wakeup: bool = True,
    ) -> None:
        """Send from anywhere without waiting; what goes wrong is logged."""

        def send() -> None:
            try:
                self._agent.send(message, target=target, wakeup=wakeup)
            except TrioloopError:
                _log.exception("a message sent with send_soon was not taken")

        self._token.run_sync_soon(send)
