"""A served, scripted runtime in a process of its own, and a browser that looks at its console."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "t" * 43
PATIENCE_MS = 60_000


def free_port() -> int:
    """A port that nobody uses just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@attrs.define(eq=False)
class ServedProcess:
    """`tests.control.programs.scripted`, which may be killed and started again on its port."""

    store: Path
    port: int = attrs.field(factory=free_port)
    process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Where it is, with the token."""
        return f"http://127.0.0.1:{self.port}/#{TOKEN}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = (
            *(sys.executable, "-m", "tests.control.programs.scripted"),
            *(str(self.port), str(self.store), TOKEN),
        )
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("http")

    def open(self, *gates: str) -> None:
        """Let what waits behind these gates go on."""
        for gate in gates:
            (self.store.parent / gate).touch()

    def kill(self) -> None:
        """Kill it without a word."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.communicate()
            self.process = None


@contextmanager
def served_process(folder: Path) -> Iterator[ServedProcess]:
    """One that is killed in the end."""
    served = ServedProcess(folder / "agents.db")
    served.start()
    try:
        yield served
    finally:
        served.kill()


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, driven by Playwright; skips the test where one of them is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing")
    found = next((path for path in map(Path, _CHROMIUMS) if path.is_file()), None)
    if found is None:
        pytest.skip("no chromium is installed here")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=str(found), args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


_CHROMIUMS = (
    os.environ.get("TRIOLOOP_CHROMIUM", ""),
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
)


class Console:
    """The console in one page of a browser, by what a person sees and does."""

    def __init__(self, browser: Any, url: str, *, width: int = 1280, dark: bool = False) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._heard)
        self.page.goto(url)

    def _heard(self, message: Any) -> None:
        if message.type == "error" and "WebSocket" not in message.text:
            self.faults.append(message.text)

    def create(self, name: str) -> None:
        """Name a new agent."""
        self.page.get_by_label("Name of a new agent").fill(name)
        self.page.get_by_label("Create the agent").click()
        self.page.get_by_role("heading", name=name).wait_for()

    def send(self, words: str) -> None:
        """Type and press Enter."""
        box = self.page.get_by_label("Message", exact=True)
        box.fill(words)
        box.press("Enter")

    def see(self, selector: str, *, text: str | None = None, nth: int = 0) -> Any:
        """Wait until something is seen."""
        found = self.page.locator(selector)
        if text is not None:
            found = found.filter(has_text=text)
        found.nth(nth).wait_for()
        return found.nth(nth)

    def press(self, name: str) -> None:
        """Press a button."""
        self.page.get_by_role("button", name=name, exact=True).click()

    def turns(self) -> list[str]:
        """The text of each turn, times left out."""
        shown = self.page.locator(".turn").all()
        return ["\n".join(one.locator(".bubble, .prose").all_inner_texts()) for one in shown]
