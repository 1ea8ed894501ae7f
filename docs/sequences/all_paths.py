"""Every path that a turn can take, in words."""

from typing import NamedTuple


class Path(NamedTuple):
    """A path: what happens, what the log has behind the claim, and how the turn ends."""

    happens: str
    events: str
    ends: str


_TURN = "what closes step and turn"

PATHS = {
    "P1": Path(
        "a plain answer",
        "`step/start`, `system/message`, `user/message`, `request/header`, `request/context`, "
        "`assistant/message`, `step/end`",
        "completed",
    ),
    "P2": Path(
        "tool calls, then an answer",
        "as P1, but `tool/call` and `tool/result` of each call before `step/end`; a second step, "
        "without system or header unless they changed",
        "completed",
    ),
    "P3": Path("a listener rejects the step", "none", "blocked"),
    "P4": Path("a listener enters the first step without a message", "none", "completed"),
    "P5": Path("the same at a later step, with nothing owed", "none", "as the last step"),
    "P6": Path("a condition, section, listener or `prepare` raises", "none of that step", "error"),
    "P7": Path("cancelled during any of those", "none of that step", "aborted"),
    "P8": Path(
        "cancelled, or the store fails, behind the admission and before the request is sent",
        "`assistant/attempt` that wasn't sent, `step/end`",
        "aborted or error",
    ),
    "P9": Path(
        "cancelled while the model streams",
        "`assistant/message` with what was visible, or else `assistant/attempt`; `step/end`",
        "aborted",
    ),
    "P10": Path(
        "cancelled behind the answer, or while tools run",
        "the whole `assistant/message`, a result for each call, `step/end`",
        "aborted",
    ),
    "P11": Path(
        "the attempt fails, a listener answers `Retry`",
        "`assistant/attempt`, what changed of system, header and context, a further attempt",
        "as the rest",
    ),
    "P12": Path("cancelled, or failing, while a retry waits", "`step/end`", "aborted or error"),
    "P13": Path("the attempt fails, nobody retries", "`assistant/attempt`, `step/end`", "error"),
    "P14": Path(
        "the answer is cut at its maximum of tokens",
        "`assistant/message`, `TOOL_CALL_CUT` for each call, `step/end`",
        "max-tokens",
    ),
    "P15": Path("a result concludes the turn", "the whole batch, `step/end`", "completed"),
    "P16": Path(
        "a listener of `agent.turn_stopping` steers", "those of a further step", "as the rest"
    ),
    "P17": Path(
        "the provider pauses",
        "`assistant/message`, `step/end`, and those of a further step without input",
        "as the rest",
    ),
    "P18": Path("disposed, or the host cancels", _TURN, "aborted"),
    "P19": Path("the store fails", f"{_TURN}, in memory", "error `STORE_FAILED`"),
    "P20": Path(
        "another owner takes the session", "nothing more: its repair closes the turn", "none here"
    ),
    "P21": Path(
        "the scheduler of calls fails",
        "`TOOL_INTERNAL` for each call without a result, `step/end`",
        "error `INTERNAL`",
    ),
    "P22": Path(
        "the process dies", "what repair appends when the session is opened next", "interrupted"
    ),
}
