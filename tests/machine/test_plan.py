"""What may start and what may be recorded, over every order of events (T2 to T4)."""

from hypothesis import given
from hypothesis import strategies as st

from trioloop.machine.plan import Mode, Plan

MODES = st.lists(st.sampled_from(["concurrent", "barrier", None]), max_size=12)


@given(MODES, st.integers(1, 4), st.data())
def test_no_order_of_events_breaks_a_rule_or_gets_stuck(
    modes: list[Mode | None], limit: int, data: st.DataObject
) -> None:
    plan = Plan(len(modes), limit)
    starting: int | None = None
    running: set[int] = set()
    started: list[int] = []
    recorded: list[int] = []
    while len(recorded) < len(modes):
        can = []
        if plan.may_start and plan.fits(modes[plan.head]):
            can.append("start")
        if starting is not None:
            can += ["run", "refuse"] if modes[starting] is not None else ["refuse"]
        if running:
            can.append("end")
        if plan.may_record:
            can.append("record")
        assert can, "the batch is stuck"
        what = data.draw(st.sampled_from(can))
        if what == "start":
            starting = plan.start(modes[plan.head])
            started.append(starting)
            unrecorded = set(started[:-1]) - set(recorded)
            if modes[starting] == "barrier":
                assert not unrecorded
            assert all(modes[index] != "barrier" for index in unrecorded)
        elif what == "run":
            assert starting is not None
            plan.run(modes[starting])
            running.add(starting)
            starting = None
            assert len(running) == plan.running <= limit
        elif what == "refuse":
            assert starting is not None
            plan.end(starting)
            starting = None
        elif what == "end":
            index = data.draw(st.sampled_from(sorted(running)))
            running.discard(index)
            plan.end(index)
        else:
            recorded.append(plan.record())
    assert started == recorded == list(range(len(modes)))


def test_a_call_that_became_a_barrier_runs_only_when_all_before_it_are_recorded() -> None:
    plan = Plan(2, 2)
    plan.start("concurrent")
    plan.run("concurrent")
    plan.start("concurrent")
    assert not plan.fits("barrier")
    plan.end(0)
    assert not plan.fits("barrier")
    plan.record()
    assert plan.fits("barrier")
    plan.run("barrier")


def test_skipped_calls_are_recorded_behind_those_that_ran() -> None:
    plan = Plan(3, 1)
    plan.start("concurrent")
    plan.run("concurrent")
    assert [plan.skip(), plan.skip()] == [1, 2]
    assert not plan.may_start
    assert not plan.may_record
    plan.end(0)
    assert [plan.record() for _ in range(3)] == [0, 1, 2]
    assert not plan.may_record


def test_nothing_starts_beside_a_call_that_became_a_barrier() -> None:
    plan = Plan(2, 2)
    plan.start("concurrent")
    plan.run("barrier")
    assert not plan.may_start


def test_others_start_beside_a_call_that_is_no_barrier_any_more() -> None:
    plan = Plan(2, 2)
    plan.start("barrier")
    plan.run("concurrent")
    assert plan.may_start
