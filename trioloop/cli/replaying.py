"""`trioloop replay`: a session shown again as it was seen, in its own time or faster.

Nothing is asked and nothing is run. What `trioloop run` doesn't show because a person has just
typed it, the prompts, is shown here.
"""

import math

import attrs
import trio

from trioloop.agent.notifications import Settled, StreamChunks, StreamStarted
from trioloop.cli.console import Output, ScreenDisplay
from trioloop.cli.exits import OK, ExitCode, why
from trioloop.cli.interrupts import interruptible
from trioloop.cli.readable import Readable
from trioloop.cli.screens import PlainScreen
from trioloop.events import (
    AssistantAttemptLogged,
    AssistantMessageLogged,
    Event,
    StepStarted,
    TurnEnded,
    TurnStarted,
    UserMessageLogged,
)
from trioloop.log.replay import Moment, replay
from trioloop.messages import text_of

IDLE_MS = 2_000
"""Between turns nothing happens: such a wait is cut to this."""

_TICK_S = 0.1
_SHOWN_AT_ONCE = 256  # moments that are drawn together where nobody waits between them


async def show_again(read: Readable, speed: float, output: Output) -> ExitCode:
    """Show a session again.

    Args:
        read: what can be read of it.
        speed: how many times as fast as it was; `math.inf` waits for nothing.
        output: where.
    """
    display = ReplayDisplay(output.screen())
    async with interruptible() as interrupts:
        await Showing(display, speed, animated=output.is_animated).show(read)
    display.leave(None if interrupts.last is not None else _left_open(read))
    await display.flush()
    if interrupts.exit_code is not None:
        output.complain(interrupts.word)
        return interrupts.exit_code
    read.complain()
    return OK


def _left_open(read: Readable) -> str | None:
    """What to say where the log ends inside a turn."""
    turn: int | None = None
    for event in read.events:
        if isinstance(event.data, TurnStarted):
            turn = event.data.turn
        elif isinstance(event.data, TurnEnded):
            turn = None
    return None if turn is None else f"the log ends inside turn {turn}"


class ReplayDisplay(ScreenDisplay):
    """Turns with their prompts, and why they ended where they didn't complete."""

    def __init__(self, screen: PlainScreen) -> None:
        super().__init__(screen, 0)

    def leave(self, told: str | None) -> None:
        """Leave the line that the answer is on, and say something of the end."""
        self._drawn.end_of_text()
        self._drawn.progress(None, 0)
        if told is not None:
            self._drawn.note(told)

    def _user_message(self, fact: UserMessageLogged, at: float) -> None:
        if fact.replaces is None and not self._messages:
            self._drawn.prompt(text_of(fact.message.content))
        super()._user_message(fact, at)

    def _turn_ended(self, fact: TurnEnded, at: float) -> None:
        super()._turn_ended(fact, at)
        settled = Settled(
            turn=fact.turn,
            turns=(fact.turn,),
            reason=fact.reason,
            code=fact.code,
            message=fact.message,
            cause=fact.cause,
        )
        if (told := why(settled)) is not None:
            self._drawn.note(told)


@attrs.define(eq=False)
class Showing:
    """One showing. The display gets the log's own times, in seconds, whatever the speed."""

    display: ReplayDisplay
    speed: float
    animated: bool = attrs.field(kw_only=True)
    _due: float = attrs.field(factory=trio.current_time, init=False)  # when the last moment was
    _at_ms: int = 0  # its time in the log
    _in_turn: bool = False
    _step: tuple[int, int] = (0, 0)
    _attempts: int = 0
    _streaming: Event | None = None  # the event of the attempt whose chunks are being shown

    async def show(self, read: Readable) -> None:
        """Show everything, each moment when it is due."""
        for place, moment in enumerate(replay(read.events)):
            await self._wait_for(moment)
            self._feed(moment)
            if place % _SHOWN_AT_ONCE == 0:
                await self.display.flush()

    async def _wait_for(self, moment: Moment) -> None:
        gap_ms = moment.at_ms - self._at_ms
        if not self._in_turn:
            gap_ms = min(gap_ms, IDLE_MS)
        start, self._due = self._due, self._due + gap_ms / 1000 / self.speed
        while trio.current_time() < self._due and math.isfinite(self.speed):
            if self.animated:
                passed = max(trio.current_time() - start, 0) * self.speed
                self.display.tick(self._at_ms / 1000 + passed)
            await self.display.flush()
            tick = trio.current_time() + _TICK_S if self.animated else math.inf
            await trio.sleep_until(min(self._due, tick))
        self._at_ms = moment.at_ms

    def _feed(self, moment: Moment) -> None:
        at, event = moment.at_ms / 1000, moment.event
        data = event.data
        if _was_sent(event) and self._streaming is not event:
            self._streaming = event
            self._attempts += 1
            self.display.feed(StreamStarted(*self._step, self._attempts), at)
        if moment.chunks is not None:
            self.display.feed(StreamChunks(moment.chunks), at)
            return
        self.display.feed(event, at)
        if isinstance(data, StepStarted):
            self._step, self._attempts = (data.turn, data.step), 0
        elif isinstance(data, TurnStarted | TurnEnded):
            self._in_turn = isinstance(data, TurnStarted)


def _was_sent(event: Event) -> bool:
    """Whether it records an attempt that reached its model."""
    data = event.data
    return isinstance(data, AssistantMessageLogged) or (
        isinstance(data, AssistantAttemptLogged) and data.sent
    )
