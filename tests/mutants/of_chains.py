"""Faults in chains of turns: how they open, repeat each other, and settle."""

from tests.mutants.mutant import Mutant

CHAINS = (
    Mutant(
        "a turn opens though maintenance has taken its message",
        "I7",
        "trioloop/agent/driver.py",
        "            if not desk.wants_turn():\n                return\n",
        "",
        ("tests/agent/test_disposal.py::test_a_message_removed_during_maintenance_opens_no_turn",),
    ),
    Mutant(
        "turns open though the store has failed",
        "D3",
        "trioloop/agent/driver.py",
        "    if session.failure is None:\n        return True\n",
        "    return True\n",
        ("tests/agent/test_store_failures.py::test_an_agent_goes_on_once_the_store_does",),
    ),
    Mutant(
        "a failed store is for ever",
        "D3",
        "trioloop/agent/driver.py",
        "        await session.retry_store()\n        return True\n",
        "        return False\n",
        ("tests/agent/test_store_failures.py::test_an_agent_goes_on_once_the_store_does",),
    ),
    Mutant(
        "one retry turn more than allowed",
        "R2",
        "trioloop/agent/driver.py",
        "if retries == resources.limits.retry_turns_max:",
        "if retries > resources.limits.retry_turns_max:",
        (
            "tests/agent/test_retry_turns.py::test_retry_turns_keep_the_chains_failures_and_are_limited",
        ),
    ),
    Mutant(
        "one retry turn less than allowed",
        "R2",
        "trioloop/agent/driver.py",
        "if retries == resources.limits.retry_turns_max:",
        "if retries + 1 >= resources.limits.retry_turns_max:",
        (
            "tests/agent/test_retry_turns.py::test_retry_turns_keep_the_chains_failures_and_are_limited",
        ),
    ),
    Mutant(
        "a retry turn claims next-turn",
        "R2",
        "trioloop/agent/driver.py",
        "if retry_of is None else _next_step_alone(resources)",
        "",
        (
            "tests/agent/test_retry_turns.py::test_a_retry_turn_claims_next_step_and_leaves_the_queue",
        ),
    ),
    Mutant(
        "a retry turn is no retry of any",
        "R2",
        "trioloop/agent/driver.py",
        "retry_of=signal.turn, closing=closed.closing",
        "retry_of=None, closing=closed.closing",
        ("tests/agent/test_retry_turns.py::test_a_fresh_turn_repeats_the_turn_in_one_append",),
    ),
    Mutant(
        "the turn before a retry turn ends in an append of its own",
        "R2",
        "trioloop/agent/driver.py",
        "    session.append(*closing, TurnStarted(signal.turn, retry_of), *claims)",
        "    session.append(*closing)\n"
        "    session.append(TurnStarted(signal.turn, retry_of), *claims)",
        (
            "tests/agent/test_blocks_are_whole.py::test_a_turn_ends_as_the_one_that_repeats_it_starts",
        ),
    ),
    Mutant(
        "a turn claims in an append of its own",
        "R7",
        "trioloop/agent/driver.py",
        "    session.append(*closing, TurnStarted(signal.turn, retry_of), *claims)",
        "    session.append(*closing, TurnStarted(signal.turn, retry_of))\n"
        "    session.append(*claims)",
        ("tests/agent/test_blocks_are_whole.py::test_a_turn_starts_with_its_first_claim",),
    ),
    Mutant(
        "settled is told before the turn is durable",
        "D2",
        "trioloop/agent/driver.py",
        "            await session.checkpoint()\n        except StoreError",
        "            await trio.lowlevel.checkpoint()\n        except StoreError",
        ("tests/agent/test_ask.py::test_ask_is_answered_only_once_the_turn_is_durable",),
    ),
    Mutant(
        "the checkpoint before settled has no bound",
        "P18",
        "trioloop/agent/driver.py",
        "trio.CancelScope(shield=True, deadline=desk.closing.flushed_by)",
        "trio.CancelScope(shield=True)",
        ("tests/runtime/test_one_time_for_all.py::test_a_hanging_store_holds_up_leaving_once",),
    ),
    Mutant(
        "a turn that is not durable is settled without a word",
        "D3",
        "trioloop/agent/driver.py",
        "            store_error = str(error)\n",
        "            pass\n",
        ("tests/agent/test_store_failures.py::test_a_failure_at_the_gate_sends_no_request",),
    ),
    Mutant(
        "a chain settles with its last turn's usage",
        "S4",
        "trioloop/agent/driver.py",
        "session.events(first_seq - 1)",
        "session.events(session.state.last_turn_seq - 3)",
        ("tests/agent/test_retry_turns.py::test_a_fresh_turn_repeats_the_turn_in_one_append",),
    ),
    Mutant(
        "a chain settles as its last turn alone",
        "S4",
        "trioloop/agent/driver.py",
        "turns=tuple(turns),",
        "turns=tuple(turns[-1:]),",
        ("tests/agent/test_retry_turns.py::test_a_fresh_turn_repeats_the_turn_in_one_append",),
    ),
    Mutant(
        "the usage of failed attempts does not count",
        "S4",
        "trioloop/agent/driver.py",
        "        if data.usage is not None:\n",
        "        if data.usage is not None and isinstance(data, AssistantMessageLogged):\n",
        (
            "tests/agent/test_stream_listeners.py::test_the_usage_of_attempts_that_gave_no_answer_counts",
        ),
    ),
    Mutant(
        "what must go up is kept by the driver",
        "R10",
        "trioloop/agent/driver.py",
        "        if closed.raised is not None:\n            raise closed.raised\n",
        "",
        ("tests/runtime/test_faults.py::test_a_strict_runtime_raises_the_fault",),
    ),
)
