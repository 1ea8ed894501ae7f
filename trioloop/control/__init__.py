"""The control endpoint: agents watched and steered from elsewhere. Needs the extra `control`."""

from trioloop.control.client import Control, connect
from trioloop.control.faults import WireError
from trioloop.control.limits import ControlLimits
from trioloop.control.server import Endpoint, serve
from trioloop.control.tokens import Tokens

__all__ = ["Control", "ControlLimits", "Endpoint", "Tokens", "WireError", "connect", "serve"]
