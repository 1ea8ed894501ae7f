"""Faults in the live log, and in the system prompt that it gets."""

from tests.mutants.mutant import Mutant

SESSIONS = (
    Mutant(
        "observers are told inside the block",
        "H5",
        "trioloop/session.py",
        "        self._apply(events)\n        self._events.extend(events)\n",
        "        self._tell(events)\n"
        "        self._apply(events)\n"
        "        self._events.extend(events)\n",
        ("tests/test_session_appending.py::test_a_refused_fact_takes_the_whole_append_with_it",),
    ),
    Mutant(
        "what an observer appends is told before what it saw",
        "H5",
        "trioloop/session.py",
        "            delivery.waiting.extend(events)\n",
        "            delivery.waiting.extendleft(reversed(events))\n",
        (
            "tests/test_session_appending.py::test_an_observer_that_appends_is_told_of_its_own_event_in_order",
        ),
    ),
    Mutant(
        "observers are told what one appends at once",
        "H5",
        "trioloop/session.py",
        "            delivery.waiting.extend(events)\n            return\n",
        "            for event in events:\n"
        "                self._tell_one(event)\n"
        "            return\n",
        (
            "tests/test_session_appending.py::test_an_observer_that_appends_is_told_of_its_own_event_in_order",
        ),
    ),
    Mutant(
        "an observer that raises breaks the append",
        "H5",
        "trioloop/session.py",
        "except (Exception, trio.Cancelled):",
        "except trio.Cancelled:",
        (
            "tests/test_session_appending.py::test_an_observer_that_raises_leaves_the_others_their_turn",
        ),
    ),
    Mutant(
        "a refused append leaves its first facts in the state",
        "G1",
        "trioloop/session.py",
        "            self.state = fold(self._events)\n            raise\n",
        "            raise\n",
        ("tests/test_session_appending.py::test_a_refused_fact_takes_the_whole_append_with_it",),
    ),
    Mutant(
        "an append keeps what a caller may change",
        "G12",
        "trioloop/session.py",
        "            events.append(event)\n",
        "            events.append(Event(seq, time, fact))\n",
        (
            "tests/test_session_appending.py::test_what_a_caller_changes_afterwards_is_not_in_the_log",
        ),
    ),
    Mutant(
        "time goes back with the clock",
        "G1",
        "trioloop/session.py",
        "time = max(self._clock(), self.state.time)",
        "time = self._clock()",
        ("tests/test_session_appending.py::test_time_never_goes_back_though_the_clock_does",),
    ),
    Mutant(
        "appended events do not reach the store",
        "D1",
        "trioloop/session.py",
        "            self._journal.append(payloads)\n        if self._warn_at",
        "            pass\n        if self._warn_at",
        (
            "tests/test_session_reading.py::test_a_subscriber_gets_the_whole_log_and_ends_with_the_agent",
        ),
    ),
    Mutant(
        "readers are not woken by an append",
        "D1",
        "trioloop/session.py",
        "        self.wake_readers()\n        self._tell(events)\n",
        "        self._tell(events)\n",
        (
            "tests/test_session_reading.py::test_a_hundred_subscribers_that_never_read_change_nothing",
        ),
    ),
    Mutant(
        "a reader of durable events gets appended ones",
        "D1",
        "trioloop/session.py",
        "return self._session.durable_seq if self._durable else self._session.seq",
        "return self._session.seq",
        (
            "tests/test_session_reading.py::test_a_subscriber_gets_the_whole_log_and_ends_with_the_agent",
        ),
    ),
    Mutant(
        "a cursor in the future is taken",
        "G12",
        "trioloop/session.py",
        "if not -1 <= after <= self.seq:",
        "if not -1 <= after:",
        ("tests/test_session_reading.py::test_a_cursor_outside_the_log_is_refused",),
    ),
    Mutant(
        "a session is read on behind its end",
        "G6",
        "trioloop/session.py",
        "            self.closed = True\n            self.wake_readers()\n",
        "            self.closed = True\n",
        (
            "tests/test_session_reading.py::test_a_subscriber_gets_the_whole_log_and_ends_with_the_agent",
        ),
    ),
    Mutant(
        "a checkpoint does not wait",
        "D2",
        "trioloop/session.py",
        "            await self._journal.checkpoint()\n        await",
        "            pass\n        await",
        ("tests/test_session_reading.py::test_a_checkpoint_waits_until_all_is_durable",),
    ),
    Mutant(
        "a session that was given back is written",
        "P20",
        "trioloop/session.py",
        "        self._released = True\n",
        "",
        ("tests/agent/test_disposal.py::test_the_log_of_a_disposed_agent_takes_nothing_more",),
    ),
    Mutant(
        "a held history may be rewritten",
        "G2",
        "trioloop/session.py",
        "        self._holds_history = True\n",
        "        self._holds_history = False\n",
        ("tests/agent/test_history_is_held.py::test_a_rewrite_under_a_running_retry_is_refused",),
    ),
    Mutant(
        "a history stays held behind its attempt",
        "G2",
        "trioloop/session.py",
        "                self._holds_history = False\n",
        "                pass\n",
        ("tests/agent/test_history_is_held.py::test_a_rewrite_under_a_running_retry_is_refused",),
    ),
    Mutant(
        "a store that works again stays failed for its session",
        "D3",
        "trioloop/session.py",
        "            await self._journal.retry()\n        self.failure = None\n",
        "            await self._journal.retry()\n",
        ("tests/agent/test_store_failures.py::test_an_agent_goes_on_once_the_store_does",),
    ),
    Mutant(
        "an agent is not told that its store failed",
        "P19",
        "trioloop/session.py",
        "            self.on_failure(error)\n",
        "            pass\n",
        (
            "tests/agent/test_store_failures.py::test_a_failure_while_it_streams_ends_the_turn_and_starts_nothing",
        ),
    ),
    Mutant(
        "sections stand in order of registration",
        "E1",
        "trioloop/prompt.py",
        "key=lambda section: (section.order, section.name)",
        "key=lambda section: section.order",
        ("tests/test_prompt_sections.py::test_sections_stand_by_order_then_by_name",),
    ),
    Mutant(
        "a runtime's section shadows an agent's",
        "E1",
        "trioloop/prompt.py",
        "for prompt in prompts for section",
        "for prompt in reversed(prompts) for section",
        ("tests/test_prompt_sections.py::test_a_later_scope_shadows_by_name",),
    ),
    Mutant(
        "a removed section is not told of",
        "E1",
        "trioloop/prompt.py",
        "return (*removed, *changed)",
        "return tuple(changed)",
        ("tests/test_prompt_sections.py::test_a_section_that_is_gone_is_told_as_removed",),
    ),
    Mutant(
        "every section is told anew",
        "E1",
        "trioloop/prompt.py",
        "        if not there.get(section.name) == section.text == seen.get(section.name)\n",
        "",
        ("tests/test_prompt_sections.py::test_an_unchanged_section_is_not_told_again",),
    ),
    Mutant(
        "a head that an update had contradicted is not told anew",
        "E1",
        "trioloop/prompt.py",
        "== section.text == seen.get(section.name)",
        "== section.text",
        (
            "tests/test_prompt_sections.py::test_a_series_tells_anew_a_section_that_reads_again_as_in_the_head",
        ),
    ),
    Mutant(
        "a change goes into the history where the model replaces",
        "E1",
        "trioloop/prompt.py",
        '(update == "replace" and wanted != seen)',
        "False",
        (
            "tests/test_prompt_sections.py::test_a_changed_section_alone_is_told_where_the_model_takes_it",
        ),
    ),
    Mutant(
        "an update goes into the history where a series starts",
        "E1",
        "trioloop/prompt.py",
        "into_head = starts_series or not surface.heads",
        "into_head = not surface.heads",
        (
            "tests/test_prompt_sections.py::test_a_series_brings_the_head_up_to_what_was_told_in_the_history",
        ),
    ),
    Mutant(
        "the first prompt goes into the history",
        "E1",
        "trioloop/prompt.py",
        "starts_series or not surface.heads or",
        "starts_series or",
        (
            "tests/test_prompt_sections.py::test_the_first_prompt_stands_in_the_head_whatever_the_model_takes",
        ),
    ),
    Mutant(
        "an append is two transactions",
        "P1",
        "trioloop/session.py",
        "            self._journal.append(payloads)\n        if self._warn_at",
        "            for payload in payloads:\n"
        "                self._journal.append([payload])\n"
        "        if self._warn_at",
        (
            "tests/test_session_appending.py::test_an_append_is_one_transaction_however_small_those_are",
        ),
    ),
)
