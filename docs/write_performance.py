"""Write the figures into the page on performance: `python -m docs.write_performance`.

The figures are what `python -m bench --plot docs/performance` measured and left there. Each stands
in `docs/performance.md` between two marks; the words around them are written by hand.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("performance.md")
FIGURES = Path(__file__).with_name("performance")
MARKED = re.compile(r"(<!-- figures: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

AIMS = {
    ("pool-overhead", "alone-n1"): 0.4,
    ("pool-overhead", "alone-n10"): 1.1,
    ("pool-overhead", "alone-n100"): 0.7,
    ("pool-overhead", "alone-n1000"): 0.6,
    ("pool-overhead", "step-n100"): 1.6,
    ("pool-overhead", "step-n1000"): 1.3,
    ("pool-makespan", "calls-64"): 1.01,
    ("pool-barriers", "groups-8"): 1.02,
    ("step-growth", "at-2000"): 1.05,
    ("turn-growth", "last-100-of-1000"): 1.05,
    ("agents", "beside-10000"): 1.05,
    ("agents", "busy-1000x5"): 4,
    ("agents", "busy-1000x5-cpu"): 3,
    ("stream", "read-1"): 1.2,
    ("stream", "read-4"): 0.4,
    ("stream", "read-16"): 0.15,
    ("cancel", "tool"): 3,
    ("cancel", "ten-tools"): 3,
    ("cancel", "stream"): 1.5,
}
"""The ratio that each case is meant to stay below."""

BOUNDS = {
    ("agents", "made-10000"): ("median", 20, "20 us"),
    ("agents", "kept-10000"): ("median", 2048, "2 KB"),
    **{("stream", f"unread-{size}"): ("above_us", 2, "2 us above it") for size in (1, 4, 16)},
}
"""What others are meant to stay below: which fact, how much, and that in words."""

Line = dict[str, Any]  # Any: a value of JSON


def read(name: str) -> list[Line]:
    """The figures of one benchmark; none where it wasn't measured."""
    path = FIGURES / f"{name}.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(name: str) -> str:
    """The figures of one benchmark as a table, and its plot."""
    rows = [
        "| case | ours | baseline | ratio | of single runs | of the quickest | aim |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *map(_row, read(name)),
    ]
    plot = f"\n![{name}: ratios](performance/{name}.svg)\n"
    return "\n".join(rows) + "\n" + (plot if (FIGURES / f"{name}.svg").exists() else "")


def _row(line: Line) -> str:
    return (
        f"| {line['case']} | {_value(line['median'])} {line['unit']} "
        f"| {_value(line['baseline'])}: {line['versus']} | {line['ratio']:.2f} "
        f"| {line['ratio_min']:.2f} to {line['ratio_max']:.2f} "
        f"| {line['quickest']:.2f} | {_aim(line)} |"
    )


def _aim(line: Line) -> str:
    """What the case is meant to stay below, and whether it does; nothing where nobody said."""
    case = (line["bench"], line["case"])
    if case in AIMS:
        met, words = line["ratio"] <= AIMS[case], str(AIMS[case])
    elif case in BOUNDS:
        fact, most, words = BOUNDS[case]
        met = line[fact] <= most
        words = f"{words}: it is {_value(line[fact])}"
    else:
        return ""
    return f"{words}, {'met' if met else '**missed**'}"


def _value(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def costs() -> str:
    """What costs what, as far as the other tables tell it: of each, the quickest run."""
    rows = "\n".join(f"| {what} | {_value(cost)} us |" for what, cost in _costs())
    return f"| what | CPU time |\n| --- | --- |\n{rows}\n"


def _costs() -> Iterator[tuple[str, float]]:
    names = ("pool-overhead", "stream", "step-growth", "agents")
    lines = {line["case"]: line for name in names for line in read(name)}
    least = {case: float(line["min"]) for case, line in lines.items()}
    pool = lines["alone-n1000"]
    yield "a task and a limiter's place in plain Trio", pool["min"] / pool["quickest"]
    yield "a call in the pool alone", least["alone-n1000"]
    yield "a call of a turn that nobody listens to: two events", least["bare-n1000"]
    yield (
        "a call with listeners before, around and behind it: three events, a reader of the log "
        "and a watcher",
        least["step-n1000"],
    )
    yield "a turn of two steps and one call that nobody listens to", least["bare-n1"]
    yield "the same with a listener on each hook, a reader and a watcher", least["step-n1"]
    yield "a step with one call, with all those and a request's body", least["at-200"]
    yield "a chunk that comes alone, beside the model's own work", lines["unread-1"]["above_us"]
    yield "a chunk of sixteen in one network read", lines["unread-16"]["above_us"]
    yield "an idle agent, made", least["made-1000"]


def environment() -> str:
    """What the figures were measured on."""
    facts = json.loads((FIGURES / "environment.json").read_text(encoding="utf-8"))
    packages = ", ".join(f"{name} {facts[name]}" for name in ("trio", "msgspec", "attrs"))
    return (
        f"Measured on {facts['date']} with {facts['python']}, {packages}, on {facts['machine']}: "
        f"{facts['cores']} cores of an {facts['processor']}, which other work shared (load "
        f"{facts['load']}).\n"
    )


PARTS: dict[str, Callable[[], str]] = {"environment": environment, "costs": costs}


def page() -> str:
    """The page, with the figures that were measured last."""

    def part(found: re.Match[str]) -> str:
        name = found["name"]
        written = PARTS[name]() if name in PARTS else table(name)
        return f"{found[1]}\n{written}\n{found[3]}"

    return MARKED.sub(part, PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
