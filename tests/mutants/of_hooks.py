"""Faults in how listeners are asked."""

from tests.mutants.mutant import Mutant

HOOKS = (
    Mutant(
        "next may be awaited twice",
        "H1",
        "trioloop/hooks/dispatch.py",
        "        self._asked = True\n",
        "        self._asked = False\n",
        ("tests/hooks/test_waterfall.py::test_a_second_next_raises_and_asks_nobody_again",),
    ),
    Mutant(
        "an agent's listeners wrap the runtime's",
        "H1",
        "trioloop/hooks/dispatch.py",
        "        listeners += hook.listeners\n",
        "        listeners = hook.listeners + listeners\n",
        ("tests/hooks/test_waterfall.py::test_a_wider_scope_wraps_a_narrower_one",),
    ),
    Mutant(
        "the listener that came last is outermost",
        "H1",
        "trioloop/hooks/dispatch.py",
        "self._listeners = (*self._listeners, listener)",
        "self._listeners = (listener, *self._listeners)",
        (
            "tests/hooks/test_waterfall.py::test_listeners_wrap_in_order_of_registration_outermost_first",
        ),
    ),
    Mutant(
        "a serial dispatch uses the listeners of its end",
        "H2",
        "trioloop/hooks/dispatch.py",
        "for listener in _listeners(hooks):",
        "for listener in (one for hook in hooks for one in hook.listeners):",
        (
            "tests/hooks/test_waterfall.py::test_a_serial_dispatch_uses_the_listeners_of_its_beginning",
        ),
    ),
    Mutant(
        "a closed registration is still asked",
        "H2",
        "trioloop/hooks/dispatch.py",
        "        if remove is not None:\n            remove()\n",
        "        pass\n",
        ("tests/hooks/test_waterfall.py::test_a_closed_registration_is_not_asked",),
    ),
    Mutant(
        "leaving a registration's block keeps it",
        "H2",
        "trioloop/hooks/dispatch.py",
        "    ) -> None:\n        self.close()\n",
        "    ) -> None:\n        pass\n",
        ("tests/hooks/test_waterfall.py::test_a_closed_registration_is_not_asked",),
    ),
    Mutant(
        "one of two registrations takes both away",
        "H2",
        "trioloop/hooks/dispatch.py",
        "for kept in self._listeners if kept is not listener)",
        "for kept in self._listeners if kept.function is not listener.function)",
        ("tests/hooks/test_waterfall.py::test_one_function_registered_twice_is_removed_once",),
    ),
    Mutant(
        "an answer that was passed on is the outer listener's",
        "H3",
        "trioloop/hooks/dispatch.py",
        "if answer is not self._answer:",
        "if True:",
        (
            "tests/hooks/test_misused_hooks.py::test_a_wrong_answer_ends_the_turn_and_names_its_listener",
        ),
    ),
    Mutant(
        "an outer listener is blamed for what an inner one raised",
        "H3",
        "trioloop/hooks/dispatch.py",
        "    if raised_by(error) is None:\n",
        "    if True:\n",
        ("tests/hooks/test_waterfall.py::test_what_a_listener_raises_comes_out_and_names_it",),
    ),
    Mutant(
        "time inside next counts",
        "H3",
        "trioloop/hooks/dispatch.py",
        '            scope.deadline = float("inf")\n',
        "",
        ("tests/hooks/test_waterfall.py::test_time_inside_next_does_not_count",),
    ),
    Mutant(
        "time behind next does not count",
        "H3",
        "trioloop/hooks/dispatch.py",
        "                scope.deadline = trio.current_time() + left\n",
        "                pass\n",
        ("tests/hooks/test_waterfall.py::test_time_before_and_after_next_counts_together",),
    ),
    Mutant(
        "the clock begins anew behind next",
        "H3",
        "trioloop/hooks/dispatch.py",
        "scope.deadline = trio.current_time() + left",
        "scope.deadline = trio.current_time() + timeout_s",
        ("tests/hooks/test_waterfall.py::test_time_before_and_after_next_counts_together",),
    ),
    Mutant(
        "a listener has no time of its own",
        "H3",
        "trioloop/hooks/dispatch.py",
        "            if listener.timeout_s is None:\n                answer",
        "            if True:\n                answer",
        ("tests/hooks/test_waterfall.py::test_a_listener_over_its_time_is_cancelled_and_named",),
    ),
    Mutant(
        "a serial listener that raises lets the rest go on",
        "H3",
        "trioloop/hooks/dispatch.py",
        "            await _call(listener, hooks[0].name, payload)\n"
        "        except BaseException as error:  # to name who raised it; it always goes on\n"
        "            _blame(error, listener.name)\n"
        "            raise\n",
        "            await _call(listener, hooks[0].name, payload)\n"
        "        except BaseException as error:\n"
        "            _blame(error, listener.name)\n",
        (
            "tests/hooks/test_waterfall.py::test_a_serial_listener_that_raises_stops_the_rest_and_is_named",
        ),
    ),
    Mutant(
        "an answer of a listener is the inner one's",
        "H3",
        "trioloop/hooks/dispatch.py",
        "if answer is not self._answer:",
        "if self._answer is _NOTHING_YET:",
        (
            "tests/hooks/test_waterfall.py::test_an_answer_is_told_as_that_of_whoever_changed_it_last",
        ),
    ),
)
