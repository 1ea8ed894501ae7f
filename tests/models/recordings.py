"""The recordings of real provider traffic in `tests/streams`, as its README describes them."""

import json
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

Recording: TypeAlias = dict[str, Any]  # Any: JSON of the recordings

STREAMS = Path(__file__).resolve().parent.parent / "streams"


@cache
def recordings() -> dict[str, Recording]:
    """All of them, by name."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(STREAMS.glob("*.json"))
    }


def chat_streams() -> dict[str, Recording]:
    """The good replies of Chat Completions APIs, those that end in an error inside included."""
    return {
        name: recording
        for name, recording in recordings().items()
        if recording["api"] == "openai_chat" and "sse_text" in recording
    }


def error_bodies() -> dict[str, Recording]:
    """The refusals of all APIs: a status and a body."""
    return {name: recording for name, recording in recordings().items() if "body" in recording}
