"""Events as strict JSON, and the canonical bytes that stores keep and requests are compared by.

A row is `{"type":...,"seq":...,"time":...,"data":{...}}`, with `"ignorable":true` before the data
where a reader may skip it (E5). The wire name comes first, so that a slice of the bytes tells
which decoder reads the rest. What is written is what will be read: a value that JSON would change
on the way, such as NaN or a set, is refused with the path that leads to it.
"""

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias, cast

import attrs
import msgspec
from msgspec import UNSET, Raw, Struct, inspect

from trioloop.errors import EventEncodingError, UnsupportedSessionError
from trioloop.events import (
    FORMAT,
    Event,
    EventData,
    SessionOpened,
    UnknownEvent,
    event_class,
    is_ignorable,
    wire_name,
)

_PREFIX = b'{"type":"'
_NEWLINE = ord("\n")  # found faster than a byte string
_NESTED_MAX = 200  # levels that a value may nest: well inside what the C decoder takes

_encode = msgspec.json.Encoder().encode
_REFUSALS = (TypeError, ValueError, RecursionError, OverflowError)  # of the C encoder and decoder


def seal(event: Event) -> tuple[Event, bytes]:
    """Encode an event, and make it safe from whoever made it.

    Returns:
        The event to keep, whose JSON values are copies that no caller can change, and its
        canonical bytes.

    Raises:
        EventEncodingError: a value isn't strict JSON, or isn't of its declared type.
    """
    data = event.data
    if type(data) is UnknownEvent:
        begin, mark = _row_words(data.name, ignorable=True)
        return event, _ROW % (begin, event.seq, event.time, mark, bytes(data.raw))
    form = _FORMS.get(type(data)) or _form_of(type(data))
    try:
        body = _encode(data)
        copy = form.decode(body)
        if form.has_floats:  # where a whole number may stand, which reads back as another
            body = _encode(copy)
    except _REFUSALS as error:
        raise _refusal(form.name, data, error) from None
    if copy == data and _NEWLINE not in body:
        if form.immutable:
            return event, _ROW % (form.begin, event.seq, event.time, form.mark, body)
        _refuse_deep(form.name, data, body)
    else:
        body, copy = _settled(form, data, body, copy)
    kept = Event(event.seq, event.time, copy)
    return kept, _ROW % (form.begin, event.seq, event.time, form.mark, body)


def encode_event(event: Event) -> bytes:
    """The canonical bytes of an event: what `seal` gives, for who keeps only the bytes.

    Raises:
        EventEncodingError: a value isn't strict JSON, or isn't of its declared type.
    """
    return seal(event)[1]


def strict_copy(data: EventData) -> EventData:
    """The fact itself where its class holds nothing that can change; else a copy of its own.

    Raises:
        EventEncodingError: a copied value isn't strict JSON, or isn't of its declared type.
    """
    if type(data) is UnknownEvent or _form_of(type(data)).immutable:
        return data
    return seal(Event(0, 0, data))[0].data


