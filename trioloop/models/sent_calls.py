"""How the calls of a transcript are shown to a provider: their ids, and their arguments.

A transcript may have been made with other providers, whose ids another one refuses, and may hold
arguments that a model broke off. A result finds its call as long as both get the same id, so an id
is changed by what it is alone.
"""

import base64
import hashlib
import re

import attrs
import msgspec
from msgspec import Raw

from trioloop.models.reading import is_json_object


@attrs.frozen
class CallIds:
    """The ids of calls that a provider takes.

    Attributes:
        allowed: what it takes, as a regular expression; others are replaced.
        prefix: how a replacement begins.
        length: how long one is.
    """

    allowed: str = ".+"
    prefix: str = "call_"
    length: int = 29

    def sent(self, wire_id: str) -> str:
        """The id that the provider is sent for one in the transcript."""
        if re.fullmatch(self.allowed, wire_id):
            return wire_id
        digest = base64.b32encode(hashlib.sha256(wire_id.encode()).digest()).decode()
        return (self.prefix + digest)[: self.length]


ANY_IDS = CallIds()
SHORT_IDS = CallIds(".{1,40}")
MIDDLE_IDS = CallIds(".{1,64}")
PLAIN_IDS = CallIds("[A-Za-z0-9_-]{1,64}")
MISTRAL_IDS = CallIds("[A-Za-z0-9]{9}", prefix="", length=9)


def arguments_text(raw: str) -> str:
    """Raw arguments as the JSON of an object, quoted in one where they are none.

    Many servers parse what they are sent, and refuse the whole transcript for one broken call.
    """
    if not raw:
        return "{}"
    if is_json_object(raw):
        return raw
    return msgspec.json.encode({"invalid_arguments": raw}).decode()


def arguments_json(raw: str) -> Raw:
    """As `arguments_text`, for APIs that take an object instead of its text."""
    return Raw(arguments_text(raw).encode())
