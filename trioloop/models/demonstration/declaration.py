"""Reading tool declarations: names, words and JSON Schemas, as the chooser wants them."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import attrs
import msgspec

from trioloop.events import ToolDeclaration
from trioloop.models.demonstration.words import PREPOSITIONS, is_content, split_name, stem

Schema: TypeAlias = Mapping[str, Any]  # JSON Schema: any JSON value under any keyword

_FILE_WORDS = {stem(word) for word in ("path", "file", "filename", "folder", "directory")}
_ORDER = ("const", "enum", "boolean", "integer", "number", "array", "object", "string")


@attrs.frozen
class Parameter:
    """One parameter of a tool.

    Attributes:
        name: as declared.
        words: the words of its name, in lower case.
        forms: what it may be, the most particular first; references are resolved.
        required: whether a call without it is invalid.
        description: what its author says of it.
    """

    name: str
    words: tuple[str, ...]
    forms: tuple[Schema, ...]
    required: bool
    description: str = ""

    @property
    def is_text(self) -> bool:
        """Whether any text will do."""
        return any(form_of(form) == "string" and "format" not in form for form in self.forms)

    @property
    def has_format(self) -> bool:
        """Whether it is a text of a particular form."""
        return any("format" in form for form in self.forms)

    @property
    def is_file(self) -> bool:
        """Whether it names a file or a folder: by its format, its name, or what is said of it."""
        formats = {form.get("format") for form in self.forms}
        said = _stems(_before_preposition(self.description)) | {stem(word) for word in self.words}
        return bool(formats & {"path", "file-path"} or said & _FILE_WORDS)

    @property
    def is_flag(self) -> bool:
        """Whether it is true or false."""
        return any(form_of(form) == "boolean" for form in self.forms)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return any(form_of(form) == "array" for form in self.forms)

    @property
    def members(self) -> tuple[object, ...]:
        """The values that it may have, where they are listed."""
        return tuple(member for form in self.forms for member in members_of(form))


@attrs.frozen
class DeclaredTool:
    """A tool as the chooser sees it: stems of its name, of what it does, and of the rest."""

    name: str
    parameters: tuple[Parameter, ...]
    name_words: tuple[str, ...]
    core_words: frozenset[str]
    other_words: frozenset[str]


def read_tool(declaration: ToolDeclaration) -> DeclaredTool:
    """Read one declaration. A schema without properties gives a tool without parameters."""
    schema = msgspec.json.decode(declaration.parameters)
    parameters = tuple(parameters_of(schema, schema)) if isinstance(schema, dict) else ()
    first, _, rest = declaration.description.strip().partition("\n")
    core = _stems(_before_preposition(first))
    other = _stems(first) | _stems(rest)
    for parameter in parameters:
        other |= frozenset(stem(word) for word in parameter.words)
        other |= _stems(parameter.description)
        other |= _stems(" ".join(str(member) for member in parameter.members))
    name_words = tuple(stem(word) for word in split_name(declaration.name) if is_content(word))
    return DeclaredTool(declaration.name, parameters, name_words, core, other - core)


def parameters_of(schema: Schema, root: Schema) -> Iterator[Parameter]:
    """The parameters that an object schema declares, in order."""
    required = schema.get("required", ())
    if not isinstance(schema.get("properties", {}), dict):
        return
    for name, declared in schema.get("properties", {}).items():
        forms = tuple(sorted(resolve(declared, root), key=_rank))
        yield Parameter(
            name, split_name(name), forms, name in required, _description(declared, forms)
        )


def resolve(
    schema: Schema, root: Schema, followed: frozenset[str] = frozenset()
) -> Iterator[Schema]:
    """The alternatives of a schema, with references followed once and null left out."""
    if not isinstance(schema, dict):
        return
    reference = schema.get("$ref")
    if reference is not None:
        if reference not in followed:
            yield from resolve(_referred(reference, root), root, followed | {reference})
    elif alternatives := schema.get("anyOf") or schema.get("oneOf"):
        for alternative in alternatives:
            yield from resolve(alternative, root, followed)
    elif isinstance(schema.get("type"), list):
        for kind in schema["type"]:
            yield from resolve({**schema, "type": kind}, root, followed)
    elif schema.get("type") != "null":
        yield {**schema, "$root": root}


def _referred(reference: str, root: Schema) -> Schema:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        if not isinstance(found, dict):
            return {}
        found = found.get(part.replace("~1", "/").replace("~0", "~"), {})
    resolved: Schema = found
    return resolved


def form_of(schema: Schema) -> str:
    """The word of `_ORDER` that a resolved schema is."""
    for keyword in ("const", "enum"):
        if keyword in schema:
            return keyword
    kind = schema.get("type")
    if kind is None:
        return "object" if "properties" in schema else "string"
    return str(kind)


def members_of(schema: Schema) -> tuple[object, ...]:
    """The values that an enumeration lists."""
    if "const" in schema:
        return (schema["const"],)
    return tuple(member for member in schema.get("enum", ()) if member is not None)


def _rank(schema: Schema) -> int:
    form = form_of(schema)
    return _ORDER.index(form) if form in _ORDER else len(_ORDER)


def _description(declared: Schema, forms: tuple[Schema, ...]) -> str:
    told = (schema for schema in (declared, *forms) if isinstance(schema, dict))
    texts = (str(schema.get("description", "")) for schema in told)
    return " ".join(dict.fromkeys(text for text in texts if text))


def _before_preposition(sentence: str) -> str:
    words = sentence.split()
    for index, word in enumerate(words):
        if index and word.lower().strip(",.;:") in PREPOSITIONS:
            return " ".join(words[:index])
    return sentence


def _stems(text: str) -> frozenset[str]:
    words = (word for part in text.replace("_", " ").split() for word in _clean(part))
    return frozenset(stem(word) for word in words if is_content(word))


def _clean(word: str) -> Iterator[str]:
    bare = word.strip(".,;:!?()[]{}'\"`*“”\u2018\u2019")
    if any(char.isalpha() for char in bare):
        yield bare
