"""What a log adds up to, read a second time (G9).

Written from the contract, by somebody who hadn't seen the code of the first reading, and slow on
purpose: nothing is carried from one event to the next, each question is put to all rows anew. A
row is an event as plain JSON; nothing of trioloop is imported here. Within an admission, where the
contract knows no state, a message not yet admitted counts as dropped from the step's start on; and
an answer isn't counted among the attempts of its step, only those that gave none.
"""

from tests.second_fold.second_surface import (
    Json,
    Row,
    generation,
    heads,
    history,
    sections,
    wire_ids,
)

LISTS = ("next-turn", "next-step")
USAGE = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")


def view(rows: list[Row]) -> dict[str, Json]:
    """All that a log adds up to, as plain JSON."""
    return {
        "session": _last(rows, "session/opened"),
        "seq": rows[-1]["seq"] if rows else -1,
        "time": rows[-1]["time"] if rows else 0,
        "inbox": {one: pending(rows, one) for one in LISTS},
        "fates": fates(rows),
        "turns": max((data["turn"] for data in _data(rows, "turn/start")), default=0),
        "turn": open_turn(rows),
        "last_turn": _last(rows, "turn/end"),
        "header": _last(rows, "request/header"),
        "context": _last(rows, "request/context"),
        "heads": heads(rows),
        "history": history(rows),
        "generation": generation(rows),
        "sections": sections(rows),
        "usage": usage(rows),
        "wire_ids": sorted(wire_ids(rows)),
    }


def usage(rows: list[Row]) -> dict[str, int | None]:
    """The tokens of all attempts; None where none of them told."""
    told = [row["data"]["usage"] or {} for row in rows if _is_attempt(row)]
    sums: dict[str, int | None] = {}
    for name in USAGE:
        known = [one[name] for one in told if one.get(name) is not None]
        sums[name] = sum(known) if known else None
    return sums


# Messages


def pending(rows: list[Row], name: str) -> list[Json]:
    """One list of the inbox."""
    held: list[Json] = []
    for data in _data(rows, "agent/inbox/spliced"):
        if data["list"] == name:
            held[data["start"] : data["start"] + data["removed"]] = data["inserted"]
    return held


def fates(rows: list[Row]) -> dict[str, Json]:
    """What became of each message, the last of its fates (S3, R5)."""
    found: dict[str, Json] = {}
    turn = None
    for index, row in enumerate(rows):
        data = row["data"]
        if row["type"] == "turn/start":
            turn = data["turn"]
        elif row["type"] == "agent/inbox/spliced":
            for one in _removed(rows, index):
                if data["outcome"] is None:
                    found[_id(one)] = _fate("claimed", data["list"], turn=turn)
                else:
                    found[_id(one)] = _fate("discarded", data["list"], why=data["outcome"])
            for one in data["inserted"]:
                found[_id(one)] = _fate("pending", data["list"])
        elif row["type"] == "user/message" and data["message"]["id"]:
            id = data["message"]["id"]
            came_by = found[id]["list"] if id in found else None
            found[id] = _fate("admitted", came_by, turn=turn)
        elif row["type"] == "turn/end":
            for one in data["unadmitted"]:
                fate = _fate("unadmitted", one["list"], turn=turn, why=one["why"])
                found[one["message"]] = fate
            turn = None
    return found


def _fate(
    status: str, came_by: str | None, *, turn: int | None = None, why: str | None = None
) -> Json:
    return {"status": status, "list": came_by, "turn": turn, "why": why}


def _removed(rows: list[Row], index: int) -> list[Json]:
    """The messages that the splice at an index takes out."""
    data = rows[index]["data"]
    held = pending(rows[:index], data["list"])
    return held[data["start"] : data["start"] + data["removed"]]


def _id(one: Json) -> str:
    id: str = one["message"]["id"]
    return id


# The open turn


def open_turn(rows: list[Row]) -> Json:
    """The turn that has no end yet."""
    start = _last_index(rows, "turn/start")
    if start is None or _last_index(rows[start:], "turn/end") is not None:
        return None
    turn = rows[start:]
    fresh, dropped = _claims(rows, start)
    return {
        "number": turn[0]["data"]["turn"],
        "retry_of": turn[0]["data"]["retry_of"],
        "steps": len(_data(turn, "step/start")),
        "claimed": dropped + fresh,
        "fresh": fresh,
        "dropped": dropped,
        "failures": _failures(rows),
        "reason_so_far": _reason_so_far(turn),
        "owed": _owed(turn),
        "usage": usage(turn),
        "step": open_step(turn),
    }


