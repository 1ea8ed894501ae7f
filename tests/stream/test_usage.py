"""Usage adds up, and what nobody knows stays unknown."""

from trioloop.chunks import Usage


def test_usage_adds_up_number_by_number() -> None:
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)


def test_what_one_of_two_does_not_know_is_taken_from_the_other() -> None:
    assert Usage(1, None, None, 0) + Usage(None, 2, None, 0) == Usage(1, 2, None, 0)


def test_what_nobody_knows_is_not_0() -> None:
    assert Usage() + Usage() == Usage()
