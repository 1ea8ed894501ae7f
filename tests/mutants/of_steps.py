"""Faults in one step: the hooks before it, its retries, its calls."""

from tests.mutants.mutant import Mutant

STEPS = (
    Mutant(
        "no last look behind the conditions",
        "R8",
        "trioloop/agent/step.py",
        "await own.resolve(wider, context)\n    await _look()",
        "await own.resolve(wider, context)",
        (
            "tests/agent/test_failing_preparation.py::test_nobody_is_asked_behind_a_cancel_however_quick_it_was",
        ),
    ),
    Mutant(
        "no last look behind the assembly",
        "R8",
        "trioloop/agent/step.py",
        '    await _look()\n    signal.place = "agent.pre_step"',
        '    signal.place = "agent.pre_step"',
        (
            "tests/agent/test_failing_preparation.py::test_nobody_is_asked_behind_a_cancel_however_quick_it_was",
        ),
    ),
    Mutant(
        "no last look behind the pre-step",
        "R8",
        "trioloop/agent/step.py",
        "    await _look()\n    if isinstance(decision, Reject)",
        "    if isinstance(decision, Reject)",
        (
            "tests/agent/test_failing_preparation.py::test_nobody_is_asked_behind_a_cancel_however_quick_it_was",
        ),
    ),
    Mutant(
        "no last look behind a failed attempt",
        "R8",
        "trioloop/agent/step.py",
        '        await _look()\n        signal.place = "agent.request_error"',
        '        signal.place = "agent.request_error"',
        (
            "tests/agent/test_last_look.py::test_nobody_is_asked_about_an_attempt_that_failed_into_a_cancel",
        ),
    ),
    Mutant(
        "no last look behind the request's listeners",
        "R8",
        "trioloop/agent/step.py",
        "    await _look()\n    config = answered.answer",
        "    config = answered.answer",
        (
            "tests/agent/test_failing_preparation.py::test_nobody_is_asked_behind_a_cancel_however_quick_it_was",
        ),
    ),
    Mutant(
        "no last look before admission",
        "P7",
        "trioloop/agent/step.py",
        "    await _look()\n    return prepared",
        "    return prepared",
        (
            "tests/agent/test_failing_preparation.py::test_a_cancel_that_comes_too_late_for_the_last_wait_commits_nothing",
        ),
    ),
    Mutant(
        "a step is admitted before its model is prepared",
        "G3",
        "trioloop/agent/step.py",
        "prepared = await _prepare(resources, signal, attempt)\n        request = admit(",
        "if attempt == 1:\n"
        "            from trioloop.events import StepStarted\n"
        "\n"
        "            resources.session.append(StepStarted(proposal.turn, proposal.step))\n"
        "        prepared = await _prepare(resources, signal, attempt)\n"
        "        request = admit(",
        (
            "tests/agent/test_failing_preparation.py::test_what_raises_before_admission_commits_nothing",
        ),
    ),
    Mutant(
        "a failing preparation is tried again",
        "H4",
        "trioloop/agent/step.py",
        "        prepared = await _prepare(resources, signal, attempt)\n",
        "        try:\n"
        "            prepared = await _prepare(resources, signal, attempt)\n"
        "        except Exception:\n"
        "            prepared = await _prepare(resources, signal, attempt)\n",
        (
            "tests/agent/test_failing_preparation.py::test_what_is_raised_instead_of_the_cancel_is_told_beside_it",
        ),
    ),
    Mutant(
        "a request does not wait for the gate",
        "D2",
        "trioloop/agent/step.py",
        "await resources.session.gate()",
        "await trio.lowlevel.checkpoint()",
        ("tests/agent/test_store_failures.py::test_a_failure_at_the_gate_sends_no_request",),
    ),
    Mutant(
        "an overflow is retried with the same history",
        "R6",
        "trioloop/agent/step.py",
        "or _stuck_overflow(resources, failure, generation)",
        "",
        (
            "tests/agent/test_overflow.py::test_an_overflow_is_not_retried_while_the_history_is_the_same",
        ),
    ),
    Mutant(
        "an overflow is never retried",
        "R6",
        "trioloop/agent/step.py",
        "surface.generation == generation",
        "surface.generation >= generation",
        (
            "tests/agent/test_overflow.py::test_an_overflow_is_retried_once_the_history_was_replaced",
        ),
    ),
    Mutant(
        "the loop retries by itself",
        "R3",
        "trioloop/agent/step.py",
        "    async def nobody() -> Retry | None:\n        return None",
        "    async def nobody() -> Retry | None:\n        return Retry(0)",
        (
            "tests/agent/test_paths_of_streams.py::test_a_failed_attempt_is_recorded_with_its_partial_stream_and_ends_the_turn",
        ),
    ),
    Mutant(
        "a retry does not wait",
        "P11",
        "trioloop/agent/step.py",
        "await trio.sleep(retry.delay)",
        "await trio.sleep(0)",
        ("tests/agent/test_retries.py::test_a_retry_is_a_new_attempt_in_the_open_step",),
    ),
    Mutant(
        "a failure that nobody retries is an answer",
        "P13",
        "trioloop/agent/step.py",
        "raise AttemptsExhausted(failure)",
        "return None",
        (
            "tests/agent/test_paths_of_streams.py::test_a_failed_attempt_is_recorded_with_its_partial_stream_and_ends_the_turn",
        ),
    ),
    Mutant(
        "every attempt says that it is the first",
        "R1",
        "trioloop/agent/step.py",
        "        attempt += 1\n",
        "",
        ("tests/agent/test_retries.py::test_a_retry_asks_only_the_request_again",),
    ),
    Mutant(
        "earlier failures are not handed on",
        "R1",
        "trioloop/agent/step.py",
        "tuple(turn.failures[:-1])",
        "()",
        (
            "tests/agent/test_retries.py::test_the_hook_gets_the_failures_so_far_and_success_clears_them",
        ),
    ),
    Mutant(
        "the failure itself is among the earlier ones",
        "R1",
        "trioloop/agent/step.py",
        "tuple(turn.failures[:-1])",
        "turn.failures",
        (
            "tests/agent/test_retries.py::test_the_hook_gets_the_failures_so_far_and_success_clears_them",
        ),
    ),
    Mutant(
        "a retry in a turn of its own stays in the step",
        "R2",
        "trioloop/agent/step.py",
        "if retry.fresh_turn:",
        "if False:",
        ("tests/agent/test_retry_turns.py::test_a_fresh_turn_repeats_the_turn_in_one_append",),
    ),
    Mutant(
        "calls of a cut answer run",
        "P14",
        "trioloop/agent/step.py",
        'answer.finish.reason == "length"',
        "False",
        ("tests/agent/test_paths_of_answers.py::test_no_call_of_a_cut_answer_runs",),
    ),
    Mutant(
        "an entered retry turn needs input",
        "R2",
        "trioloop/agent/step.py",
        "if not messages and turn.owed is None:",
        "if not messages:",
        ("tests/agent/test_retry_turns.py::test_a_fresh_turn_repeats_the_turn_in_one_append",),
    ),
    Mutant(
        "a step without input is entered",
        "P5",
        "trioloop/agent/step.py",
        "if not messages and turn.owed is None:",
        "if False:",
        (
            "tests/agent/test_paths_before_admission.py::test_entering_with_nothing_first_completes_the_turn_without_a_request",
        ),
    ),
    Mutant(
        "a rejected step completes the turn",
        "P3",
        "trioloop/agent/step.py",
        'return Ending(reason="blocked", code=decision.code, message=decision.reason, by=by)',
        'return Ending(reason="completed")',
        (
            "tests/agent/test_paths_before_admission.py::test_a_rejected_step_spends_no_number_and_admits_nothing",
        ),
    ),
    Mutant(
        "who rejected is not told",
        "P3",
        "trioloop/agent/step.py",
        "message=decision.reason, by=by",
        "message=decision.reason",
        (
            "tests/agent/test_paths_before_admission.py::test_a_rejected_step_spends_no_number_and_admits_nothing",
        ),
    ),
    Mutant(
        "a pre-step may enter a message twice",
        "S3",
        "trioloop/agent/step.py",
        "        seen.add(message.id)\n",
        "",
        (
            "tests/agent/test_paths_before_admission.py::test_a_wrong_decision_ends_the_turn_and_names_the_listener",
        ),
    ),
    Mutant(
        "a pre-step may enter a message that is known",
        "S3",
        "trioloop/agent/step.py",
        "if message.id and (known or message.id in seen):",
        "if message.id and message.id in seen:",
        (
            "tests/agent/test_paths_before_admission.py::test_a_wrong_decision_ends_the_turn_and_names_the_listener",
        ),
    ),
    Mutant(
        "a config need not come from next",
        "H1",
        "trioloop/agent/step.py",
        "if not passed or not isinstance(config, CallConfig):",
        "if not isinstance(config, CallConfig):",
        ("tests/agent/test_requests.py::test_a_request_listener_must_pass_on_a_config",),
    ),
    Mutant(
        "contexts wake the agent",
        "T7",
        "trioloop/agent/step.py",
        "PendingMessage(message, wakeup=False)",
        "PendingMessage(message, wakeup=True)",
        ("tests/agent/test_added_contexts.py::test_the_contexts_of_a_cancelled_batch_are_parked",),
    ),
    Mutant(
        "contexts wait in next-turn",
        "T7",
        "trioloop/agent/step.py",
        'insert(session.state.inbox, "next-step", pending)',
        'insert(session.state.inbox, "next-turn", pending)',
        ("tests/agent/test_added_contexts.py::test_contexts_join_the_next_step_in_model_order",),
    ),
    Mutant(
        "a failure of the store in a call is the scheduler's",
        "D3",
        "trioloop/agent/step.py",
        "    except StoreError:\n        raise\n    except Exception as error:  # bodies",
        "    except Exception as error:  # bodies",
        (
            "tests/agent/test_store_failures.py::test_a_failure_that_a_body_meets_itself_is_no_fault_of_the_scheduler",
        ),
    ),
)
