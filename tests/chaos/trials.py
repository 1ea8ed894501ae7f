"""The faults, one kind after the other: a trial strikes once, in one place, and is judged.

A trial is its kind and its place, so that one command plays it again. The places of most kinds are
counted, in a run where nothing goes wrong, so that all of them can be tried.
"""

import itertools
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import attrs

from tests.chaos import disks, tracing
from tests.chaos.damage import DAMAGES, Recorded, cut_session, recorded
from tests.chaos.judging import NOT_JUDGED, faults_as_it_goes_on, faults_as_it_lies, last_durable
from tests.chaos.running import Place, Told, run, run_killed_at_random, start

_IN_THE_BODY = "effect ledger/call_1_1_1 done"


@attrs.frozen
class Outcome:
    """What a trial came to.

    Attributes:
        appended: the last event in the memory of the process.
        durable: the last event that was left of it.
        faults: what is wrong; none: all that is promised was kept.
    """

    appended: str
    durable: str
    faults: Sequence[str] = ()


@attrs.frozen
class Kind:
    """A kind of faults.

    Attributes:
        strike: strike in a place: given an empty folder and the place's name.
        places: all places where it may strike, in order.
        why_not: why it can't be tried here; None: it can.
    """

    strike: Callable[[Path, str], Outcome]
    places: Callable[[], Iterable[str]]
    why_not: Callable[[], str | None] = lambda: None


@attrs.frozen
class Trial:
    """One fault in one place."""

    kind: str
    at: str

    @property
    def replay(self) -> str:
        """The command that plays it again."""
        return f"python -m tests.chaos --kind {self.kind} --at {shlex.quote(self.at)}"

    def strike(self) -> Outcome:
        """Strike, and judge what is left."""
        folder = Path(tempfile.mkdtemp(prefix="chaos-"))
        try:
            return KINDS[self.kind].strike(folder, self.at)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _judged(place: Place, told: Sequence[Told]) -> Outcome:
    faults = faults_as_it_lies(place, told)
    if faults:
        return Outcome(told[-1].last_appended, NOT_JUDGED, faults)
    durable = last_durable(place)
    return Outcome(told[-1].last_appended, durable, faults_as_it_goes_on(place))


# A process that dies


def _killed_at_random(folder: Path, seed: str) -> Outcome:
    place = Place(folder)
    return _judged(place, [run_killed_at_random(place, int(seed))])


def _killed_at_fact(folder: Path, fact: str) -> Outcome:
    place = Place(folder)
    return _judged(place, [run(place, at=fact)])


def _killed_and_run_again(folder: Path, fact: str) -> Outcome:
    """Taken up with `rerun`: what only reads runs again, what writes never does."""
    place = Place(folder)
    told = run(place, at=fact)
    durable = last_durable(place)
    return Outcome(told.last_appended, durable, faults_as_it_goes_on(place, rerun=True))


def commits() -> Iterable[str]:
    """The commits that are asked for behind each event of a run."""
    return [
        fact.replace("appended", "committed") for fact in facts() if fact.startswith("appended")
    ]


@cache
def facts() -> tuple[str, ...]:
    """What a run tells of itself when nothing goes wrong: events without what differs each time."""
    lines = _told_of_whole_run().lines
    return tuple(" ".join(line.split(" ")[:2]) if line.startswith("d") else line for line in lines)


@cache
def _told_of_whole_run() -> Told:
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        return run(Place(Path(folder)))


# A system call that goes wrong


def _failing_call(fault: str) -> Callable[[Path, str], Outcome]:
    def strike(folder: Path, call: str) -> Outcome:
        place = Place(folder)
        return _judged_if_struck(place, [_run_failing(place, fault, call)])

    return strike


def _failing_call_in_repair(fault: str) -> Callable[[Path, str], Outcome]:
    """The same in a run that takes up what another one left in the middle of a call."""

    def strike(folder: Path, call: str) -> Outcome:
        place = Place(folder)
        told = [run(place, at=_IN_THE_BODY), _run_failing(place, fault, call)]
        return _judged_if_struck(place, told)

    return strike


def _run_failing(place: Place, fault: str, call: str) -> Told:
    name, _, number = call.partition(":")
    before = tracing.faulty(place.files, _calls_log(place), fault, name, int(number))
    return run(place, before=before, extra={"CHAOS_ONE_THREAD": "1"})


def _judged_if_struck(place: Place, told: Sequence[Told]) -> Outcome:
    outcome = _judged(place, told)
    if tracing.has_struck(_calls_log(place)):
        return outcome
    return attrs.evolve(outcome, faults=[*outcome.faults, "the call was never made"])


