"""What the model saw is rebuilt exactly from the log (G2)."""

import pytest
from hypothesis import given

from tests.log.random_logs import written_logs
from tests.log.writing import CONFIG, FAILED, TOOLS, LogWriter, answer, user
from trioloop.errors import InvalidInputError
from trioloop.events import SystemMessageLogged
from trioloop.log.fold import LogState
from trioloop.log.rebuild import rebuild_request, request_of
from trioloop.messages import SystemMessage


@given(written_logs())
def test_every_request_is_rebuilt_as_it_was_sent(writer: LogWriter) -> None:
    for seq, request in writer.requests.items():
        rebuilt = rebuild_request(iter(writer.events), seq)
        assert rebuilt == request
        assert list(rebuilt.messages) == list(request.messages)


def test_a_request_is_the_system_prompt_and_the_history() -> None:
    writer = LogWriter()
    writer.open_turn("m1")
    writer.admit(SystemMessageLogged("a", 0, "head", "Be terse."))
    request = request_of(writer.state)
    seq = writer.add(answer())
    assert (request.config, request.tools, request.session) == (CONFIG, TOOLS, "paris")
    first, second = request.messages
    assert first == SystemMessage("a", "Be terse.")
    assert second == user("m1").message
    assert rebuild_request(writer.events, seq) == request


def test_a_retry_sees_what_was_compacted_before_it() -> None:
    writer = LogWriter()
    seqs = [writer.turn_of_text("m1"), writer.turn_of_text("m2")]
    writer.open_turn("m3")
    writer.admit()
    first = writer.add(FAILED)
    [start, *_] = [seq for seq, _ in writer.state.surface.nodes]
    writer.add(user("sum", replaces=(start, seqs[1])))
    second = writer.add(answer())
    assert len(rebuild_request(writer.events, first).history) == 5
    assert len(rebuild_request(writer.events, second).history) == 2


def test_only_an_attempt_has_a_request() -> None:
    writer = LogWriter()
    seq = writer.turn_of_text("m1")
    with pytest.raises(InvalidInputError, match="step/end"):
        rebuild_request(writer.events, seq + 1)
    with pytest.raises(InvalidInputError, match="no event 99"):
        rebuild_request(writer.events, 99)
    with pytest.raises(InvalidInputError, match="request/header"):
        request_of(LogState())
