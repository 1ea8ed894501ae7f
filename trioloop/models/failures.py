"""How answers fail: providers' error bodies, in all their envelopes, and answers that are none.

Pure. A message that leaves here holds no key, header or prompt text: only the provider's own words
about the error, shortened, with what looks like a credential or a quoted input taken out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime

import attrs

from trioloop.errors import ModelFailure
from trioloop.models.kinds import FAILURE_CODES, ErrorKind
from trioloop.models.reading import Object, count, read_json

_MESSAGE_CHARS_MAX = 500  # of a provider's message that are told
_READ_CHARS_MAX = 2_000  # of a provider's message that are searched for numbers


@attrs.frozen
class ContextTokens:
    """The numbers that an error tells when a request was too long, as far as it does."""

    limit: int | None = None
    prompt: int | None = None
    completion: int | None = None

    def __str__(self) -> str:
        named = {"prompt": self.prompt, "completion": self.completion, "limit": self.limit}
        return ", ".join(f"{name} {count}" for name, count in named.items() if count is not None)


@attrs.frozen
class ProviderError:
    """An error as a provider tells it.

    Attributes:
        message: its words.
        words: its type and code, in lower case: what tells one kind from another.
        status: the HTTP status, or what the error says it would be.
        detail: further words, for telling the kind only; they may quote anything.
        tokens: numbers that it gives in members of their own.
    """

    message: str
    words: frozenset[str] = frozenset()
    status: int | None = None
    detail: str = ""
    tokens: ContextTokens = ContextTokens()


def failure_of_reply(
    status: int, headers: Mapping[str, str], body: bytes, *, secrets: Sequence[str], now: float
) -> ModelFailure:
    """The failure that a reply with an error status tells.

    Args:
        status: the HTTP status.
        headers: the reply's headers; names in any case, if the mapping doesn't mind.
        body: as much of it as was read.
        secrets: what must not be in the message.
        now: Unix seconds, for a `retry-after` that is a date.
    """
    error = read_error(read_json(body)) or ProviderError(_plain(headers, body))
    error = attrs.evolve(error, status=status)
    return _failure(error, secrets, request_id_of(headers), retry_after_s(headers, now), headers)


def failure_in_stream(
    payload: object, *, secrets: Sequence[str], request_id: str | None = None
) -> ModelFailure:
    """The failure that an error inside of a good reply's stream tells."""
    error = read_error(payload) or ProviderError("the provider sent an error without a message")
    return _failure(error, secrets, request_id, None, {})


def truncated() -> ModelFailure:
    """The failure of a stream that ends, as if nothing was amiss, before its answer does."""
    return ModelFailure("TRUNCATED", "the stream ended before the model's answer did")


def unnamed_call() -> ModelFailure:
    """The failure of an answer that asks for a call, and doesn't say of which tool."""
    return ModelFailure("MALFORMED_RESPONSE", "the model asked for a call without a name")


def check_arguments(chars: int, chars_max: int) -> None:
    """Check how long the raw arguments of one call are, which come in pieces.

    Raises:
        ModelFailure: MALFORMED_RESPONSE, they are longer than their limit.
    """
    if chars > chars_max:
        raise ModelFailure(
            "MALFORMED_RESPONSE",
            f"the arguments of one call are longer than {chars_max} characters",
        )


def read_error(payload: object) -> ProviderError | None:
    """The error in an envelope of any known form, or None where it is none."""
    if isinstance(payload, list) and payload:
        payload = payload[0]
    if not isinstance(payload, dict):
        return None
    inner = payload.get("error")
    if isinstance(inner, str):
        inner = payload | {"message": inner}
    if isinstance(inner, dict):
        return _from_object(inner)
    if "detail" in payload:
        return ProviderError(_detail(payload["detail"]))
    if payload.get("object") == "error" or isinstance(payload.get("message"), str):
        return _from_object(payload)
    return None


def error_kind(error: ProviderError) -> ErrorKind:
    """What kind of error it is: by its words where they tell, else by its status."""
    text = f"{error.message[:_READ_CHARS_MAX]} {error.detail[:_READ_CHARS_MAX]}"
    for kind, words in _WORDS.items():
        if error.words & words:
            return kind
    if error.status != 429 and _CONTEXT.search(text):
        return "context_length"
    if _BAD_TOOL_CALL.search(text):
        return "bad_tool_call"
    if error.status is not None:
        return _kind_of_status(error.status)
    for kind, words in _VAGUE_WORDS.items():
        if error.words & words:
            return kind
    return "unknown"


def context_tokens(error: ProviderError) -> ContextTokens:
    """The numbers that an error about the context window tells, in members or in words."""
    found: dict[str, int] = {}
    for pattern in _NUMBERS:
        match = pattern.search(error.message[:_READ_CHARS_MAX])
        if match is not None:
            found |= {name: int(digits) for name, digits in match.groupdict().items()}
    told = attrs.asdict(error.tokens, filter=lambda _, count: count is not None)
    return ContextTokens(**(found | told))


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The provider's id of the request that a reply answers."""
    return headers.get("x-request-id") or headers.get("request-id")


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """How long a reply asks to wait, in seconds: None where it doesn't, or not sensibly.

    Args:
        headers: `retry-after-ms`, else `retry-after` as seconds or as an HTTP date.
        now: Unix seconds.
    """
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return _positive(millis / 1000)
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is None and text is not None:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return _positive(seconds)


