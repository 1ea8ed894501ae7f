"""Descriptions from docstrings in Google, NumPy or reST style."""

import inspect

import attrs
from docstring_parser import Docstring, DocstringStyle, ParseError, parse

_STYLES = (DocstringStyle.GOOGLE, DocstringStyle.NUMPYDOC, DocstringStyle.REST)


@attrs.frozen
class Described:
    """What a docstring says: of the whole, and of each parameter or attribute by name."""

    summary: str = ""
    parameters: dict[str, str] = attrs.field(factory=dict)


def described(docstring: str | None) -> Described:
    """Read a docstring in the style that finds most parameters.

    One that no style can read is a plain description.
    """
    text = inspect.cleandoc(docstring or "")
    if not text:
        return Described()
    read = max((_parsed(text, style) for style in _STYLES), key=lambda found: len(found.params))
    if not read.meta:
        return Described(text)
    return Described(
        _summary(read),
        {param.arg_name: _one_line(param.description or "") for param in read.params},
    )


def _parsed(text: str, style: DocstringStyle) -> Docstring:
    try:
        return parse(text, style=style)
    except ParseError:
        return Docstring()


def _summary(read: Docstring) -> str:
    parts = (read.short_description, read.long_description)
    return "\n\n".join(part.strip() for part in parts if part)


def _one_line(text: str) -> str:
    return " ".join(text.split())
