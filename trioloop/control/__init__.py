"""The control endpoint: agents watched and steered from elsewhere. Needs the extra `control`."""

try:
    from trioloop.control.client import Control, connect
    from trioloop.control.faults import WireError
    from trioloop.control.limits import ControlLimits
    from trioloop.control.server import Endpoint, serve
    from trioloop.control.tokens import Tokens
except ModuleNotFoundError as error:
    if error.name not in ("h11", "trio_websocket"):
        raise
    raise ModuleNotFoundError(
        "the control endpoint needs: pip install 'trioloop[control]'", name=error.name
    ) from None

__all__ = ["Control", "ControlLimits", "Endpoint", "Tokens", "WireError", "connect", "serve"]
