"""Bad input of any kind: one clear line on standard error, a code that isn't 0, no traceback."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def refusing_server() -> Iterator[str]:
    """A server that knows no key."""

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = b'{"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}'
            self.send_response(401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files that are no tools, or no stores."""
    (tmp_path / "raises.py").write_text("import os\nos.nothing()\n")
    (tmp_path / "syntax.py").write_text("def f(:\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "odd.py").write_text("tools = [5]\n")
    (tmp_path / "untyped.py").write_text(
        "from trioloop import tool\n@tool\ndef f(*args: int) -> int:\n    return 1\n"
    )
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.db").write_text("no database at all, by any means\n" * 100)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ("run|", 2, "the prompt is empty"),
        ("run| \n ", 2, "the prompt is empty"),
        ("run", 2, "Missing argument 'PROMPT'"),
        ("nonsense", 2, "No such command"),
        ("run|x|--nonsense", 2, "No such option"),
        ("run|x|--max-tokens|0", 2, "--max-tokens"),
        ("run|x|--tools|missing.py", 1, "missing.py isn't there"),
        ("run|x|--tools|folder", 1, "folder isn't there, or is no file"),
        ("run|x|--tools|text.db", 1, "its name must end in .py"),
        ("run|x|--tools|raises.py", 1, "raises.py line 2: AttributeError"),
        ("run|x|--tools|syntax.py", 1, "syntax.py line 1: invalid syntax"),
        ("run|x|--tools|exits.py", 1, "exits.py line 1: SystemExit"),
        ("run|x|--tools|empty.py", 1, "empty.py has no tools"),
        ("run|x|--tools|odd.py", 1, "odd.py: tools = [...] holds 5"),
        ("run|x|--tools|untyped.py", 1, "untyped.py line 2"),
        ("run|x|--workspace|missing", 1, "--workspace: 'missing'"),
        ("run|x|--session|one", 2, "--session needs --store"),
        ("run|x|--session|../x|--store|a.db", 1, "can't name a session"),
        ("run|x|--session|one|--store|text.db", 1, "text.db"),
        ("run|x|--session|one|--store|missing/a.db", 1, "missing"),
        ("run|x|--model|nonsense", 1, "'nonsense' names no model"),
        ("run|x|--model|openai:m", 1, "needs a key: set OPENAI_API_KEY"),
        ("run|x|--base-url|http://127.0.0.1:9", 2, "--base-url needs --model"),
        ("run|x|--model|m|--base-url|nonsense", 1, "nonsense"),
        ("run|x|--model|m|--base-url|http://127.0.0.1:9/v1", 1, "127.0.0.1:9 can't be reached"),
        ("sessions|missing.db", 1, "missing.db' doesn't exist"),
        ("sessions|text.db", 1, "text.db"),
        ("check|text.db|one", 1, "text.db"),
        ("check|folder", 1, "is a directory"),
    ],
)
def test_it_gives_one_line_and_a_code(
    arguments: str, code: int, told: str, command_here: Any, files: Path
) -> None:
    done = command_here(*arguments.split("|"))
    assert done.code == code
    assert told in done.complaint
    assert done.out == ""


@pytest.mark.parametrize("arguments", ["run|", "run|x|--tools|raises.py", "check|text.db"])
def test_it_does_so_in_a_process_of_its_own(arguments: str, command: Any, files: Path) -> None:
    done = command(*arguments.split("|"))
    assert done.code != 0
    assert done.complaint
    assert done.out == ""


def test_an_unknown_session_is_named(command_here: Any) -> None:
    command_here("run", "What is 2 + 3?", "--store", "a.db", "--session", "one")
    done = command_here("check", "a.db", "two")
    assert done.code == 1
    assert "the store has no session 'two'" in done.complaint


def test_a_key_that_is_wrong_is_told_without_the_key(command: Any, refusing_server: str) -> None:
    done = command(
        *("run", "x", "--model", "openai:m", "--base-url", refusing_server),
        OPENAI_API_KEY="sk-secret-thing",
    )
    assert done.code == 1
    assert "AUTH: " in done.complaint
    assert "sk-secret" not in done.err + done.out


def test_a_key_without_a_usual_model_asks_for_one(command_here: Any) -> None:
    done = command_here("run", "x", GROQ_API_KEY="k")
    assert done.code == 2
    assert "--model groq:MODEL" in done.complaint


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = "import sys; sys.modules['click'] = None; import trioloop.cli; trioloop.cli.main()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "trioloop: the command line needs: pip install 'trioloop[cli]'\n"


def test_without_its_extra_the_endpoint_says_how_to_get_it() -> None:
    import subprocess
    import sys

    program = "import sys; sys.modules['trio_websocket'] = None; import trioloop.control"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert last.endswith("the control endpoint needs: pip install 'trioloop[control]'")
