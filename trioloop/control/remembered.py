"""Outcomes of commands that may come again: the same id and body give the first outcome.

For commands whose id is in no log. Only ids that are text are remembered, since numbers count the
requests of one connection.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import attrs
import trio

from trioloop.control.faults import WireError
from trioloop.control.protocol import Request
from trioloop.control.results import Result


@attrs.define(eq=False)
class _Command:
    body: bytes
    done: trio.Event = attrs.field(factory=trio.Event)
    outcome: Result | WireError | None = None


class Remembered:
    """The last commands, each known by its token and its id, with what came of them.

    Args:
        commands_max: how many that have ended are kept, of all tokens together.
    """

    def __init__(self, commands_max: int) -> None:
        self._commands_max = commands_max
        self._under_way: dict[tuple[str, str], _Command] = {}
        self._ended: OrderedDict[tuple[str, str], _Command] = OrderedDict()

    async def once(
        self, owner: str, request: Request, act: Callable[[], Awaitable[Result]]
    ) -> Result:
        """Act, or give the outcome of the first time. A checkpoint.

        Args:
            owner: whose ids these are.
            request: the command.
            act: carries it out.

        Raises:
            WireError: what `act` raised, now or the first time; `id_conflict`: the id was used
                for something else.
        """
        if not isinstance(request.id, str):
            return await act()
        key = (owner, request.id)
        body = hashlib.sha256(request.method.encode() + b"\n" + bytes(request.params)).digest()
        while (known := self._under_way.get(key) or self._ended.get(key)) is not None:
            if known.body != body:
                raise WireError("id_conflict")
            await known.done.wait()
            if known.outcome is not None:
                return _first_outcome(known.outcome)
        command = self._under_way[key] = _Command(body)
        try:
            outcome = command.outcome = await act()
        except WireError as error:
            command.outcome = error
            raise
        finally:
            del self._under_way[key]
            if command.outcome is not None:  # else it wasn't carried out, and may come again
                self._ended[key] = command
            command.done.set()
            while len(self._ended) > self._commands_max:
                self._ended.popitem(last=False)
        return outcome


def _first_outcome(outcome: Result | WireError) -> Result:
    if isinstance(outcome, WireError):
        raise outcome
    return outcome