def is_unicode(text: str) -> bool:
    """Whether the log can hold a text: Python's may hold lone surrogates, which Unicode has not."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def decode_event(payload: bytes) -> Event:
    """Read what `encode_event` wrote.

    Raises:
        UnsupportedSessionError: nobody here declares its type and it isn't ignorable, its format is
            newer, or its data isn't what its type says (E5).
    """
    name = payload[len(_PREFIX) : payload.find(b'"', len(_PREFIX))].decode("utf-8", "replace")
    cls = event_class(name) if payload.startswith(_PREFIX) else None
    if cls is None:
        return _decode_any(payload)
    try:
        row = (_FORMS.get(cls) or _form_of(cls)).decode_row(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnsupportedSessionError(f"{name} holds what can't be read here: {error}") from None
    return _checked(Event(row.seq, row.time, row.data))


def canonical(value: object) -> bytes:
    """The bytes by which requests are compared: compact JSON, equal for equal values."""
    return _canonical(value)


def chain_crc(previous: int, payload: bytes) -> int:
    """The CRC-32 of a session up to and with a row, from the one before it (0 before the first)."""
    return zlib.crc32(payload, previous)


# One form for each class of events, made when it is first met


class _Row(Struct):
    """What a typed row decodes to; `data` is narrowed for each class."""

    seq: int
    time: int
    data: Any  # the class of the row's type


class _Envelope(Struct):
    """A row of any type, its data not yet read."""

    type: str
    seq: int
    time: int
    data: Raw
    ignorable: bool = False


@attrs.frozen
class _Form:
    """How a class is written and read; `immutable`: no field of it can change once it is made."""

    name: str
    begin: bytes
    mark: bytes
    decode: Callable[[bytes], EventData]
    decode_row: Callable[[bytes], _Row]
    immutable: bool
    has_floats: bool


_FORMS: dict[type[EventData], _Form] = {}
_envelope = msgspec.json.Decoder(_Envelope).decode


def _form_of(cls: type[EventData]) -> _Form:
    form = _FORMS.get(cls)
    if form is None:
        form = _FORMS[cls] = _new_form(cls)
    return form


def _new_form(cls: type[EventData]) -> _Form:
    name, declared = wire_name(cls), inspect.type_info(cls)
    _check_writable(name, declared)
    row = cast(type[_Row], msgspec.defstruct("Row", [("data", cls)], bases=(_Row,), kw_only=True))
    begin, mark = _row_words(name, ignorable=is_ignorable(cls))
    return _Form(
        name=name,
        begin=begin,
        mark=mark,
        decode=msgspec.json.Decoder(cls).decode,
        decode_row=msgspec.json.Decoder(row).decode,
        immutable=not _holds(declared, _MUTABLE),
        has_floats=_holds(declared, inspect.FloatType),
    )


_ROW = b'%b%d,"time":%d%b%b}'


def _row_words(name: str, *, ignorable: bool) -> tuple[bytes, bytes]:
    """What stands in a row before its seq, and before its data."""
    mark = b',"ignorable":true' if ignorable else b""
    return b'{"type":"%b","seq":' % name.encode(), mark + b',"data":'


def _decode_any(payload: bytes) -> Event:
    """Read a row that doesn't begin with a name known here: spaced out, reordered or unknown."""
    try:
        row = _envelope(payload)
        cls = event_class(row.type)
        if cls is not None:
            return _checked(Event(row.seq, row.time, _form_of(cls).decode(bytes(row.data))))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnsupportedSessionError(f"a row holds what can't be read here: {error}") from None
    if not row.ignorable:
        raise UnsupportedSessionError(
            f"event {row.seq} is of the type {row.type!r}, which nobody here declares: "
            "import what declares it, or use a newer trioloop"
        )
    return Event(row.seq, row.time, UnknownEvent(row.type, row.data.copy()))


def _checked(event: Event) -> Event:
    data = event.data
    if type(data) is SessionOpened and data.format > FORMAT:
        raise UnsupportedSessionError(
            f"session {data.session!r} was written in format {data.format}, this trioloop reads up "
            f"to {FORMAT}: use a newer one"
        )
    return event


# What may be declared


def _check_writable(name: str, declared: inspect.Type) -> None:
    """Refuse a declared type that JSON can't hold, or not in one form only."""
    for path, part in _parts(declared, "$", set()):
        if isinstance(part, _UNWRITABLE) or _is_odd_dict(part):
            what = type(part).__name__.removesuffix("Type").lower()
            raise EventEncodingError(name, path, f"a {what} is declared, which JSON doesn't have")


def _holds(declared: inspect.Type, kinds: type | tuple[type, ...]) -> bool:
    return any(isinstance(part, kinds) for _, part in _parts(declared, "$", set()))


_Types: TypeAlias = inspect.Type
_MUTABLE = (inspect.AnyType, inspect.DictType, inspect.ListType, inspect.TypedDictType)
_UNWRITABLE = (
    inspect.SetType,
    inspect.FrozenSetType,
    inspect.BytesType,
    inspect.ByteArrayType,
    inspect.MemoryViewType,
    inspect.DecimalType,
    inspect.CustomType,
)


def _is_odd_dict(part: _Types) -> bool:
    if not isinstance(part, inspect.DictType):
        return False
    return not isinstance(part.key_type, inspect.StrType | inspect.AnyType)


def _parts(declared: _Types, path: str, seen: set[object]) -> Iterator[tuple[str, _Types]]:
    """A declared type and all it is made of, each with its path."""
    cls = getattr(declared, "cls", None)
    if cls is not None and cls in seen:
        return
    seen.add(cls)
    yield path, declared
    for field in getattr(declared, "fields", ()):
        yield from _parts(field.type, f"{path}.{field.name}", seen)
    for kind in ("item_type", "value_type", "types", "item_types"):
        inner = getattr(declared, kind, ())
        for part in inner if isinstance(inner, tuple) else (inner,):
            yield from _parts(part, path, seen)


