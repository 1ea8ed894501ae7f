"""The runs that are read twice hold every kind of event, and every way in which one comes."""

from collections.abc import Iterator

from tests.second_fold.first_view import rows_of
from tests.second_fold.recording import recorded
from tests.second_fold.runs import RUNS
from tests.second_fold.second_surface import Row

KINDS = """
    agent/inbox/spliced claimed, agent/inbox/spliced canceled, agent/inbox/spliced replaced,
    agent/inbox/spliced forked, agent/inbox/spliced restored, agent/inbox/spliced after cancel,
    turn/start again, turn/end completed, turn/end max-tokens, turn/end blocked, turn/end aborted,
    turn/end error, turn/end interrupted, turn/end unadmitted, session/opened fork,
    system/message head, system/message head removed, system/message tail,
    system/message tail removed, user/message replaces, request/header initial,
    request/header resume, request/header change, request/header series,
    assistant/message stop, assistant/message tool_calls, assistant/message length,
    assistant/message content_filter, assistant/message refusal, assistant/message pause,
    assistant/message interrupted, assistant/attempt failed, assistant/attempt cancelled,
    assistant/attempt unsent, tool/call, tool/dispatch, tool/result, tool/result concludes_turn,
    tool/result replaces, tool/result not started
"""


def test_every_kind_comes_up() -> None:
    rows = [row for run in RUNS for log in recorded(run).logs.values() for row in rows_of(log)]
    found = {f"{row['type']} {way}".strip() for row in rows for way in ways(row)}
    wanted = {" ".join(kind.split()) for kind in KINDS.split(",")}
    assert wanted - found == set()


def ways(row: Row) -> Iterator[str]:
    """What is special about an event, in words."""
    data = row["data"]
    yield ""
    yield from (name for name in ("concludes_turn", "interrupted", "unadmitted") if data.get(name))
    yield from (name for name in ("replaces", "cancelled") if data.get(name))
    yield str(data.get("reason") or data.get("why") or (data.get("finish") or {}).get("reason"))
    yield str(data.get("placement")) + " removed" * (data.get("text", "") is None)
    words = {
        "again": data.get("retry_of"),
        "fork": data.get("parent"),
        "failed": data.get("failure"),
        "unsent": data.get("sent") is False,
        "not started": "call_seq" in data and data["call_seq"] is None,
        "restored": any(one["restored"] for one in data.get("inserted", ())),
        "after cancel": any(one["after_cancel"] for one in data.get("inserted", ())),
        "claimed": data.get("removed") and data["outcome"] is None,
        str(data.get("outcome")): "outcome" in data,
    }
    yield from (word for word, is_so in words.items() if is_so)
