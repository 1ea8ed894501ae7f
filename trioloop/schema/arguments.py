"""Decodes the arguments of one tool, and tells every fault in them."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import attrs
import msgspec
import msgspec.inspect

from trioloop.errors import ArgumentsError
from trioloop.schema.check import faults
from trioloop.schema.document import Document, is_closed_inside
from trioloop.schema.text import parse_object, shown

DecodeHook: TypeAlias = Callable[[type, Any], Any]  # msgspec's own signature


@attrs.frozen
class Field:
    """One declared parameter. `default` counts only where it isn't required."""

    name: str
    kind: Any  # Any: an annotation may be of any sort
    required: bool
    default: object = None
    description: str = ""


class Arguments:
    """The decoder of one tool's arguments."""

    __slots__ = (
        "_closed_inside",
        "_decode_plain",
        "_defaults",
        "_fields",
        "_hook",
        "_names",
        "_schema",
        "_struct",
    )

    def __init__(
        self,
        schema: Document,
        fields: Sequence[Field] = (),
        struct: type[msgspec.Struct] | None = None,
        hook: DecodeHook | None = None,
    ) -> None:
        self._schema = schema
        self._fields = tuple(fields)
        self._struct = struct
        self._hook = hook
        self._names = frozenset(field.name for field in fields)
        self._defaults = tuple(
            (field.name, field.default) for field in fields if not field.required
        )
        self._closed_inside = struct is None or is_closed_inside(schema)
        self._decode_plain = None if struct is None else _decoder_of_plain(struct)

    @classmethod
    def of_fields(
        cls, name: str, fields: Sequence[Field], schema: Document, hook: DecodeHook
    ) -> "Arguments":
        """The decoder of a function's parameters; its values have the annotated types."""
        members: list[tuple[str, Any, Any]] = [
            (field.name, field.kind, msgspec.NODEFAULT if field.required else msgspec.UNSET)
            for field in fields
        ]
        struct = msgspec.defstruct(name, members, kw_only=True, forbid_unknown_fields=True)
        return cls(schema, fields, struct, hook)

    @classmethod
    def of_schema(cls, schema: Document) -> "Arguments":
        """The decoder of arguments that only a JSON Schema describes; its values are plain JSON."""
        return cls(schema)

    def decode(self, raw: str) -> dict[str, object]:
        """The arguments by name, defaults filled in.

        Args:
            raw: the text that a model wrote; empty means `{}`.

        Raises:
            ArgumentsError: with a line for each fault.
        """
        arguments = self._decoded_at_once(raw)
        return self._decoded_with_care(raw) if arguments is None else arguments

    def _decoded_at_once(self, raw: str) -> dict[str, object] | None:
        """Arguments in which nothing can be wrong; None: look with care."""
        if self._decode_plain is None:
            return None
        try:
            arguments = msgspec.structs.asdict(self._decode_plain(raw))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        given = len(arguments) - self._fill_in(arguments)
        return arguments if raw.count(":") == given else None  # else a key may have come twice

    def _fill_in(self, arguments: dict[str, object]) -> int:
        """Give defaults to what was left out, and tell how many those are."""
        filled = 0
        for name, default in self._defaults:
            if arguments[name] is msgspec.UNSET:
                arguments[name] = default
                filled += 1
        return filled

    def _decoded_with_care(self, raw: str) -> dict[str, object]:
        given = parse_object(raw)
        if self._closed_inside or not self._names.issuperset(given):
            self._refuse(self._checked(given))
        if self._struct is None:
            return given
        try:
            decoded = msgspec.convert(given, self._struct, str_keys=True, dec_hook=self._hook)
        except Exception:  # whatever a type's own code raises: its faults are told one by one
            decoded = self._again(given)
        arguments: dict[str, object] = msgspec.structs.asdict(decoded)
        self._fill_in(arguments)
        return arguments

    def _again(self, given: dict[str, object]) -> Any:  # Any: the tool's own struct
        """Decode after a failure: `2.0` may stand for 2, as JSON Schema has it."""
        self._refuse(self._checked(given))
        whole = {name: _whole(value) for name, value in given.items()}
        self._refuse(self._unfit(whole))
        try:
            return msgspec.convert(whole, self._struct, str_keys=True, dec_hook=self._hook)
        except Exception as error:  # whatever a type's own code raises
            raise ArgumentsError([f"$: {_told(error)}"]) from None

    def _checked(self, given: dict[str, object]) -> list[str]:
        try:
            return faults(given, self._schema)
        except RecursionError:
            return ["$: expected a JSON object, got one that is nested too deeply"]

    def _unfit(self, given: dict[str, object]) -> list[str]:
        """Faults that the schema can't show, such as a date that doesn't exist."""
        return [
            line
            for field in self._fields
            if field.name in given
            for line in self._unfit_field(field, given[field.name])
        ]

    def _unfit_field(self, field: Field, value: object) -> Iterator[str]:
        try:
            msgspec.convert(value, field.kind, str_keys=True, dec_hook=self._hook)
        except Exception as error:  # whatever a type's own code raises
            yield from _lines(error, f"$.{field.name}", value)

    @staticmethod
    def _refuse(found: list[str]) -> None:
        if found:
            raise ArgumentsError(found)


def _decoder_of_plain(
    struct: type[msgspec.Struct],
) -> Callable[[str], msgspec.Struct] | None:
    """What reads plain arguments in one go; None: they may hold other than texts and numbers."""
    declared = msgspec.inspect.type_info(struct)
    assert isinstance(declared, msgspec.inspect.StructType)
    if not all(_is_plain(field.type) for field in declared.fields):
        return None
    return msgspec.json.Decoder(struct).decode


def _is_plain(declared: msgspec.inspect.Type) -> bool:
    """Whether a JSON value of a type is read alike from its text and from what that decodes to."""
    if isinstance(declared, msgspec.inspect.UnionType):
        return all(map(_is_plain, declared.types))
    if isinstance(declared, msgspec.inspect.ListType):
        return _is_plain(declared.item_type)
    return isinstance(declared, _PLAIN)


_PLAIN = (
    msgspec.inspect.StrType,
    msgspec.inspect.IntType,
    msgspec.inspect.FloatType,
    msgspec.inspect.BoolType,
    msgspec.inspect.NoneType,
    msgspec.inspect.LiteralType,
)


def _whole(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    return value


_AT = re.compile(r"(?P<why>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)


def _lines(error: Exception, path: str, value: object) -> Iterator[str]:
    """The faults that a decoder raised, in our words."""
    at = _AT.fullmatch(str(error))
    inside = (at["path"] or "") if at else ""
    listed: Callable[[], list[dict[str, Any]]] | None
    listed = getattr(error.__cause__ or error, "errors", None)
    if callable(listed):  # pydantic's own list of everything that is wrong; it isn't imported here
        for fault in listed():
            place = "".join(_step(part) for part in fault.get("loc", ()))
            yield f"{path}{inside}{place}: expected otherwise: {fault.get('msg')}"
        return
    got = f", got {shown(value)}" if not inside and ", got" not in _told(error) else ""
    yield f"{path}{inside}: {_told(error)}{got}"


def _step(part: object) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{part}"


def _told(error: Exception) -> str:
    at = _AT.fullmatch(str(error))
    why = (at["why"] if at else str(error)).replace("`", "") or type(error).__name__
    if why.startswith("Expected "):
        return "expected " + why.removeprefix("Expected ")
    return f"expected a fitting value: {why}"