# Values that the fast comparison didn't pass


def _settled(form: _Form, data: EventData, body: bytes, copy: EventData) -> tuple[bytes, EventData]:
    """Bytes on one line, and what they decode to, for a value that differs only in its form.

    A tuple may stand where JSON has a list, and raw JSON may be spread over several lines.
    """
    fault = _fault(data, "$", 0) or _difference(data, copy, "$")
    if fault is not None:
        raise EventEncodingError(form.name, *fault)
    if _NEWLINE in body:
        body = msgspec.json.format(body, indent=-1)
    return body, form.decode(body)


def _refusal(name: str, data: EventData, error: Exception) -> EventEncodingError:
    fault = _fault(data, "$", 0)
    if fault is not None:
        return EventEncodingError(name, *fault)
    why, _, path = str(error).partition(" - at `")
    return EventEncodingError(name, path.rstrip("`") or "$", why)


_Fault: TypeAlias = tuple[str, str]  # the path, and what is wrong there


def _fault(value: object, path: str, depth: int) -> _Fault | None:
    """The first place where a value isn't strict JSON, whatever its declared type."""
    if not _is_container(value):
        why = _scalar_fault(value)
        return None if why is None else (path, why)
    if depth > _NESTED_MAX:
        return path, f"it nests more than {_NESTED_MAX} levels deep, or holds itself"
    for step, item in _members(value):
        if step is None:
            return path, f"the key {item!r} isn't Unicode text"
        fault = _fault(item, path + step, depth + 1)
        if fault is not None:
            return fault
    return None


def _scalar_fault(value: object) -> str | None:
    if isinstance(value, str):
        return None if is_unicode(value) else "a lone surrogate isn't Unicode text"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value!r} isn't a JSON number"
    if value is None or isinstance(value, bool | int | float | Raw | Enum):
        return None
    return f"JSON has no {type(value).__name__}"


def _refuse_deep(name: str, data: EventData, body: bytes) -> None:
    """Refuse what nests too deeply; where brackets are few, nothing can."""
    if len(body) > 2 * _NESTED_MAX and body.count(b"[") + body.count(b"{") > _NESTED_MAX:
        fault = _fault(data, "$", 0)
        if fault is not None:
            raise EventEncodingError(name, *fault)


def _is_container(value: object) -> bool:
    return isinstance(value, dict | list | tuple | Struct) or attrs.has(type(value))


def _members(value: object) -> Iterator[tuple[str | None, object]]:
    """What a container holds, with the path to each; a wrong key comes with None as its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or not is_unicode(key):
                yield None, key
            yield f".{key}", item
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    else:
        for name in _field_names(value):
            item = getattr(value, name)
            if item is not UNSET:  # it is left out
                yield f".{name}", item


def _field_names(value: object) -> tuple[str, ...]:
    if isinstance(value, Struct):
        return value.__struct_fields__
    return tuple(field.name for field in getattr(type(value), "__attrs_attrs__", ()))


def _difference(value: object, copy: object, path: str) -> _Fault | None:
    """The first place where a value reads back as something else, other than a list for a tuple."""
    if isinstance(value, list | tuple) and isinstance(copy, list | tuple):
        pairs: Iterator[tuple[str, object, object]] = (
            (f"[{index}]", mine, theirs)
            for index, (mine, theirs) in enumerate(zip(value, copy, strict=True))
        )
    elif isinstance(value, dict) and isinstance(copy, dict):
        pairs = ((f".{key}", item, copy[key]) for key, item in value.items())
    elif type(value) is type(copy) and _is_container(value):
        pairs = ((f".{n}", getattr(value, n), getattr(copy, n)) for n in _field_names(value))
    elif value == copy or isinstance(value, Raw):
        return None
    else:
        return path, f"{type(value).__name__} would be read back as {type(copy).__name__}"
    for step, mine, theirs in pairs:
        fault = _difference(mine, theirs, path + step)
        if fault is not None:
            return fault
    return None


def _plain(value: object) -> object:
    """A view that behaves like a list or dict, as one: what the C encoder doesn't know."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    # msgspec's word from a hook for "I don't know this type either"; it becomes its own TypeError
    raise NotImplementedError(f"JSON has no {type(value).__name__}")


_canonical = msgspec.json.Encoder(order="deterministic", enc_hook=_plain).encode
