"""A tool that changes something, a session in a file, and going on with it later.

`write_file` isn't read-only, so it runs alone (two writes of one answer never race), and it starts
only when its call is on the disk: after a crash the log says which writes may have happened. The
second half opens the session again, as another process would, and goes on.

    python examples/write_files.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import trio

import trioloop
from trioloop.models import DemonstrationModel


def file_tools(folder: Path) -> list[trioloop.Tool]:
    """Tools that write and read the files of a folder."""

    def inside(name: str) -> Path:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise trioloop.ToolError(f"{name!r} lies outside of the folder")
        return path

    @trioloop.tool(effects="once")
    def write_file(name: str, text: str) -> str:
        """Write a text to a file.

        Args:
            name: the file's name, such as notes.txt.
            text: what it will hold; what it held before is lost.
        """
        inside(name).write_text(text, encoding="utf-8")
        return f"{len(text)} characters written"

    @trioloop.tool(effects="read-only")
    def read_file(name: str) -> str:
        """Read a file.

        Args:
            name: the file's name.
        """
        try:
            return inside(name).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise trioloop.ToolError(f"there is no file {name!r}") from None

    return [write_file, read_file]


async def main(folder: Path) -> None:
    """Write in one session, then go on with it."""
    store = folder / "agents.db"
    async with trioloop.open_runtime(
        model=DemonstrationModel(), tools=file_tools(folder), store=store
    ) as runtime:
        agent = await runtime.create_agent("notes")
        settled = await agent.ask("Write 'buy tea' to todo.txt and write 'call Ada' to calls.txt.")
        print(settled.text)

    async with trioloop.open_runtime(
        model=DemonstrationModel(), tools=file_tools(folder), store=store
    ) as runtime:
        agent = await runtime.resume_agent("notes")
        settled = await agent.ask("Read todo.txt.")
        print(settled.text)

    events = trioloop.read_session(store, "notes")
    trioloop.check(events)
    print(f"{len(events)} events in {store}, and they are a valid log")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        chosen = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        trio.run(main, chosen)