def _claims(rows: list[Row], start: int) -> tuple[list[Json], list[Json]]:
    """What the turn has claimed and not admitted: since its last admission, and before it."""
    fresh: list[Json] = []
    dropped: list[Json] = []
    for index in range(start, len(rows)):
        row = rows[index]
        data = row["data"]
        if row["type"] == "agent/inbox/spliced":
            if data["outcome"] is None:
                fresh += [{"pending": one, "list": data["list"]} for one in _removed(rows, index)]
            back = {_id(one) for one in data["inserted"]}
            fresh = [claim for claim in fresh if _id(claim["pending"]) not in back]
            dropped = [claim for claim in dropped if _id(claim["pending"]) not in back]
        elif row["type"] == "user/message":
            admitted = data["message"]["id"]
            fresh = [claim for claim in fresh if _id(claim["pending"]) != admitted]
            dropped = [claim for claim in dropped if _id(claim["pending"]) != admitted]
        elif row["type"] == "step/start":  # the admission; what it is about to admit comes next
            dropped, fresh = dropped + fresh, []
    return fresh, dropped


def _failures(rows: list[Row]) -> list[Json]:
    """The failures of the retry chain since its last success, oldest first (R1, R2)."""
    failures: list[Json] = []
    for row in rows:
        data = row["data"]
        new_chain = row["type"] == "turn/start" and data["retry_of"] is None
        success = row["type"] == "assistant/message" and not data["interrupted"]
        if new_chain or success:
            failures = []
        elif row["type"] == "assistant/attempt" and data["failure"] is not None:
            failures.append(data["failure"])
    return failures


def _reason_so_far(turn: list[Row]) -> str:
    """How the turn would end now, if nothing were owed (P14)."""
    cut = any(_finish(data) == "length" for data in _data(turn, "assistant/message"))
    return "max-tokens" if cut else "completed"


def _owed(turn: list[Row]) -> str | None:
    """What asks for a step, but for input in next-step (R7)."""
    start = _last_index(turn, "step/start")
    if start is None:
        return "retry" if turn[0]["data"]["retry_of"] is not None else None
    data = _last(turn[start:], "assistant/message")
    if data is None:
        return None
    concluded = any(result["concludes_turn"] for result in _data(turn[start:], "tool/result"))
    if _calls(data):  # whether they are answered or not; a conclusion outranks a pause (P15)
        return None if _finish(data) == "length" or concluded else "results"
    return "pause" if _finish(data) == "pause" else None


# The open step


def open_step(turn: list[Row]) -> Json:
    """The step that has no end yet."""
    start = _last_index(turn, "step/start")
    if start is None or _last_index(turn[start:], "step/end") is not None:
        return None
    step = turn[start:]
    answer = _last(step, "assistant/message")
    blocks = _calls(answer) if answer is not None else []
    calls = {block["call"]: _call(step, block["call"]) for block in blocks}
    return {
        "number": step[0]["data"]["step"],
        "attempts": len(_data(step, "assistant/attempt")),
        "answer": answer,
        "calls": calls,
        "unanswered": [block for block in blocks if calls[block["call"]]["result"] is None],
    }


def _call(step: list[Row], call: str) -> Json:
    seq = None
    dispatched = False
    result = None
    for row in step:
        data = row["data"]
        if row["type"] == "tool/call" and data["call"] == call:
            seq, dispatched = row["seq"], data["dispatched"]
        elif row["type"] == "tool/dispatch" and data["call_seq"] == seq:
            dispatched = True
        elif row["type"] == "tool/result" and data["call"] == call and data["replaces"] is None:
            result = data
    return {"call_seq": seq, "dispatched": dispatched, "result": result}


# Rows


def _is_attempt(row: Row) -> bool:
    return row["type"] in ("assistant/message", "assistant/attempt")


def _finish(answer: Json) -> str | None:
    return None if answer["finish"] is None else str(answer["finish"]["reason"])


def _calls(answer: Json) -> list[Json]:
    return [block for block in answer["message"]["content"] if block["type"] == "tool-call"]


def _data(rows: list[Row], kind: str) -> list[Json]:
    return [row["data"] for row in rows if row["type"] == kind]


def _last(rows: list[Row], kind: str) -> Json:
    found = _data(rows, kind)
    return found[-1] if found else None


def _last_index(rows: list[Row], kind: str) -> int | None:
    found: list[int] = [index for index, row in enumerate(rows) if row["type"] == kind]
    return found[-1] if found else None
