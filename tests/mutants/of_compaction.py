"""Faults in asides, and in the policies that make room in a window."""

from tests.mutants.mutant import Mutant

_ASIDE = "trioloop/agent/aside.py"
_POLICIES = "trioloop/plugins"

COMPACTION = (
    Mutant(
        "an aside is given though its answer's observer cancelled",
        "R8",
        _ASIDE,
        "    await trio.lowlevel.checkpoint_if_cancelled()  # whoever observed the answer",
        "    # whoever observed the answer",
        ("tests/agent/test_asides.py::test_who_observes_an_answer_may_still_cancel_it",),
    ),
    Mutant(
        "an aside is asked before it is durable",
        "D2",
        _ASIDE,
        "        await session.gate()\n",
        "",
        ("tests/agent/test_asides.py::test_nobody_is_asked_before_the_question_is_durable",),
    ),
    Mutant(
        "an aside asks about a history that was rewritten since",
        "G2",
        _ASIDE,
        "    request = aside_of(session.state, aside)  # anew",
        "    # anew",
        (
            "tests/agent/test_asides.py::test_a_history_that_others_rewrite_meanwhile_is_asked_about_as_the_log_tells_it",
        ),
    ),
    Mutant(
        "a tool choice forces the calls of an aside",
        "G2",
        "trioloop/log/rebuild.py",
        "msgspec.structs.replace(whole.config, tool_choice=None)",
        "whole.config",
        ("tests/agent/test_asides.py::test_no_call_of_an_aside_runs_and_none_is_forced",),
    ),
    Mutant(
        "a summary may be larger than what it stands for",
        "R6",
        f"{_POLICIES}/compaction/compacting.py",
        "    if size >= policy.estimator.estimate([one for _, one in part]):",
        "    if size < 0:",
        (
            "tests/plugins/test_compaction.py::test_a_step_goes_on_where_its_history_cannot_be_compacted",
        ),
    ),
    Mutant(
        "overflows are recovered from without end",
        "R6",
        f"{_POLICIES}/compaction/policy.py",
        "if state.overflows >= policy.recoveries_max:",
        "if state.overflows < 0:",
        (
            "tests/plugins/test_compaction_after_overflows.py::test_overflows_are_recovered_from_only_so_often",
        ),
    ),
    Mutant(
        "a summary is made though pruning made room enough",
        "R6",
        f"{_POLICIES}/compaction/policy.py",
        "return not state.made_room or policy.is_pressed(session)",
        "return True",
        (
            "tests/plugins/test_compaction_after_overflows.py::test_results_are_pruned_before_anything_is_summarised",
        ),
    ),
    Mutant(
        "a part is cut between a call and its result",
        "G4",
        f"{_POLICIES}/compaction/choosing.py",
        "if place == len(history) or not isinstance(history[place], messages.ToolResultMessage)",
        "if place",
        (
            "tests/plugins/test_any_history_compacted.py::test_every_cut_that_is_accepted_leaves_calls_with_their_results",
        ),
    ),
    Mutant(
        "results are shortened that the model hasn't seen",
        "R6",
        f"{_POLICIES}/pruning.py",
        "answers[-1] if answers else 0",
        "len(nodes)",
        ("tests/plugins/test_pruning.py::test_what_the_model_has_not_seen_is_left_alone",),
    ),
    Mutant(
        "a count of tokens outlives what it counted",
        "R6",
        "trioloop/log/tokens.py",
        '        if getattr(data, "replaces", None) is not None:\n            return None\n',
        "",
        ("tests/log/test_tokens.py::test_a_count_of_what_was_replaced_since_is_worth_nothing",),
    ),
    Mutant(
        "a summary that its model was stopped in is taken",
        "R6",
        f"{_POLICIES}/compaction/summary.py",
        "return None if not text or left_out or answer.message.calls else text",
        "return text",
        ("tests/plugins/test_compaction.py",),
    ),
    Mutant(
        "what can't be summarised is tried again before each step",
        "R6",
        f"{_POLICIES}/compaction/events.py",
        """            changed = {"gave_up": True}""",
        """            changed = {}""",
        ("tests/plugins/test_compaction.py",),
    ),
)
