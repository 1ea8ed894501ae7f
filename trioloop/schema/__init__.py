"""Python signature to JSON Schema and argument decoder. Pure: no I/O, no await.

`signature` reads a function's parameters, `docstring` their descriptions, `document` makes the JSON
Schema that a model is shown, `text` reads the JSON that a model wrote, `check` finds every fault
in it, and `arguments` joins them into the decoder of one tool.
"""

from trioloop.schema.arguments import Arguments
from trioloop.schema.signature import Signature, describe
from trioloop.schema.text import parse_object

__all__ = ["Arguments", "Signature", "describe", "parse_object"]
