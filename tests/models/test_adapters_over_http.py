"""Each adapter over a mocked server: its recorded streams and refusals, and what it sends."""

import json
from collections.abc import Callable

import httpx  # noqa: ASYNC127 - as in trioloop/models/transport.py
import pytest

from tests.models.asking import collect, failure_of
from tests.models.judging import assert_as_expected
from tests.models.reading import assembled
from tests.models.recordings import Recording, error_bodies, streams
from tests.models.serving import Mock, Pieces
from trioloop.chunks import Finish
from trioloop.models import Anthropic, OpenAIChat, OpenAIResponses
from trioloop.models.http_model import HttpModel
from trioloop.models.kinds import FAILURE_CODES

ADAPTERS: dict[str, Callable[..., HttpModel]] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": Anthropic,
}
STREAMS, ERRORS = streams(), error_bodies()


def behind(mock: Mock, api: str) -> HttpModel:
    http = httpx.MockTransport(mock)
    return ADAPTERS[api]("m", base_url="https://api.test/v1", api_key="the-key", http=http)


def sent_with(recording: Recording) -> dict[str, str]:
    """The headers of a recording, whose body is kept as it was before it was packed."""
    packing = {"content-encoding", "transfer-encoding"}
    return {name: value for name, value in recording["headers"].items() if name not in packing}


@pytest.mark.parametrize("recording", STREAMS.values(), ids=STREAMS.keys())
async def test_a_recorded_stream_reads_as_expected(recording: Recording) -> None:
    data = recording["sse_text"].encode()
    pieces = Pieces([data[start : start + 500] for start in range(0, len(data), 500)])
    mock = Mock([httpx.Response(200, headers=sent_with(recording), stream=pieces)])
    chunks, failure = await collect(behind(mock, recording["api"]))
    assert_as_expected(recording, assembled(chunks), failure)
    assert failure is not None or isinstance(chunks[-1], Finish)
    assert len(mock.requests) == 1


@pytest.mark.parametrize("recording", ERRORS.values(), ids=ERRORS.keys())
async def test_a_recorded_refusal_fails_after_one_request(recording: Recording) -> None:
    reply = httpx.Response(
        recording["status"], headers=sent_with(recording), content=recording["body"]
    )
    mock = Mock([reply])
    failure = await failure_of(behind(mock, recording["api"]))
    assert failure.code == FAILURE_CODES[recording["expected"]["error_kind"]]
    assert failure.retryable == recording["expected"]["retryable"]
    assert len(mock.requests) == 1


@pytest.mark.parametrize(
    ("api", "path", "header", "value", "members"),
    [
        ("openai_chat", "/v1/chat/completions", "authorization", "Bearer the-key", {"messages"}),
        ("openai_responses", "/v1/responses", "authorization", "Bearer the-key",
         {"input", "store"}),
        ("anthropic_messages", "/v1/messages", "x-api-key", "the-key", {"messages"}),
    ],
)  # fmt: skip
async def test_what_is_sent(
    api: str, path: str, header: str, value: str, members: set[str]
) -> None:
    mock = Mock([httpx.Response(500)])
    await failure_of(behind(mock, api))
    (request,) = mock.requests
    assert request.url.path == path
    assert request.headers[header] == value
    assert members <= json.loads(request.content).keys()
    assert json.loads(request.content)["stream"] is True
