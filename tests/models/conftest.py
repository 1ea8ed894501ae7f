"""Lets the judges of recordings say what they compared."""

import pytest

pytest.register_assert_rewrite("tests.models.judging")
