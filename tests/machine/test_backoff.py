"""How long a retry waits: growing, bounded, jittered, or as the provider asks (R3)."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioloop.errors import InvalidInputError
from trioloop.machine.backoff import backoff_s
from trioloop.ports import RetryPolicy

times = st.floats(0, 1_000)
parts = st.floats(0, 1)


def test_the_usual_policy_is_five_retries_from_half_a_second_on() -> None:
    policy = RetryPolicy()
    assert [policy.delay_s(retry, None, 0) for retry in range(1, 7)] == [0.5, 1, 2, 4, 8, None]
    assert [policy.delay_s(retry, None, 1) for retry in range(1, 3)] == [0.45, 0.9]


def test_delays_grow_up_to_their_limit() -> None:
    policy = RetryPolicy(retries_max=8, first_delay_s=1, delay_max_s=5)
    assert [policy.delay_s(retry, None, 0) for retry in range(1, 9)] == [1, 2, 4, 5, 5, 5, 5, 5]


@given(st.integers(1, 10_000), times, times, parts, parts)
def test_a_delay_is_never_longer_than_its_limit_nor_negative(
    retry: int, first: float, most: float, jitter: float, random: float
) -> None:
    delay = backoff_s(retry, first_s=first, max_s=most, jitter=jitter, random=random)
    assert 0 <= delay <= most


@given(times, parts)
def test_without_jitter_chance_changes_nothing(first: float, random: float) -> None:
    policy = RetryPolicy(first_delay_s=first, jitter=0)
    assert policy.delay_s(1, None, random) == policy.delay_s(1, None, 0)


@given(st.integers(1, 5), times, parts)
def test_a_wait_that_the_provider_asks_for_is_kept_to_the_second(
    retry: int, asked: float, random: float
) -> None:
    policy = RetryPolicy(asked_delay_max_s=100)
    assert policy.delay_s(retry, asked, random) == (asked if asked <= 100 else None)


def test_no_wait_at_all_is_a_wait() -> None:
    assert RetryPolicy().delay_s(1, 0, 0.5) == 0
    assert RetryPolicy(first_delay_s=0).delay_s(1, None, 0.5) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retries_max", -1),
        ("first_delay_s", -0.1),
        ("delay_max_s", math.nan),
        ("jitter", 1.5),
        ("jitter", -0.1),
        ("asked_delay_max_s", "long"),
    ],
)
def test_a_policy_that_is_none_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=name):
        RetryPolicy(**{name: value})
