"""The page on the wire protocol and its schema are written from today's method table."""

import json

import jsonschema
import pytest

from docs import write_protocol
from trioloop.control.protocol import METHODS


def test_page_is_written_from_the_method_table() -> None:
    stale = "the page is stale: run `python -m docs.write_protocol`"
    assert write_protocol.PAGE.read_text(encoding="utf-8") == write_protocol.page(), stale


def test_schema_is_written_from_the_method_table() -> None:
    stale = "the schema is stale: run `python -m docs.write_protocol`"
    assert write_protocol.SCHEMA.read_text(encoding="utf-8") == write_protocol.schema(), stale


def test_schema_says_what_the_decoder_takes() -> None:
    schema = json.loads(write_protocol.schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    send = {"$defs": schema["$defs"], **schema["methods"]["agent/send"]["params"]}
    good = {"agent": "a", "message": {"id": "m", "content": "hello"}, "preset": "steer"}
    jsonschema.validate(good, send)
    for bad in ({}, {**good, "preset": "shout"}, {**good, "scopes": []}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, send)
    assert set(schema["methods"]) == set(METHODS)
