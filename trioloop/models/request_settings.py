"""What the requests of all three APIs have in common: settings, tools, what goes back unchanged."""

import hashlib
from collections.abc import Callable, Mapping, Set

import msgspec
from msgspec import Raw

from trioloop.errors import ModelFailure
from trioloop.events import CallConfig, ToolDeclaration
from trioloop.log.rebuild import Request
from trioloop.messages import Block, Json, Replay
from trioloop.models.reading import Object

_CACHE_KEY_CHARS_MAX = 64


def known(settings: Mapping[str, object]) -> Object:
    """Those settings that aren't None: the provider decides on the others."""
    return {name: value for name, value in settings.items() if value is not None}


def with_extra(settings: Object, config: CallConfig, own: Set[str]) -> Object:
    """The settings and the further members of the body; of two objects, the members of both.

    Raises:
        ModelFailure: INVALID_REQUEST, one is among those that an adapter sets.
    """
    taken = own & config.extra.keys()
    if taken:
        raise ModelFailure(
            "INVALID_REQUEST", f"extra settings can't set {sorted(taken)}: trioloop does"
        )
    return settings | {
        name: _joined(settings.get(name), config.extra[name]) for name in config.extra
    }


def _joined(one: object, other: Json) -> object:
    return {**one, **other} if isinstance(one, dict) and isinstance(other, dict) else other


def answer_format(schema: Mapping[str, Json]) -> Object:
    """What OpenAI's APIs call the schema of an answer: held strictly where its form allows that."""
    return {"name": "answer", "schema": schema, "strict": _is_closed(schema)}


def _is_closed(schema: Json | Mapping[str, Json]) -> bool:
    """Whether each object of a schema names all it has, and each of that is required."""
    if isinstance(schema, list):
        return all(map(_is_closed, schema))
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or isinstance(properties, dict):
        names = set(properties) if isinstance(properties, dict) else set()
        required = schema.get("required", [])
        if schema.get("additionalProperties") is not False or not isinstance(required, list):
            return False
        if names - {name for name in required if isinstance(name, str)}:
            return False
    return all(map(_is_closed, schema.values()))


def cache_key(request: Request) -> str:
    """What tells a provider that requests are of one conversation, and may share its cache."""
    session = str(request.session)
    if len(session) <= _CACHE_KEY_CHARS_MAX:
        return session
    return hashlib.sha256(session.encode()).hexdigest()


def own_members(block: Block, replay_key: str) -> Object:
    """What a provider sent with a block, to be sent back with it; others' data stays here (E6)."""
    replay: Replay | None = getattr(block, "replay", None)
    if replay is None or replay.provider != replay_key:
        return {}
    return msgspec.json.decode(replay.data, type=dict[str, Raw])


class EncodedTools:
    """The declared tools as a member of the body, encoded when they change.

    Args:
        declared: what an API calls a declaration.
    """

    def __init__(self, declared: Callable[[ToolDeclaration], Object]) -> None:
        self._declared = declared
        self._tools: tuple[ToolDeclaration, ...] = ()
        self._member = b""

    def member(self, tools: tuple[ToolDeclaration, ...]) -> bytes:
        """The member behind a comma; nothing without tools."""
        if self._tools != tools:
            declared = msgspec.json.encode([self._declared(tool) for tool in tools])
            self._tools, self._member = tools, b',"tools":' + declared if tools else b""
        return self._member
