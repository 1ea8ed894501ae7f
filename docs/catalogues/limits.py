"""The catalogue of limits."""

from docs.catalogues.reading import fields, says
from trioloop.control import ControlLimits
from trioloop.limits import Limits
from trioloop.models.deadlines import ConnectionLimits, Deadlines

OPENING = """\
# Limits

Everything that can run out has a maximum, and everything that may take long has a time. Each is a
field of one of four classes; give the ones that you change:
`open_runtime(limits=Limits(calls_max=4))`.

"""

HEAD = "| limit | default | unit | meaning |\n| --- | ---: | --- | --- |\n"
_ENDINGS = ("_max", "_min", "_warn")
_RATE = "_per_s_max"
_OTHER_WORDS = {
    "burst": "messages",
    "chars": "characters",
    "continuations": "steps",
    "pauses": "steps",
    "remembered": "commands",
    "strays": "threads",
}


def unit(name: str) -> str:
    """The unit of a limit, which its name tells."""
    if name.endswith("_s"):
        return "seconds"
    if name.endswith(_RATE):
        return f"{unit(name.removesuffix(_RATE))} a second"
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    word = name.rpartition("_")[2]
    return _OTHER_WORDS.get(word, word)


def value(default: object, unit: str) -> str:
    """A default as people read it."""
    if not isinstance(default, int | float):
        return "none"
    if unit == "bytes":
        is_large = default >= 1 << 20
        return f"{default / (1 << 20):g} MiB" if is_large else f"{default / (1 << 10):g} KiB"
    return f"{default:,.15g}"


def _table(cls: type) -> str:
    rows = []
    for field in fields(cls):
        of = unit(field.name)
        default = value(field.default, of)
        rows.append(f"| `{field.name}` | {default} | {of} | {field.meaning} |\n")
    return HEAD + "".join(rows)


def page() -> str:
    """The page, as Markdown."""
    return (
        f"{OPENING}## Of a runtime and its agents\n\n[`Limits`][trioloop.limits.Limits] of "
        f"`open_runtime(limits=...)`.\n\n{_table(Limits)}"
        f"\n## Of a model's answers in time\n\n"
        f"[`Deadlines`][trioloop.models.deadlines.Deadlines] of one model. {says(Deadlines)}\n\n"
        f"{_table(Deadlines)}"
        f"\n## Of a model's connections\n\n"
        f"[`ConnectionLimits`][trioloop.models.deadlines.ConnectionLimits] of one model.\n\n"
        f"{_table(ConnectionLimits)}"
        f"\n## Of a control endpoint\n\n"
        f"[`ControlLimits`][trioloop.control.limits.ControlLimits] of "
        f"`trioloop.control.serve(limits=...)`.\n\n{_table(ControlLimits)}"
    )
