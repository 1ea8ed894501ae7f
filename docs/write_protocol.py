"""Writes the page on the wire protocol, and its JSON Schema, from the method table.

    python -m docs.write_protocol

A test compares both with what they would be now.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import docstring_parser
import msgspec
from docstring_parser import DocstringStyle

from trioloop.control.faults import CODES
from trioloop.control.protocol import ANNOUNCEMENTS, CLOSE_CODES, METHODS, PROTOCOL, Method

PAGE = Path(__file__).parent / "wire-protocol.md"
SCHEMA = Path(__file__).parent / "assets" / "wire-protocol.schema.json"

OPENING = f"""\
# The wire protocol

This is version {PROTOCOL}: JSON-RPC 2.0 over WebSocket, text frames, one object in each. The tables
are written from the code, and so is the
[JSON Schema](assets/wire-protocol.schema.json) of every request, result and notification.

`trioloop serve` prints an address like `http://127.0.0.1:8765/#TOKEN`. Programs connect to
`ws://127.0.0.1:8765/control` with `Authorization: Bearer TOKEN`. A page shows its token in the
first message instead, within five seconds; its origin must be one that the endpoint knows.

- A command that is sent twice acts once. For `agent/send`, `agents/create`, `agents/fork` and
  `approval/answer` the id is in the log, so that is so after a restart, too. The others that need
  it remember requests whose `id` is text; numbers count the requests of one connection.
- `session/subscribe` gives each durable event after a cursor exactly once, in order, then those to
  come. Cut the connection after any frame and subscribe again `after` the last seq: put together,
  what was read is the log. `opened` guards against another session of the same name.
- Live facts (`live: true`) are merged for a reader that lags; events never are.
- An error has a stable `data.code`. It never echoes a value; `data.reference` finds the line in the
  server's log.

## Held to the standard

The endpoint's connection code passes all 301 cases of groups 1 to 10 of Autobahn's fuzzing client:
framing, pings, reserved bits, opcodes, fragments, UTF-8, closing, large messages, fragmentation.
Up to ten of them come out as "non-strict", which the standard allows: a good message and a broken
frame in one packet may close the connection before the message is answered. Three are
"informational", about what the standard leaves open. Compression (groups 12 and 13) isn't offered.
To see it again:

```sh
pip install kosoku          # runs Autobahn's case files without Python 2
python -m tests.control.programs.echo        # prints its port
kosoku 127.0.0.1:PORT --exclude '12.*' --exclude '13.*'
```
"""


def _fields(cls: type) -> Iterator[tuple[str, bool, str]]:
    """The fields of a class: name, whether it may be left out, meaning."""
    meanings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        parsed = docstring_parser.parse(base.__doc__ or "", style=DocstringStyle.GOOGLE)
        meanings |= {one.arg_name: one.description or "" for one in parsed.params}
    for field in msgspec.structs.fields(cls):
        yield field.name, not field.required, " ".join(meanings[field.name].split())


def _list(cls: type, empty: str) -> str:
    rows = [
        f"- `{name}`{' (may be left out)' if optional else ''}: {meaning}\n"
        for name, optional, meaning in _fields(cls)
    ]
    return "".join(rows) or f"{empty}\n"


def _method(method: Method) -> str:
    return (
        f"### {method.name}\n\n{method.says} Needs the scope `{method.scope}`.\n\n"
        f"{_list(method.takes, 'Takes nothing.')}\n"
        f"Gives:\n\n{_list(method.gives, 'Nothing.')}\n"
    )


def page() -> str:
    """The page, as Markdown."""
    methods = "".join(
        f"| [`{one.name}`](#{one.name.replace('/', '')}) | {one.scope} | {one.repeats} | "
        f"{one.says} |\n"
        for one in METHODS.values()
    )
    told = "".join(
        f"### {one.name}\n\n{one.says}\n\n{_list(one.gives, '')}\n"
        for one in ANNOUNCEMENTS.values()
    )
    codes = "".join(f"| `{name}` | {one.number} | {one.message} |\n" for name, one in CODES.items())
    closing = "".join(f"| {code} | {why} |\n" for code, why in CLOSE_CODES.items())
    return (
        f"{OPENING}\n## Methods\n\n| method | scope | may come twice | does |\n"
        f"| --- | --- | --- | --- |\n{methods}\n"
        f"{''.join(map(_method, METHODS.values()))}"
        f"## Notifications\n\n{told}"
        f"## Errors\n\n| `data.code` | number | message |\n| --- | --- | --- |\n{codes}\n"
        f"## Close codes\n\n| code | why |\n| --- | --- |\n{closing}"
    )


def schema() -> str:
    """The JSON Schema: a definition of each class, and which belong to which name."""
    takes = [one.takes for one in METHODS.values()]
    gives = [one.gives for one in METHODS.values()]
    told = [one.gives for one in ANNOUNCEMENTS.values()]
    classes: list[type] = list(dict.fromkeys([*takes, *gives, *told]))
    refs, definitions = msgspec.json.schema_components(classes, ref_template="#/$defs/{name}")
    found = dict(zip(classes, refs, strict=True))
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"trioloop's wire protocol, version {PROTOCOL}",
        "methods": {
            name: {"params": found[one.takes], "result": found[one.gives]}
            for name, one in METHODS.items()
        },
        "notifications": {name: found[one.gives] for name, one in ANNOUNCEMENTS.items()},
        "$defs": definitions,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    SCHEMA.write_text(schema(), encoding="utf-8")
    print(f"wrote {PAGE} and {SCHEMA}")
