"""The recordings of real provider traffic in `tests/streams`, as its README describes them."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

Recording: TypeAlias = dict[str, Any]  # Any: JSON of the recordings

OURS = Path(__file__).resolve().parent.parent / "streams"
STREAMS = Path(os.environ.get("TRIOLOOP_STREAMS") or OURS)
STREAMS_ARE_OURS = STREAMS == OURS


def listing() -> list[Path]:
    """The files of the recordings: those of the repository, or of the folder TRIOLOOP_STREAMS."""
    return sorted(STREAMS.glob("*.json"))


@cache
def recordings() -> dict[str, Recording]:
    """All of them, by name."""
    return {path.stem: recording(path) for path in listing()}


def recording(path: Path) -> Recording:
    """The one in a file."""
    read: Recording = json.loads(path.read_text(encoding="utf-8"))
    return read


def streams(api: str | None = None) -> dict[str, Recording]:
    """The good replies of an API, or of all, those that end in an error inside included."""
    return {
        name: recording
        for name, recording in recordings().items()
        if "sse_text" in recording and api in {None, recording["api"]}
    }


def error_bodies() -> dict[str, Recording]:
    """The refusals of all APIs: a status and a body."""
    return {name: recording for name, recording in recordings().items() if "body" in recording}
