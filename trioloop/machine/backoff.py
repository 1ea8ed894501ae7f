"""How long to wait before a retry: exponential, bounded, with jitter, or as the provider says.

Numbers in, seconds out; who draws the jitter's random number and who waits is elsewhere.
"""


def backoff_s(retry: int, *, first_s: float, max_s: float, jitter: float, random: float) -> float:
    """Seconds before a retry that nobody has given a time for.

    Args:
        retry: which one, from 1.
        first_s: seconds before the first; each further one waits twice as long.
        max_s: seconds that none is longer than.
        jitter: the largest part of the delay, 0 to 1, that is taken off.
        random: a number from 0 to 1 that says how much of it is.
    """
    doublings = min(retry - 1, 64)  # beyond it every delay is max_s, and a float would overflow
    return min(first_s * 2.0**doublings, max_s) * (1.0 - jitter * random)


def retry_delay_s(
    retry: int,
    *,
    asked_s: float | None,
    asked_max_s: float,
    first_s: float,
    max_s: float,
    jitter: float,
    random: float,
) -> float | None:
    """Seconds before a retry; None: the provider asks for more patience than we have.

    Args:
        retry: which one, from 1.
        asked_s: seconds that the provider asked to wait, if it did.
        asked_max_s: the longest such wait that is followed.
        first_s: as for `backoff_s`, where the provider didn't ask.
        max_s: likewise.
        jitter: likewise.
        random: likewise.
    """
    if asked_s is None:
        return backoff_s(retry, first_s=first_s, max_s=max_s, jitter=jitter, random=random)
    return asked_s if asked_s <= asked_max_s else None
