"""Rebuilds the request of every attempt from the exported bytes of a log alone (G2).

Run as a program of its own: `python -m tests.second_fold.second_rebuild` reads logs from standard
input, one event a line, and writes one line for each attempt that was sent: the session's name,
and the request as its model received it, once encoded. Nothing of trioloop may be loaded.
"""

import json
import sys
from collections.abc import Iterable

from tests.second_fold.second_surface import Json, Row, heads, history


def requests(rows: list[Row]) -> list[bytes]:
    """The request of each attempt that the session itself sent, in order.

    What a fork took over was sent by its parent.
    """
    opened = rows[0]["data"]
    inherited = -1 if opened["fork_seq"] is None else opened["fork_seq"]
    return [
        encoded(request(rows[:index]))
        for index, row in enumerate(rows)
        if row["seq"] > inherited and _was_sent(row)
    ]


def request(before: list[Row]) -> Json:
    """The request of an attempt, from the events before it; its parts in order of their names."""
    header = [row["data"] for row in before if row["type"] == "request/header"][-1]
    config = header["config"]
    return {
        "config": {**config, "extra": _sorted(config["extra"])},
        "history": history(before),
        "session": before[0]["data"]["session"],
        "system": heads(before),
        "tools": header["tools"],
    }


def encoded(value: Json) -> bytes:
    """Compact JSON; the members of an object stand as they were written."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _was_sent(row: Row) -> bool:
    attempt = row["type"] == "assistant/attempt"
    return row["type"] == "assistant/message" or (attempt and row["data"]["sent"] is True)


def _sorted(value: Json) -> Json:
    """Free JSON has no order of its own, so its canonical form has that of the names."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def _logs(lines: Iterable[bytes]) -> list[list[Row]]:
    logs: list[list[Row]] = []
    for row in map(json.loads, lines):
        if row["seq"] == 0:
            logs.append([])
        logs[-1].append(row)
    return logs


def main() -> None:
    """Read logs, write requests."""
    for rows in _logs(sys.stdin.buffer):
        name = rows[0]["data"]["session"].encode()
        for line in requests(rows):
            sys.stdout.buffer.write(name + b" " + line + b"\n")
    loaded = [name for name in sys.modules if name.split(".")[0] in ("trioloop", "msgspec")]
    assert not loaded, f"this should be read without {loaded}"


if __name__ == "__main__":
    main()
