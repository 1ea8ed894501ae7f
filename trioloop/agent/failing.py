"""Why an attempt failed, in facts that the log can hold, whatever an adapter raised.

What an adapter raises may hold any value. What any error says is read in `tools/words`; what
becomes of an attempt that failed is decided elsewhere.
"""

import math

from trioloop.errors import ModelFailure
from trioloop.events import Failure
from trioloop.tools.excerpt import prefix
from trioloop.tools.words import code_of, words_of

_WORDS_BYTES_MAX = 4_096


def failure_of(error: Exception) -> Failure:
    """Why an attempt failed; an adapter's own nursery may have wrapped it."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, ModelFailure):
        try:
            return _told(error)
        except Exception:  # a property may do anything
            return _unknown(error)
    return _unknown(error)


def malformed(error: Exception) -> Failure:
    """The failure of an attempt whose chunks are none that the log can hold."""
    message = f"the model's adapter gave what is no chunk of an answer: {words_of(error)}"
    return Failure(code="MALFORMED_RESPONSE", message=message)


def _unknown(error: Exception) -> Failure:
    return Failure(code="UNKNOWN", message=f"{type(error).__name__}: {words_of(error)}")


def _told(failure: ModelFailure) -> Failure:
    """What a failure says, without what is no fact of its kind."""
    status, wait_s, request = failure.status, failure.retry_after_s, failure.request_id
    is_time = isinstance(wait_s, int | float) and 0 <= wait_s < math.inf
    return Failure(
        code=code_of(failure) or "UNKNOWN",
        message=_text(failure.message),
        status=status if isinstance(status, int) else None,
        retry_after_s=wait_s if is_time else None,
        request_id=_text(request) if request is not None else None,
        retryable=failure.retryable is True,
    )


def _text(value: object) -> str:
    return prefix(str(value), _WORDS_BYTES_MAX)
