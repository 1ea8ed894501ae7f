"""Reads what the catalogues say from the code: docstrings, fields, types."""

import re
import types
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NewType, Union, get_args, get_origin

import attrs
import docstring_parser
import msgspec
from docstring_parser import DocstringStyle

from trioloop.chunks import Chunk
from trioloop.messages import Block

_RULES = re.compile(r" \((?:[A-Z]\d+|section \d+)(?:, (?:[A-Z]\d+|section \d+))*\)")
_PATH = re.compile(r"P\d+")
_WORDS: dict[object, str] = {
    Any: "JSON",
    msgspec.Raw: "JSON",
    object: "JSON",
    dict[str, Any]: "JSON object",
    Block: "content block",
    Chunk: "chunk",
    bool: "`bool`",
    int: "`int`",
    float: "`float`",
    str: "`str`",
    bytes: "`bytes`",
    None: "none",
    type(None): "none",
}


@attrs.frozen
class Field:
    """A field of a fact: its name, type, default and meaning in Markdown."""

    name: str
    type: str
    default: object
    meaning: str

    @property
    def is_optional(self) -> bool:
        """Whether it may be left out."""
        return self.default is not _MANDATORY


_MANDATORY = object()


def _default(value: object) -> str:
    if value is _MANDATORY:
        return ""
    if value is None:
        return "none"
    return f"`{value}`" if isinstance(value, int | float | str) and value != "" else "empty"


def says(cls: type) -> str:
    """What the docstring of a class says, without its sections."""
    parsed = docstring_parser.parse(cls.__doc__ or "", style=DocstringStyle.GOOGLE)
    parts = (parsed.short_description, parsed.long_description)
    return told("\n\n".join(part for part in parts if part))


def told(text: str) -> str:
    """Text of a docstring as these pages show it: of the contract's rules, only paths are named."""
    return _RULES.sub(_path_links, " ".join(text.split()))


def _path_links(rules: re.Match[str]) -> str:
    paths = [f"[{path}](../../concepts/paths.md#all)" for path in _PATH.findall(rules[0])]
    return f" ({', '.join(paths)})" if paths else ""


def fields(cls: type) -> list[Field]:
    """The fields of a fact, in order.

    Raises:
        LookupError: one isn't described in the docstring of the class.
    """
    meanings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        parsed = docstring_parser.parse(base.__doc__ or "", style=DocstringStyle.GOOGLE)
        meanings |= {one.arg_name: one.description or "" for one in parsed.params}
    missing = [name for name, _, _ in _raw_fields(cls) if name not in meanings]
    if missing:
        raise LookupError(f"the docstring of {cls.__name__} doesn't describe {missing}")
    return [
        Field(name, type_words(type), default, told(meanings[name]).removesuffix("."))
        for name, type, default in _raw_fields(cls)
    ]


def _raw_fields(cls: type) -> Iterator[tuple[str, object, object]]:
    if attrs.has(cls):
        for attribute in attrs.fields(cls):
            mandatory = attribute.default is attrs.NOTHING
            yield attribute.name, attribute.type, _MANDATORY if mandatory else attribute.default
        return
    for field in msgspec.structs.fields(cls):
        default = () if field.default_factory is not msgspec.NODEFAULT else field.default
        yield field.name, field.type, _MANDATORY if default is msgspec.NODEFAULT else default


def table(cls: type) -> str:
    """A table of the fields of a fact, with their defaults if one has one."""
    found = fields(cls)
    if any(field.is_optional for field in found):
        head = "| field | type | default | meaning |\n| --- | --- | --- | --- |\n"
        rows = [f"{_default(one.default)} | {one.meaning}" for one in found]
    else:
        head = "| field | type | meaning |\n| --- | --- | --- |\n"
        rows = [one.meaning for one in found]
    return head + "".join(
        f"| `{one.name}` | {one.type} | {row} |\n" for one, row in zip(found, rows, strict=True)
    )


def type_words(type: object) -> str:
    """A type in words, as Markdown; classes are links into the reference."""
    word = _word(type)
    origin, parts = get_origin(type), get_args(type)
    if word is not None or origin is None:
        return word or class_link(type)
    if origin is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin in (Union, types.UnionType):
        return _either(parts)
    is_pair = origin is tuple and Ellipsis not in parts
    return f"{'pair' if is_pair else 'list'} of {type_words(parts[0])}"


def _word(type: object) -> str | None:
    if isinstance(type, NewType):
        return f"`{type.__name__}`"
    try:
        return _WORDS.get(type)
    except TypeError:  # what can't be hashed isn't among them
        return None


def _either(parts: Sequence[object]) -> str:
    rest = tuple(part for part in parts if part not in (None, type(None)))
    words = [type_words(part) for part in rest]
    if len(rest) < len(parts):
        words.append("none")
    return " or ".join(words)


def class_link(cls: object) -> str:
    """A link to a class in the reference."""
    name = getattr(cls, "__name__", str(cls))
    return f"[`{name}`][{getattr(cls, '__module__', '?')}.{name}]"


def sentence(text: str) -> str:
    """The first sentence of a text."""
    return re.split(r"(?<=[.:]) (?=[A-Z`])", text)[0]
