"""A log that was written long ago reads as it did, and tells the requests that were sent (G2, E5).

`format_1` holds a session as it was exported, and what its model received, byte for byte. What is
said of them here may only change together with the format's number.
"""

from pathlib import Path

import pytest

from trioloop import check, rebuild_request
from trioloop.codec import canonical, decode_event, encode_event
from trioloop.events import FORMAT, Event
from trioloop.log.fold import fold
from trioloop.log.repair import repair
from trioloop.log.surface import REMOVED
from trioloop.store.lines import log_of

FOLDER = Path(__file__).with_name("format_1")


def _lines() -> list[bytes]:
    return (FOLDER / "log.jsonl").read_bytes().splitlines(keepends=True)


def _events() -> list[Event]:
    return [decode_event(row.payload) for row in log_of(_lines()).rows]


def test_the_logs_of_this_format_are_kept() -> None:
    assert FOLDER.name == f"format_{FORMAT}"


def test_an_old_log_is_a_log_and_is_written_again_as_it_was() -> None:
    events = _events()
    check(events)
    assert repair(events) == ()
    written = [encode_event(event) for event in events]
    assert all(
        line.startswith(row[:-1] + b',"crc":') for line, row in zip(_lines(), written, strict=True)
    )


@pytest.mark.parametrize("line", (FOLDER / "requests.txt").read_bytes().splitlines(), ids=len)
def test_a_request_of_an_old_log_is_rebuilt_as_it_was_sent(line: bytes) -> None:
    seq, _, request = line.partition(b" ")
    assert canonical(rebuild_request(_events(), int(seq))) == request


def test_a_section_that_was_taken_back_is_told_in_the_words_of_its_format() -> None:
    told = (FOLDER / "requests.txt").read_bytes()
    assert REMOVED == "The instructions of this section no longer apply."
    assert REMOVED.encode() in told
    assert fold(_events()).turns == 6
