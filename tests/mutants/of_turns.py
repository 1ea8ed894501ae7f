"""Faults in one turn: what it claims, how it is judged, how it closes."""

from tests.mutants.mutant import Mutant

TURNS = (
    Mutant(
        "one pause more than allowed",
        "P17",
        "trioloop/agent/turn.py",
        "pauses > limits.pauses_max",
        "pauses > limits.pauses_max + 1",
        ("tests/agent/test_paths_of_answers.py::test_pauses_are_limited",),
    ),
    Mutant(
        "one pause less than allowed",
        "P17",
        "trioloop/agent/turn.py",
        "pauses > limits.pauses_max",
        "pauses >= limits.pauses_max",
        ("tests/agent/test_paths_of_answers.py::test_pauses_are_limited",),
    ),
    Mutant(
        "input beside the last pause is left behind",
        "P17",
        "trioloop/agent/turn.py",
        'due = "input" if session.state.inbox.next_step else None',
        "due = None",
        (
            "tests/agent/test_paths_of_answers.py::test_input_beside_the_last_pause_that_is_allowed_is_not_left_behind",
        ),
    ),
    Mutant(
        "a listener that always steers is never stopped",
        "P16",
        "trioloop/agent/turn.py",
        "continuations < limits.continuations_max",
        "True",
        (
            "tests/agent/test_paths_of_answers.py::test_a_listener_that_always_steers_is_stopped_by_the_limit",
        ),
    ),
    Mutant(
        "one continuation less than allowed",
        "P16",
        "trioloop/agent/turn.py",
        "continuations < limits.continuations_max",
        "continuations + 1 < limits.continuations_max",
        (
            "tests/agent/test_paths_of_answers.py::test_a_listener_that_always_steers_is_stopped_by_the_limit",
        ),
    ),
    Mutant(
        "what a listener steers as the turn stops is not looked at",
        "P16",
        "trioloop/agent/turn.py",
        "await _ask_before_stopping(resources, signal)\n"
        "            due = owed(turn, session.state.inbox)",
        "await _ask_before_stopping(resources, signal)",
        (
            "tests/agent/test_paths_of_answers.py::test_a_listener_that_steers_as_the_turn_stops_goes_on_with_it",
        ),
    ),
    Mutant(
        "stopping is asked behind a proposal that entered nothing",
        "S4",
        "trioloop/agent/turn.py",
        "outcome == Entered() and",
        "True and",
        (
            "tests/agent/test_paths_before_admission.py::test_stopping_is_not_asked_where_the_last_proposal_entered_nothing",
        ),
    ),
    Mutant(
        "stopping is asked though input waits",
        "P16",
        "trioloop/agent/turn.py",
        "elif due is None and outcome",
        "elif outcome",
        (
            "tests/agent/test_paths_of_answers.py::test_stopping_is_not_asked_while_next_step_holds_input",
        ),
    ),
    Mutant(
        "no last look behind turn_stopping",
        "R8",
        "trioloop/agent/turn.py",
        "payload)\n    await trio.lowlevel.checkpoint_if_cancelled()",
        "payload)",
        (
            "tests/agent/test_last_look.py::test_what_is_steered_as_the_turn_stops_stays_unclaimed_behind_a_cancel",
        ),
    ),
    Mutant(
        "a turn always ends as completed",
        "P14",
        "trioloop/agent/turn.py",
        "Ending(reason=turn.reason_so_far)",
        'Ending(reason="completed")',
        (
            "tests/agent/test_paths_of_answers.py::test_an_answer_that_was_cut_ends_the_turn_max_tokens",
        ),
    ),
    Mutant(
        "a later boundary claims nothing",
        "R7",
        "trioloop/agent/turn.py",
        "        if claim is not None:\n",
        "        if False:\n",
        ("tests/agent/test_sending.py::test_steers_join_the_next_step_in_their_order",),
    ),
    Mutant(
        "an answer outranks a cancel",
        "R8",
        "trioloop/agent/turn.py",
        "if signal.cancelled:\n        return",
        "if signal.cancelled and not isinstance(came, Ending):\n        return",
        (
            "tests/agent/test_last_look.py::test_a_cancel_at_the_end_of_a_step_that_nobody_is_asked_behind_is_an_abort",
        ),
    ),
    Mutant(
        "an error outranks a cancel",
        "R8",
        "trioloop/agent/turn.py",
        "if signal.cancelled:\n        return",
        "if signal.cancelled and not isinstance(came, Exception):\n        return",
        ("tests/agent/test_last_look.py::test_a_cancel_at_the_end_of_a_failed_step_is_an_abort",),
    ),
    Mutant(
        "a cancel outranks the failure of the store",
        "P19",
        "trioloop/agent/turn.py",
        "if store_error is not None:",
        "if store_error is not None and signal.cause is None:",
        (
            "tests/agent/test_store_failures.py::test_a_failure_outranks_a_cancel_that_came_before_it",
        ),
    ),
    Mutant(
        "a cancel by who observes the step's end is not seen",
        "R8",
        "trioloop/agent/turn.py",
        "        resources.session.append(*closing_step(turn.step, turn.number, "
        "failed_inside=failed_inside))\n"
        "    ending = _judge(resources, signal, came)",
        "        early = _judge(resources, signal, came)\n"
        "        resources.session.append(*closing_step(turn.step, turn.number))\n"
        "    else:\n        early = _judge(resources, signal, came)\n    ending = early",
        ("tests/agent/test_last_look.py::test_a_cancel_at_the_end_of_a_failed_step_is_an_abort",),
    ),
    Mutant(
        "a stray cancel is no error of its own",
        "R8",
        "trioloop/agent/turn.py",
        "if isinstance(error, trio.Cancelled):\n        return Ending(",
        "if False:\n        return Ending(",
        (
            "tests/agent/test_last_look.py::test_a_stray_cancelled_is_an_error_that_names_its_listener",
        ),
    ),
    Mutant(
        "what else was raised is not told beside an abort",
        "R8",
        "trioloop/agent/turn.py",
        "cause=signal.cause_of_end, also=also",
        "cause=signal.cause_of_end",
        (
            "tests/agent/test_failing_preparation.py::test_what_is_raised_instead_of_the_cancel_is_told_beside_it",
        ),
    ),
    Mutant(
        "a host's cancel has no cause of its own",
        "P18",
        "trioloop/agent/signal.py",
        'HOST_CANCELLED = "host-cancelled"',
        'HOST_CANCELLED = "disposed"',
        ("tests/runtime/test_leaving.py::test_a_nursery_around_the_runtime_may_cancel_it",),
    ),
    Mutant(
        "an asker of a cancelled host is the cause",
        "P18",
        "trioloop/agent/signal.py",
        "self.cause in (None, ASKER_CANCELLED) and host_cancelled()",
        "self.cause is None and host_cancelled()",
        ("tests/runtime/test_leaving.py::test_a_host_that_takes_an_asker_along_is_the_cause",),
    ),
    Mutant(
        "a fenced session is told as a failed store",
        "P20",
        "trioloop/agent/turn.py",
        '"FENCED" if isinstance(error, FencedError) else',
        '"STORE_FAILED" if isinstance(error, FencedError) else',
        ("tests/agent/test_store_failures.py::test_a_fenced_agent_stops_and_others_go_on",),
    ),
    Mutant(
        "an error has no code of its own",
        "P6",
        "trioloop/agent/turn.py",
        "else code_of(error)",
        'else "UNKNOWN"',
        (
            "tests/agent/test_failing_preparation.py::test_what_raises_before_admission_commits_nothing",
        ),
    ),
    Mutant(
        "who raised is not told",
        "H3",
        "trioloop/agent/turn.py",
        "words_of(error) or type(error).__name__,\n        by=by,",
        "words_of(error) or type(error).__name__,",
        (
            "tests/hooks/test_misused_hooks.py::test_a_wrong_answer_ends_the_turn_and_names_its_listener",
        ),
    ),
    Mutant(
        "a fault of our own ends a turn like any error",
        "R10",
        "trioloop/agent/turn.py",
        "return isinstance(came, InternalError | GrammarError) and raised_by(came) is None",
        "return False",
        ("tests/runtime/test_faults.py::test_a_fault_disposes_of_that_agent_and_others_go_on",),
    ),
    Mutant(
        "an interrupt does not go up",
        "R10",
        "trioloop/agent/turn.py",
        "not isinstance(error, Exception | trio.Cancelled)",
        "False",
        ("tests/runtime/test_faults.py::test_an_interrupt_in_a_hook_closes_the_log_and_comes_out",),
    ),
    Mutant(
        "no error is told of",
        "H5",
        "trioloop/agent/turn.py",
        '    if ending.reason == "error":\n        _tell_failure',
        "    if False:\n        _tell_failure",
        ("tests/agent/test_notifications.py::test_an_error_is_told_once_before_the_turns_end",),
    ),
    Mutant(
        "an aborted turn tells an error",
        "H5",
        "trioloop/agent/turn.py",
        '    if ending.reason == "error":\n        _tell_failure',
        '    if ending.reason != "completed":\n        _tell_failure',
        ("tests/agent/test_notifications.py::test_an_aborted_turn_tells_no_error",),
    ),
    Mutant(
        "a retry turn does not wait",
        "R2",
        "trioloop/agent/turn.py",
        "await trio.sleep(outcome.delay)",
        "await trio.sleep(0)",
        ("tests/agent/test_retry_turns.py::test_a_fresh_turn_repeats_the_turn_in_one_append",),
    ),
    Mutant(
        "a cancel that discards is taken for one that keeps",
        "I3",
        "trioloop/agent/turn.py",
        "keeps_inbox=signal.keeps_inbox",
        "keeps_inbox=True",
        (
            "tests/agent/test_cancel_anywhere.py::test_a_discarding_cancel_anywhere_leaves_nothing_pending",
        ),
    ),
)
