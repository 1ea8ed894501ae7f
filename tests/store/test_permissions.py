"""Files and folders that another user may not write, or not even read."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from trioloop.ids import SessionId
from trioloop.ports import Append, Owner, StoredRow
from trioloop.store import SqliteStore

MakeRows = Callable[..., tuple[StoredRow, ...]]
AppendOf = Callable[..., Append]


@pytest.fixture
def path() -> Iterator[Path]:
    """Where a store may be that other users can reach; pytest's own folders are closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder) / "agents.db"


async def test_a_path_without_permission_is_named(
    path: Path, name: SessionId, owner: Owner
) -> None:
    store = SqliteStore(path)
    await store.open(name, owner, create=True)
    await store.aclose()
    os.chmod(path, 0)
    program = (
        "import os, sys, urllib.parse\n"  # all of Python, while it may be read
        "from trioloop.errors import StoreUnreadableError\n"
        "from trioloop.store import read_session\n"
        "if os.geteuid() == 0:\n"
        "    os.setuid(65534)\n"
        "try:\n"
        "    read_session(sys.argv[1], 'paris')\n"
        "except StoreUnreadableError as error:\n"
        "    print(error)\n"
    )
    said = await trio.run_process(
        [sys.executable, "-c", program, str(path)], capture_stdout=True, check=True
    )
    assert "may not be read" in said.stdout.decode()
    os.chmod(path, 0o600)


@pytest.mark.parametrize("crashed", [False, True])
async def test_a_file_that_cannot_be_written_is_read(
    path: Path, owner: Owner, make_rows: MakeRows, append_of: AppendOf, crashed: bool
) -> None:
    rows = make_rows(20)
    store = SqliteStore(path)
    lease = await store.open(SessionId("paris"), owner, create=True)
    await store.commit([append_of(lease, rows)])
    locked = path.parent / "locked"
    locked.mkdir()
    if not crashed:
        await store.aclose()
    for suffix in ("", "-wal") if crashed else ("",):
        copy = locked / f"agents.db{suffix}"
        copy.write_bytes(path.with_name(f"agents.db{suffix}").read_bytes())
        copy.chmod(0o444)
    locked.chmod(0o555)
    program = (
        "import os, sys, urllib.parse\n"  # all of Python, while it may be read
        "from trioloop.store import read_rows\n"
        "if os.geteuid() == 0:\n"
        "    os.setuid(65534)\n"
        "print(len(read_rows(sys.argv[1], 'paris')))\n"
    )
    said = await trio.run_process(
        [sys.executable, "-c", program, str(locked / "agents.db")], capture_stdout=True
    )
    assert said.stdout == b"20\n"
    assert len(os.listdir(locked)) == (2 if crashed else 1)
    locked.chmod(0o755)
    await store.aclose()
