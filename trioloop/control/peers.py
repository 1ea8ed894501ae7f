"""Who is connected, and what strangers may cost: counts, and wrong tokens. Pure; time is given."""

from collections import Counter, OrderedDict

import attrs

from trioloop.control.budget import Budget
from trioloop.control.limits import ControlLimits

_MINUTE_S = 60
_ADDRESSES_MAX = 1_000


@attrs.define(eq=False)
class Visit:
    """One connection, from its accept to its end.

    Attributes:
        peer: its address, or its user on a Unix socket.
        proven: it has shown a token.
    """

    peer: str
    proven: bool = False


class Peers:
    """The connections of an endpoint.

    Args:
        limits: `connections_max`, `peer_connections_max`, `unproven_connections_max` and
            `failures_max` are used.
    """

    def __init__(self, limits: ControlLimits) -> None:
        self._limits = limits
        self._visits: set[Visit] = set()
        self._by_peer: Counter[str] = Counter()
        self._failures: OrderedDict[str, Budget] = OrderedDict()

    def __len__(self) -> int:
        return len(self._visits)

    def enter(self, peer: str) -> Visit | None:
        """Let a connection in; None: there are too many."""
        limits = self._limits
        unproven = sum(not visit.proven for visit in self._visits)
        if (
            len(self._visits) >= limits.connections_max
            or self._by_peer[peer] >= limits.peer_connections_max
            or unproven >= limits.unproven_connections_max
        ):
            return None
        visit = Visit(peer)
        self._visits.add(visit)
        self._by_peer[peer] += 1
        return visit

    def leave(self, visit: Visit) -> None:
        """A connection is over."""
        self._visits.discard(visit)
        self._by_peer[visit.peer] -= 1
        if not self._by_peer[visit.peer]:
            del self._by_peer[visit.peer]

    def may_fail(self, peer: str, now: float) -> bool:
        """Note a wrong token; False: there were too many of that peer's in the last minute."""
        budget = self._failures.get(peer)
        if budget is None:
            failures = self._limits.failures_max
            budget = self._failures[peer] = Budget(failures, failures / _MINUTE_S, now)
            while len(self._failures) > _ADDRESSES_MAX:
                self._failures.popitem(last=False)
        return budget.take(now)
