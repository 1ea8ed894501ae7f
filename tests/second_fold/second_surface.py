"""What a model sees, read a second time from the rows of a log.

Written from the contract, apart from trioloop's own reading, and slow on purpose: each question is
put to all rows from the first on. A row is an event as plain JSON; nothing of trioloop is imported
here. What the contract leaves open was taken from what trioloop was seen to do: the words for a
removed section, that blank text is no content, and that the reasoning of an interrupted answer
isn't shown alone.
"""

from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]  # whatever JSON the log holds
Json: TypeAlias = Any

REMOVED = "The instructions of this section no longer apply."  # no event holds these words


def heads(rows: list[Row]) -> list[Json]:
    """The system prompt: the head nodes in order, those of equal order by name (E1)."""
    in_order = sorted(_heads(rows).values(), key=lambda data: (data["order"], data["node"]))
    return [_system(data["node"], data["text"]) for data in in_order]


def history(rows: list[Row]) -> list[Json]:
    """The messages after the system prompt, in order."""
    return [message for _, message in _nodes(rows)]


def sections(rows: list[Row]) -> dict[str, str]:
    """The sections of the system prompt as the model last saw them, tail updates included."""
    standing = {*_heads(rows), *(seq for seq, _ in _nodes(rows))}
    seen: dict[str, str] = {}
    for row in rows:
        data = row["data"]
        if row["type"] == "system/message" and row["seq"] in standing:
            seen[data["node"]] = data["text"]
    return {node: text for node, text in seen.items() if text is not None}


def generation(rows: list[Row]) -> int:
    """How many replacements of the history there have been; system nodes don't count."""
    return sum(
        row["data"]["replaces"] is not None
        for row in rows
        if row["type"] in ("user/message", "tool/result")
    )


def wire_ids(rows: list[Row]) -> set[str]:
    """The ids under which the calls of the history are known to the model."""
    return {
        block["wire_id"]
        for message in history(rows)
        if message["role"] == "assistant"
        for block in message["content"]
        if block["type"] == "tool-call"
    }


def _heads(rows: list[Row]) -> dict[int, Json]:
    """The head nodes, each under the seq of the event that it came from."""
    nodes: dict[str, tuple[int, Json]] = {}
    for row in rows:
        data = row["data"]
        if row["type"] == "system/message" and data["placement"] == "head":
            nodes.pop(data["node"], None)
            if data["text"] is not None:
                nodes[data["node"]] = (row["seq"], data)
    return dict(nodes.values())


def _nodes(rows: list[Row]) -> list[tuple[int, Json]]:
    """The nodes of the history, each with the seq of the event that it came from."""
    nodes: list[tuple[int, Json]] = []
    for row in rows:
        data = row["data"]
        if row["type"] == "system/message" and data["placement"] == "tail":
            text = REMOVED if data["text"] is None else data["text"]
            nodes.append((row["seq"], _system(data["node"], text)))
        elif row["type"] == "user/message":
            _place(nodes, (row["seq"], data["message"]), data["replaces"])
        elif row["type"] == "assistant/message" and _says_something(data):
            nodes.append((row["seq"], data["message"]))
        elif row["type"] == "tool/result":
            replaces = data["replaces"]
            place = None if replaces is None else (replaces, replaces)
            _place(nodes, (row["seq"], _result(rows, data)), place)
        elif row["type"] == "request/header" and data["why"] == "series":
            nodes = [node for node in nodes if node[1]["role"] != "system"]  # drops tail nodes
    return nodes


def _says_something(answer: Json) -> bool:
    """Whether an answer joins the history: one without content stays out (E3).

    Blank text is none; nor is the reasoning of an interrupted answer, which providers refuse to be
    shown alone.
    """
    return any(
        block["text"].strip()
        if block["type"] in ("text", "refusal")
        else not (answer["interrupted"] and block["type"] == "reasoning")
        for block in answer["message"]["content"]
    )


def _place(
    nodes: list[tuple[int, Json]], node: tuple[int, Json], replaces: tuple[int, int] | None
) -> None:
    if replaces is None:
        nodes.append(node)
        return
    seqs = [seq for seq, _ in nodes]
    first, last = replaces
    nodes[seqs.index(first) : seqs.index(last) + 1] = [node]


def _result(rows: list[Row], data: Json) -> Json:
    return {
        "role": "tool",
        "call": data["call"],
        "wire_id": _wire_id(rows, data["call"]),
        "content": data["content"],
        "is_error": data["is_error"],
    }


def _wire_id(rows: list[Row], call: str) -> str:
    for data in _data(rows, "assistant/message"):
        for block in data["message"]["content"]:
            if block["type"] == "tool-call" and block["call"] == call:
                found: str = block["wire_id"]
                return found
    raise AssertionError(f"no answer asks for the call {call!r}")


def _system(node: str, text: str) -> Json:
    return {"role": "system", "node": node, "text": text}


def _data(rows: list[Row], kind: str) -> list[Json]:
    return [row["data"] for row in rows if row["type"] == kind]
