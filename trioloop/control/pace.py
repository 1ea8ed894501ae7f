"""How often live frames go out, all clients together, so that agents run whoever looks on.

What is streamed while a client waits for its turn is merged: it waits for time, and misses no word.
Durable events take no turns: they are few.

Turns come in beats. A beat that is itself late shows that Trio's thread is busy, perhaps with
sending; then the next ones have half as many turns, until beats come in time again.
"""

import trio

_BEAT_S = 0.02
_LATE_S = 0.02  # beyond it the thread is busy
_RECOVERY_BEATS = 50  # from no turns to all of them


class Pace:
    """Turns, in the order in which they are asked for.

    Args:
        per_s: turns a second, where the thread has time for them; at least one in each beat.
    """

    def __init__(self, per_s: float) -> None:
        self._most = max(per_s * _BEAT_S, 1)
        self._allowed = self._most  # in one beat, as things are
        self._left = self._most  # in this beat
        self._waiting = trio.lowlevel.ParkingLot()
        self._asked = trio.Event()

    async def turn(self) -> None:
        """Wait for a turn. A checkpoint only where it must wait."""
        self._asked.set()
        if self._left < 1 or self._waiting:
            await self._waiting.park()
        else:
            self._left -= 1

    async def beat(self) -> None:
        """Give turns until cancelled; nothing goes on while nobody asks."""
        while True:
            await self._asked.wait()
            if not self._waiting:
                self._asked = trio.Event()
            due = trio.current_time() + _BEAT_S
            await trio.sleep_until(due)
            self._give(late_s=trio.current_time() - due)

    def _give(self, late_s: float) -> None:
        if late_s > _LATE_S:
            self._allowed = max(self._allowed / 2, 1)
        else:
            self._allowed = min(self._allowed + self._most / _RECOVERY_BEATS, self._most)
        given = self._waiting.unpark(count=int(self._allowed))
        self._left = self._allowed - len(given)
