"""Faults in what a model is asked, and in how its answer is recorded."""

from tests.mutants.mutant import Mutant

REQUESTS = (
    Mutant(
        "a retry starts the series again",
        "E2",
        "trioloop/agent/admission.py",
        "if not opens_step and proposal.starts_series:",
        "if False:",
        (
            "tests/agent/test_retries.py::test_a_retry_of_a_step_that_started_a_series_starts_no_second_one",
        ),
    ),
    Mutant(
        "a retry admits the messages again",
        "P11",
        "trioloop/agent/admission.py",
        "    if opens_step:\n        facts.extend(UserMessageLogged",
        "    if True:\n        facts.extend(UserMessageLogged",
        ("tests/agent/test_retries.py::test_a_retry_is_a_new_attempt_in_the_open_step",),
    ),
    Mutant(
        "an admission is two blocks",
        "P1",
        "trioloop/agent/admission.py",
        "    session.append(*facts)\n",
        "    session.append(*facts[:1])\n    session.append(*facts[1:])\n",
        ("tests/agent/test_blocks_are_whole.py::test_a_step_is_admitted_whole",),
    ),
    Mutant(
        "messages are admitted in reverse",
        "G5",
        "trioloop/agent/admission.py",
        "UserMessageLogged(message) for message in proposal.messages",
        "UserMessageLogged(message) for message in proposal.messages[::-1]",
        (
            "tests/agent/test_sending.py::test_an_injected_context_travels_in_the_first_step_of_the_next_prompt",
        ),
    ),
    Mutant(
        "the history may be rewritten under a retry",
        "G2",
        "trioloop/agent/admission.py",
        "    session.hold_history()\n",
        "",
        ("tests/agent/test_history_is_held.py::test_a_rewrite_under_a_running_retry_is_refused",),
    ),
    Mutant(
        "a changed head starts no series",
        "E1",
        "trioloop/agent/admission.py",
        'proposal.starts_series or any(node.placement == "head" for node in system)',
        "proposal.starts_series",
        (
            "tests/agent/test_requests.py::test_a_changed_section_replaces_its_head_and_starts_a_series",
        ),
    ),
    Mutant(
        "a series that was asked for logs no header",
        "E2",
        "trioloop/agent/admission.py",
        'proposal.starts_series or any(node.placement == "head" for node in system)',
        'any(node.placement == "head" for node in system)',
        (
            "tests/agent/test_requests.py::test_a_wrapping_listener_keeps_a_series_that_is_asked_for_below_it",
        ),
    ),
    Mutant(
        "a resumed session logs no header",
        "E2",
        "trioloop/agent/admission.py",
        '    if not resources.session.has_own_header:\n        return "resume"\n',
        "",
        (
            "tests/agent/test_requests.py::test_a_header_is_logged_first_and_then_only_with_a_reason",
        ),
    ),
    Mutant(
        "a change of settings logs no header",
        "E2",
        "trioloop/agent/admission.py",
        "header.config != prepared.config or",
        "False or",
        ("tests/agent/test_requests.py::test_a_listener_of_the_request_may_choose_another_model",),
    ),
    Mutant(
        "a change of tools logs no header",
        "E2",
        "trioloop/agent/admission.py",
        " or header.tools != proposal.tools",
        "",
        ("tests/agent/test_requests.py::test_a_change_of_tools_logs_a_header",),
    ),
    Mutant(
        "each request logs a header",
        "E2",
        "trioloop/agent/admission.py",
        'return "change"\n    return None',
        'return "change"\n    return "resume"',
        (
            "tests/agent/test_requests.py::test_a_header_is_logged_first_and_then_only_with_a_reason",
        ),
    ),
    Mutant(
        "the context is logged with each request",
        "P2",
        "trioloop/agent/admission.py",
        "() if resources.session.state.context == context else (context,)",
        "(context,)",
        ("tests/agent/test_requests.py::test_the_context_is_logged_once_while_it_is_the_same",),
    ),
    Mutant(
        "the context is logged once for ever",
        "P1",
        "trioloop/agent/admission.py",
        "resources.session.state.context == context else",
        "resources.session.state.context is not None else",
        ("tests/agent/test_requests.py::test_a_listener_of_the_request_may_choose_another_model",),
    ),
    Mutant(
        "what a listener of the stream raises is a failed attempt",
        "H3",
        "trioloop/agent/attempt.py",
        "if not attempt.sent or signal.cancelled:",
        "if signal.cancelled:",
        (
            "tests/agent/test_stream_listeners.py::test_a_listener_that_reads_the_stream_itself_is_told_not_to",
        ),
    ),
    Mutant(
        "an error in place of a cancel is a failed attempt",
        "R8",
        "trioloop/agent/attempt.py",
        "if not attempt.sent or signal.cancelled:",
        "if not attempt.sent:",
        (
            "tests/agent/test_adapters.py::test_an_adapter_that_raises_in_place_of_the_cancel_ends_the_turn_aborted",
        ),
    ),
    Mutant(
        "an error behind the whole answer fails the attempt",
        "P10",
        "trioloop/agent/attempt.py",
        "        if attempt.finish is None:\n            return _settle_failure",
        "        if True:\n            return _settle_failure",
        (
            "tests/agent/test_adapters.py::test_a_whole_answer_stands_though_its_adapter_fails_to_close",
        ),
    ),
    Mutant(
        "a cancel leaves no trace of the attempt",
        "P9",
        "trioloop/agent/attempt.py",
        "    except BaseException:  # cancelled, or worse: what came is recorded, and it goes on\n"
        "        _settle_cancelled(attempt)\n",
        "    except BaseException:\n",
        (
            "tests/agent/test_paths_of_streams.py::test_a_cancel_while_text_streams_keeps_what_was_visible",
        ),
    ),
    Mutant(
        "a cancel behind the finish interrupts the message",
        "P10",
        "trioloop/agent/attempt.py",
        "    if attempt.finish is not None:\n        _settle_message(attempt)\n        return\n",
        "",
        (
            "tests/agent/test_paths_of_streams.py::test_a_cancel_as_the_last_frame_comes_keeps_the_whole_message",
        ),
    ),
    Mutant(
        "nothing of an interrupted answer is kept",
        "P9",
        "trioloop/agent/attempt.py",
        "    if visible is not None:\n",
        "    if False:\n",
        (
            "tests/agent/test_paths_of_streams.py::test_a_cancel_while_text_streams_keeps_what_was_visible",
        ),
    ),
    Mutant(
        "an interrupted message is not marked",
        "P9",
        "trioloop/agent/attempt.py",
        "                interrupted=True,\n",
        "",
        (
            "tests/agent/test_paths_of_streams.py::test_a_cancel_while_text_streams_keeps_what_was_visible",
        ),
    ),
    Mutant(
        "the usage of a failed attempt is lost",
        "E3",
        "trioloop/agent/attempt.py",
        "failure=failure, usage=attempt.usage",
        "failure=failure",
        ("tests/agent/test_paths_of_streams.py::test_a_failing_attempts_usage_counts",),
    ),
    Mutant(
        "the usage of an answer is lost",
        "E3",
        "trioloop/agent/attempt.py",
        "                usage=visible.usage,\n",
        "                usage=None,\n",
        ("tests/agent/test_paths_of_streams.py::test_reasoning_alone_is_kept_with_its_usage",),
    ),
    Mutant(
        "a stream without an end is an answer",
        "P13",
        "trioloop/agent/attempt.py",
        "    if attempt.finish is None:\n        await trio.lowlevel.checkpoint()",
        "    if False:\n        await trio.lowlevel.checkpoint()",
        (
            "tests/agent/test_paths_of_streams.py::test_a_stream_that_ends_without_a_finish_is_truncated",
        ),
    ),
    Mutant(
        "a listener's stream is not closed",
        "G6",
        "trioloop/agent/attempt.py",
        "        if close is not None:\n",
        "        if False:\n",
        (
            "tests/agent/test_stream_listeners.py::test_what_a_listener_makes_of_the_stream_is_what_is_recorded",
        ),
    ),
    Mutant(
        "times of frames are lost",
        "E4",
        "trioloop/agent/attempt.py",
        "round((trio.current_time() - attempt.began) * 1000)",
        "0",
        ("tests/agent/test_stream_listeners.py::test_times_and_chunks_are_kept_exactly",),
    ),
)
