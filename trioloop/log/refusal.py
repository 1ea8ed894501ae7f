"""How the grammar says no."""

from typing import NoReturn

from trioloop.errors import GrammarError
from trioloop.events import Event


def refuse(event: Event, rule: str, expected: str, got: str) -> NoReturn:
    """Refuse an event.

    Args:
        event: which one.
        rule: what it breaks: a rule of the contract, or the section that tells of it.
        expected: what could stand there.
        got: what it says instead.

    Raises:
        GrammarError: always.
    """
    raise GrammarError(event.seq, rule, expected, got)
