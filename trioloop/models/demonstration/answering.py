"""What the demonstration model says: from results, or why it can't."""

import json
from collections.abc import Sequence

from trioloop.models.demonstration.conversation import Called
from trioloop.models.demonstration.planning import Unserved

INTRODUCTION = (
    "I am trioloop's demonstration model: a few rules that pick tools, not a language model."
)
_RESULT_LENGTH_MAX = 1_000
_TOOLS_NAMED_MAX = 12


def answer(
    called: Sequence[Called],
    unserved: Sequence[Unserved],
    tools: Sequence[str],
    *,
    introduce: bool,
    may_call: bool = True,
) -> str:
    """The text that ends a turn."""
    lines = [INTRODUCTION] if introduce or not called else []
    lines += [_report(call) for call in called]
    lines += [_regret(piece, tools) for piece in unserved]
    if any(piece.tool is None for piece in unserved) and tools:
        lines.append(f"What I can use: {_listed(tools)}.")
    if not called and not unserved:
        lines.append(_invitation(tools, may_call))
    return "\n".join(lines)


def _report(call: Called) -> str:
    result = call.result.strip() or "nothing"
    if len(result) > _RESULT_LENGTH_MAX:
        result = f"{result[:_RESULT_LENGTH_MAX]}… ({len(call.result)} characters in all)"
    verb = "failed" if call.is_error else "gave"
    gap = ":\n" if "\n" in result else ": " if call.is_error else " "
    return f"{call.tool}({_arguments(call.arguments)}) {verb}{gap}{result}"


def _arguments(raw: str) -> str:
    try:
        arguments = json.loads(raw or "{}")
    except ValueError:
        return raw
    if not isinstance(arguments, dict):
        return raw
    return ", ".join(f"{name}={_shown(value)}" for name, value in arguments.items())


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _regret(piece: Unserved, tools: Sequence[str]) -> str:
    said = piece.text if len(piece.text) <= 80 else f"{piece.text[:79]}…"
    if piece.tool is not None:
        return f"{piece.tool} fits “{said}”, but I found no value for {_listed(piece.missing)}."
    if not tools:
        return f"There is no tool here, so I can't do anything about “{said}”."
    return f"No tool here fits “{said}”."


def _invitation(tools: Sequence[str], may_call: bool) -> str:
    if not may_call:
        return "I was asked to answer without tools, and without them I know nothing."
    if not tools:
        return "There is no tool here for me to use."
    return f"Ask for something that one of my tools does: {_listed(tools)}."


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_TOOLS_NAMED_MAX])
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown)} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