def _calls_log(place: Place) -> Path:
    return place.folder / "calls.log"


@cache
def calls(at: str = "") -> tuple[str, ...]:
    """The system calls of a run when nothing goes wrong.

    Args:
        at: the fact at which an earlier run was killed, whose session this one takes up.
    """
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        place = Place(Path(folder))
        log = _calls_log(place)
        if at:
            run(place, at=at)
        before = tracing.counting(place.files, log)
        run(place, before=before, extra={"CHAOS_ONE_THREAD": "1"})
        return tuple(tracing.counted(log))


def calls_in_repair() -> tuple[str, ...]:
    """Those of a run that takes up what another one left in the middle of a call."""
    return calls(_IN_THE_BODY)


# Disks


def _mounted(kind: str) -> Callable[[Path, str], Outcome]:
    def strike(folder: Path, at: str) -> Outcome:
        found = disks.in_a_namespace(kind, at, folder)
        return Outcome(found.appended, found.durable, found.faults)

    return strike


def _control(folder: Path, at: str) -> Outcome:
    """Without syncs something must be lost, else the trials that cut the power show nothing."""
    found = disks.in_a_namespace("power-loss-unsynced", at, folder)
    faults = [] if found.lost else ["nothing was synced, and nothing was lost"]
    return Outcome(found.appended, found.durable, faults)


def _acknowledgements() -> list[str]:
    return [fact for fact in facts() if fact.startswith("durable")]


# Damage


def _damaged(name: str) -> Callable[[Path, str], Outcome]:
    def strike(folder: Path, at: str) -> Outcome:
        fault = DAMAGES[name].strike(int(at))
        last = _last(DAMAGES[name].store())
        return Outcome(last, last, [] if fault is None else [fault])

    return strike


def _last(store: Recorded) -> str:
    return f"{store.events[-1].seq} {store.events[-1].type}"


def _cut_session(folder: Path, at: str) -> Outcome:
    place = Place(folder)
    cut_session(place, int(at))
    durable = last_durable(place)
    return Outcome(durable, durable, faults_as_it_goes_on(place))


# Two writers


def _two_writers(folder: Path, fact: str) -> Outcome:
    """One process stands still at a fact; another one is refused, and nothing of its is written."""
    place = Place(folder)
    first = start(place, at=fact, extra={"CHAOS_SIGNAL": "SIGSTOP"})
    first.wait_for(fact)
    second = run(place)
    first.kill()
    told = first.end()
    faults = []
    if second.code == 0 or f"process {first.process.pid} " not in second.errors:
        faults.append(f"the second writer wasn't refused by name: {second.errors!r}")
    if second.appended:
        faults.append(f"the second writer appended {second.appended}")
    outcome = _judged(place, [told])
    return attrs.evolve(outcome, faults=[*faults, *outcome.faults])


def _whole_numbers() -> Iterable[str]:
    return map(str, itertools.count())


def _untraceable() -> str | None:
    return None if tracing.may_trace() else tracing.WHY_NOT


def _unmountable() -> str | None:
    return None if disks.may_mount() else disks.WHY_NO_TMPFS


def _unpowered() -> str | None:
    return None if disks.may_lose_power() else disks.WHY_NO_LOOP


FAULTS = {"kill": "signal=KILL", "eio": "error=EIO", "enospc": "error=ENOSPC"}

KINDS: dict[str, Kind] = {
    "kill-at-random": Kind(_killed_at_random, _whole_numbers),
    "kill-at-fact": Kind(_killed_at_fact, facts),
    "kill-at-commit": Kind(_killed_at_fact, commits),
    "kill-and-rerun": Kind(_killed_and_run_again, commits),
    **{
        f"{name}-at-call": Kind(_failing_call(fault), calls, _untraceable)
        for name, fault in FAULTS.items()
    },
    **{
        f"{name}-in-repair": Kind(_failing_call_in_repair(fault), calls_in_repair, _untraceable)
        for name, fault in FAULTS.items()
    },
    "full-disk": Kind(_mounted("full-disk"), lambda: map(str, disks.SIZES_KIB), _unmountable),
    "power-loss": Kind(_mounted("power-loss"), _acknowledgements, _unpowered),
    "power-loss-unsynced": Kind(_control, _acknowledgements, _unpowered),
    "two-writers": Kind(_two_writers, lambda: facts()[:-1]),
    "cut-session": Kind(_cut_session, lambda: map(str, range(1, len(recorded().rows) + 1))),
    **{
        name: Kind(_damaged(name), lambda damage=damage: map(str, damage.everywhere()))  # type: ignore[misc]
        for name, damage in DAMAGES.items()
    },
}
"""Each kind by its name."""
