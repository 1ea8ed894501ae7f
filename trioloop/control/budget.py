"""A bucket of tokens: so many at once, so many a second after that. Pure; time is given."""


class Budget:
    """How much somebody may still do.

    Args:
        burst: at once.
        per_s: a second, once the burst is used up.
        now: seconds of any one clock.
    """

    __slots__ = ("_burst", "_left", "_per_s", "_seen")

    def __init__(self, burst: float, per_s: float, now: float) -> None:
        self._burst = burst
        self._per_s = per_s
        self._left = burst
        self._seen = now

    def take(self, now: float) -> bool:
        """Take one; False: there is none."""
        self._refill(now)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def is_full(self, now: float) -> bool:
        """Whether nothing was taken for so long that all is there again."""
        self._refill(now)
        return self._left >= self._burst

    def _refill(self, now: float) -> None:
        self._left = min(self._burst, self._left + (now - self._seen) * self._per_s)
        self._seen = now
