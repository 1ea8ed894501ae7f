"""Faults in bodies, their threads and their own calls, and in how a call ends."""

from tests.mutants.mutant import Mutant

BODIES = (
    Mutant(
        "a call speaks behind its end",
        "T11",
        "trioloop/tools/call.py",
        "        self.given.closed = True\n        if self._body.started:",
        "        if self._body.started:",
        (
            "tests/tools/test_call_ends.py::test_what_a_body_says_after_its_end_is_dropped_though_its_result_waits",
        ),
    ),
    Mutant(
        "a result that can't be encoded ends the batch",
        "G12",
        "trioloop/tools/call.py",
        "            outcome = encoding_failed(error)\n            self._log(outcome)\n",
        "            raise\n",
        (
            "tests/tools/test_call_ends.py::test_an_outcome_that_json_cannot_hold_hurts_no_other_call",
        ),
    ),
    Mutant(
        "a stray cancel aborts its call",
        "T9",
        "trioloop/tools/call.py",
        "            self.outcome = failures.leaked()\n",
        '            self._stop_short("aborted")\n',
        ("tests/tools/test_call_policies.py::test_a_stray_cancelled_of_a_policy_is_found",),
    ),
    Mutant(
        "a stray cancel of a body goes up",
        "T9",
        "trioloop/tools/body.py",
        "                return failures.leaked()\n            raise error",
        "                raise error\n            raise error",
        (
            "tests/tools/test_policies_see_what_counts.py::test_a_wrapper_is_given_the_outcome_of_a_body_that_raised_a_stray_cancelled",
        ),
    ),
    Mutant(
        "the last cause of a stop counts",
        "T12",
        "trioloop/tools/body.py",
        "if self.cause is not None or self.ended:",
        "if self.ended:",
        ("tests/tools/test_call_cancel.py::test_the_first_of_two_cancels_is_the_one_that_is_told",),
    ),
    Mutant(
        "an abandoned thread's token is not replaced",
        "T13",
        "trioloop/tools/threads.py",
        "            self._limiter.total_tokens += 1\n",
        "            pass\n",
        (
            "tests/tools/test_call_threads.py::test_a_thread_that_hangs_is_abandoned_named_and_replaced",
        ),
    ),
    Mutant(
        "a thread that ends late leaves a token too many",
        "T13",
        "trioloop/tools/threads.py",
        "            self._limiter.total_tokens -= 1\n",
        "            pass\n",
        (
            "tests/tools/test_call_threads.py::test_a_token_that_replaced_one_goes_when_the_abandoned_thread_ends",
        ),
    ),
    Mutant(
        "a cancelled call lets its nested calls run",
        "T12",
        "trioloop/tools/nested.py",
        "                self._own_scope.cancel()\n",
        "                pass\n",
        (
            "tests/tools/test_nested_calls.py::test_a_nested_body_outlives_no_grace_though_its_parent_is_shielded_by_then",
        ),
    ),
    Mutant(
        "a failed scheduler leaves calls without a result",
        "P21",
        "trioloop/tools/dispatch.py",
        "            if not job.recorded:\n",
        "            if False:\n",
        (
            "tests/tools/test_call_ends.py::test_each_call_has_its_result_though_the_scheduler_failed_to_record_one",
        ),
    ),
)
