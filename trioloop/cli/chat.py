"""`trioloop chat`: a conversation at a terminal, or one prompt a line from anything else.

A line typed while the agent works steers it; one typed while it is idle is a follow-up. Lines from
a pipe or a file are follow-ups, one after the other.
"""

import codecs
import math
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing

import trio

from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Settled
from trioloop.cli.console import Output
from trioloop.cli.exits import OK, ExitCode, code_of
from trioloop.cli.interrupts import Interrupts, cause_of, interruptible
from trioloop.cli.setup import Setup, opened
from trioloop.cli.watching import shown
from trioloop.errors import TrioloopError

TWICE_S = 3
_READ_BYTES = 65_536
LEAVE = frozenset({"/quit", "/exit", "/q"})


async def chat(setup: Setup, output: Output) -> ExitCode:
    """Talk until the input ends, `/quit`, or Ctrl-C twice."""
    conversation: _Conversation | None = None
    async with interruptible() as interrupts, opened(setup) as agent:
        output.introduce(setup, agent.name)
        conversation = _Conversation(agent, output, interrupts)
        async with shown(agent, output.chat_display(trio.current_time()), animated=False):
            await conversation.run()
    if interrupts.scope.cancelled_caught and interrupts.exit_code is not None:
        output.end_line()
        return interrupts.exit_code
    return conversation.exit_code if conversation is not None else OK


class _Conversation:
    def __init__(self, agent: Agent, output: Output, interrupts: Interrupts) -> None:
        self._agent = agent
        self._output = output
        self._interactive = sys.stdin.isatty()
        self._interrupted_at = -math.inf
        self._settled: Settled | None = None
        interrupts.react = self._interrupted
        agent.on("settled", self._note_outcome)

    @property
    def exit_code(self) -> ExitCode:
        """Of a script, that of its last turn; a person who leaves has seen how it went."""
        if self._interactive or self._settled is None:
            return OK
        return code_of(self._settled)

    async def run(self) -> None:
        if self._interactive:
            self._output.hint("typing while it works steers; Ctrl-C cancels, twice leaves")
            self._output.prompt()
        async with aclosing(lines(sys.stdin.fileno())) as typed:
            async for line in typed:
                if line.strip() in LEAVE:
                    break
                await self._hear(line)
        if not self._interactive:
            await self._agent.wait_idle()

    async def _hear(self, line: str) -> None:
        self._interrupted_at = -math.inf
        if not line.strip():
            if self._interactive and self._agent.status == "idle":
                self._output.prompt()
            return
        try:
            if self._interactive and self._agent.status == "running":
                self._agent.steer(line)
            else:
                self._agent.followup(line)
        except TrioloopError as error:
            self._output.complain(str(error))
        if not self._interactive:
            await self._agent.wait_idle()

    def _note_outcome(self, settled: object) -> None:
        if isinstance(settled, Settled):
            self._settled = settled

    def _interrupted(self, number: int) -> bool:
        """The first Ctrl-C cancels the turn, or warns; a second one soon after it leaves."""
        now = trio.current_time()
        soon = now - self._interrupted_at < TWICE_S
        if number != signal.SIGINT or not self._interactive or soon:
            return False
        self._interrupted_at = now
        self._output.end_line()
        if self._agent.status == "running":
            self._agent.cancel(cause_of(number))
        else:
            self._output.hint("Ctrl-C again leaves, and so does Ctrl-D")
            self._output.prompt()
        return True


async def lines(descriptor: int) -> AsyncGenerator[str, None]:
    """The lines of a file descriptor, read in a thread that is left alone when nobody waits."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    while True:
        data = await trio.to_thread.run_sync(
            os.read, descriptor, _READ_BYTES, abandon_on_cancel=True
        )
        *whole, rest = (rest + decoder.decode(data, final=not data)).split("\n")
        for line in whole:
            yield line
        if not data:
            if rest:
                yield rest
            return
