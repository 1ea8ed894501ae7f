"""Tells llmock what to break, and asks what it thinks of its client."""

import json
import urllib.request
from typing import Any

import attrs


@attrs.frozen
class LlmockServer:
    """A running llmock.

    Attributes:
        url: where it is.
    """

    url: str

    def base_url(self, api: str) -> str:
        """The address of one of its APIs, as an adapter is given it."""
        return f"{self.url}/anthropic" if api == "messages" else f"{self.url}/v1"

    def reset(self) -> None:
        """Forget requests, and what is still to be broken."""
        self._ask("/_llmock/reset", {})

    def script(self, *behaviours: dict[str, Any]) -> None:
        """Break the next requests so."""
        self._ask("/_llmock/scenario", {"behaviors": behaviours})

    def requests(self) -> list[dict[str, Any]]:
        """The requests that it served."""
        found: list[dict[str, Any]] = self._ask("/_llmock/requests")["requests"]
        return found

    def _ask(self, path: str, body: object = None) -> Any:  # Any: JSON of its answers
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.url + path, data, timeout=30) as reply:
            return json.load(reply)