_WORDS: dict[ErrorKind, frozenset[str]] = {
    "context_length": frozenset({"context_length_exceeded", "exceed_context_size_error"}),
    "bad_tool_call": frozenset({"tool_use_failed"}),
    "quota": frozenset({"insufficient_quota", "billing_error", "insufficient_balance"}),
    "content_filter": frozenset({"content_filter", "content_policy_violation"}),
    "rate_limit": frozenset({"rate_limit_exceeded", "rate_limit_error", "too_many_requests"}),
    "overloaded": frozenset({"overloaded_error", "overloaded", "slow_down"}),
    "unavailable": frozenset({"unavailable_error", "service_unavailable"}),
    "authentication": frozenset({"authentication_error", "invalid_api_key"}),
    "permission": frozenset({"permission_error", "permission_denied"}),
    "not_found": frozenset({"model_not_found", "not_found_error"}),
    "timeout": frozenset({"timeout_error"}),
}
_VAGUE_WORDS: dict[ErrorKind, frozenset[str]] = {
    "invalid_request": frozenset({"invalid_request_error", "badrequesterror"}),
    "server": frozenset({"server_error", "api_error", "internal_server_error"}),
}
_STATUSES: dict[int, ErrorKind] = {
    401: "authentication",
    402: "quota",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "server",
    413: "context_length",
    429: "rate_limit",
    503: "unavailable",
    529: "overloaded",
}
_CONTEXT = re.compile(
    r"maximum context length is \d+|prompt is too long: \d+ tokens|exceed context limit: \d+"
    r"|tokens exceed the configured limit of \d+|exceeds the (available )?context (size|window)"
    r"|Input length .* exceeds",
    re.IGNORECASE,
)
_BAD_TOOL_CALL = re.compile(r"does not match the expected .* format")
_NUMBERS = [
    re.compile(r"maximum context length is (?P<limit>\d+)"),
    re.compile(r"\((?P<prompt>\d+) (in the messages|of text input), (?P<completion>\d+) in the"),
    re.compile(r"prompt is too long: (?P<prompt>\d+) tokens > (?P<limit>\d+)"),
    re.compile(r"context limit: (?P<prompt>\d+) \+ (?P<completion>\d+) > (?P<limit>\d+)"),
    re.compile(r"configured limit of (?P<limit>\d+)"),
    re.compile(r"messages resulted in (?P<prompt>\d+) tokens"),
    re.compile(r"\((?P<prompt>\d+) tokens\) exceeds .* \((?P<limit>\d+) tokens\)"),
]
_CREDENTIAL = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|key|api)[-_][\w*.-]{6,}|\bBearer\s+\S+|\bAIza[\w-]{10,}"
    r"|\beyJ[\w-]+\.[\w.-]+",
    re.IGNORECASE,
)
_QUOTED_INPUT = re.compile(
    r"""(input_value\s*=|['"]input['"]\s*:|failed_generation).*""", re.DOTALL
)


def _failure(
    error: ProviderError,
    secrets: Sequence[str],
    request_id: str | None,
    wait_s: float | None,
    headers: Mapping[str, str],
) -> ModelFailure:
    kind = error_kind(error)
    numbers = str(context_tokens(error)) if kind == "context_length" else ""
    status = f"{error.status}, " if error.status is not None else ""
    said = safe_text(error.message, secrets)
    failure = ModelFailure(
        FAILURE_CODES[kind],
        f"{status}{kind}: {said}" + (f" (tokens: {numbers})" if numbers else ""),
        status=error.status,
        retry_after_s=wait_s,
        request_id=request_id,
    )
    asked = headers.get("x-should-retry")
    if asked in {"true", "false"} and kind not in {"quota", "context_length"}:
        failure.retryable = asked == "true"
    return failure


def safe_text(text: str, secrets: Sequence[str]) -> str:
    """Words of a provider without credentials and quoted input, shortened to one short line."""
    for secret in secrets:
        text = text.replace(secret, "[key]") if secret else text
    text = _CREDENTIAL.sub("[key]", _QUOTED_INPUT.sub("[input]", text))
    text = " ".join(text.split())
    return text if len(text) <= _MESSAGE_CHARS_MAX else text[:_MESSAGE_CHARS_MAX] + "..."


def _kind_of_status(status: int) -> ErrorKind:
    if status in _STATUSES:
        return _STATUSES[status]
    if status >= 500:
        return "server"
    return "invalid_request" if status >= 400 else "unknown"


def _from_object(error: Object) -> ProviderError:
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    message = error.get("message")
    return ProviderError(
        message=message if isinstance(message, str) else "the provider gave no message",
        words=frozenset(_words(error)),
        status=next(_status_numbers(error), None),
        detail=raw if isinstance(raw, str) else "",
        tokens=ContextTokens(limit=count(error, "n_ctx"), prompt=count(error, "n_prompt_tokens")),
    )


def _words(error: Object) -> Iterator[str]:
    return (
        value.lower() for value in (error.get("type"), error.get("code")) if isinstance(value, str)
    )


def _status_numbers(error: Object) -> Iterator[int]:
    for value in (error.get("status_code"), error.get("code"), error.get("status")):
        if re.fullmatch(r"[1-9][0-9]{2}", str(value)):
            yield int(str(value))


def _detail(detail: object) -> str:
    """The messages of a FastAPI error; what it quotes of the input stays out."""
    if isinstance(detail, str):
        return detail
    faults = detail if isinstance(detail, list) else [detail]
    said = [str(fault.get("msg")) for fault in faults if isinstance(fault, dict)]
    return "; ".join(said) or "the provider gave no message"


def _plain(headers: Mapping[str, str], body: bytes) -> str:
    content_type = headers.get("content-type", "")
    if not body.strip():
        return "the reply has no body"
    if "html" in content_type or body.lstrip()[:1] == b"<":
        return "the reply is a page, not an API's answer: is base_url right?"
    return body.decode("utf-8", "replace")


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _positive(seconds: float | None) -> float | None:
    return seconds if seconds is not None and 0 < seconds < float("inf") else None
