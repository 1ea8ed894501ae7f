"""The exit code and the line of each way in which a turn may end."""

import typing

import pytest

from trioloop.agent.notifications import Settled
from trioloop.cli.exits import BY_REASON, CommandError, code_of, explained, why
from trioloop.errors import UnknownSessionError
from trioloop.events import TurnReason


def settled(reason: TurnReason, **facts: str) -> Settled:
    return Settled(turn=1, turns=(1,), reason=reason, **facts)  # type: ignore[arg-type]


def test_every_reason_has_its_code() -> None:
    assert set(BY_REASON) == set(typing.get_args(TurnReason))


@pytest.mark.parametrize(
    ("outcome", "code", "line"),
    [
        (settled("completed"), 0, None),
        (settled("completed", store_error="disk full"), 1, "the answer is not stored: disk full"),
        (settled("error", code="AUTH", message="wrong key"), 1, "AUTH: wrong key"),
        (settled("max-tokens"), 3, "the answer was cut: the model reached its maximum of tokens"),
        (settled("blocked", code="NO", message="no"), 4, "the turn was blocked: NO: no"),
        (settled("aborted", cause="user"), 5, "the turn was cancelled"),
        (settled("aborted", cause="disposed"), 5, "the turn was aborted: disposed"),
        (settled("interrupted"), 1, "the turn was interrupted: no reason was told"),
    ],
)
def test_an_outcome_has_its_code_and_its_line(
    outcome: Settled, code: int, line: str | None
) -> None:
    assert (code_of(outcome), why(outcome)) == (code, line)


def test_an_error_inside_groups_of_one_is_explained() -> None:
    inner = ExceptionGroup("inner", [UnknownSessionError("no session 'x'")])
    told = explained(ExceptionGroup("outer", [inner]))
    assert isinstance(told, CommandError)
    assert str(told) == "no session 'x'"


def test_a_fault_of_our_own_isn_t_explained_away() -> None:
    assert explained(KeyError("x")) is None
