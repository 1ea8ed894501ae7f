"""Disks of a trial's own, mounted where nobody else sees them: one is small, one loses power.

A trial that mounts runs in a process with a mount namespace of its own, which takes its mounts
with it when it ends. The small disk is a tmpfs; the other is an ext4 in a file, and its power is
cut by copying that file while the writer stands still: what the writer had synced is in the copy,
and what only the kernel knew isn't.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec

from tests.chaos.judging import NOT_JUDGED, faults_as_it_goes_on, faults_as_it_lies, last_durable
from tests.chaos.running import ROOT, Place, run, start

WHY_NO_TMPFS = "a small disk can't be mounted here"
WHY_NO_LOOP = "a file system in a file can't be mounted here"
SIZES_KIB = range(4, 200, 4)
_IMAGE_MIB = 16


class Found(msgspec.Struct):
    """What a trial in a namespace of its own found."""

    appended: str
    durable: str
    faults: list[str]
    lost: bool = False


@cache
def may_mount() -> bool:
    """Whether a small disk can be mounted."""
    return _works("mount -t tmpfs none /mnt")


@cache
def may_lose_power() -> bool:
    """Whether a file system in a file can be made and mounted."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        return False
    with tempfile.NamedTemporaryFile(suffix=".img") as image:
        image.truncate(_IMAGE_MIB << 20)
        return _works(f"mkfs.ext4 -q {image.name} && mount -o loop {image.name} /mnt")


def _works(script: str) -> bool:
    if shutil.which("unshare") is None:
        return False
    command = [*_namespace(), "sh", "-c", script]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _namespace() -> list[str]:
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


def in_a_namespace(kind: str, at: str, folder: Path) -> Found:
    """Run a trial of this module in a namespace of its own."""
    command = [
        *_namespace(),
        sys.executable,
        "-B",
        "-m",
        "tests.chaos.disks",
        kind,
        at,
        str(folder),
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return msgspec.json.decode(done.stdout, type=Found)


def full_disk(folder: Path, size_kib: str) -> Found:
    """Run on a disk that is too small: what is wrong while it is full, and once there is room."""
    disk = folder / "disk"
    disk.mkdir()
    _do("mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "none", disk)
    place = Place(folder, disk)
    told = run(place)
    faults = faults_as_it_lies(place, [told])
    durable = last_durable(place) if not faults else NOT_JUDGED
    _do("mount", "-o", "remount,size=64m", disk)
    return Found(told.last_appended, durable, faults or faults_as_it_goes_on(place))


def power_loss(folder: Path, at: str, *, unsynced: bool = False) -> Found:
    """Cut the power at a fact: what is wrong with what the disk holds then."""
    image, copy = folder / "disk.img", folder / "copy.img"
    before, after = folder / "before", folder / "after"
    before.mkdir()
    after.mkdir()
    _do("truncate", "-s", f"{_IMAGE_MIB}M", image)
    _do("mkfs.ext4", "-q", image)
    _do("mount", "-o", "loop", image, before)
    extra = {"CHAOS_SIGNAL": "SIGSTOP"} | ({"CHAOS_UNSYNCED": "1"} if unsynced else {})
    child = start(Place(folder, before), at=at, extra=extra)
    child.wait_for(at)
    _do("cp", "--sparse=always", image, copy)
    child.kill()
    told = child.end()
    _do("umount", before)
    _do("mount", "-o", "loop", copy, after)
    place = Place(folder, after)
    lost = faults_as_it_lies(place, [told])
    durable = last_durable(place) if not lost else NOT_JUDGED
    faults = lost or faults_as_it_goes_on(place)
    _do("umount", after)
    return Found(told.last_appended, durable, faults, bool(lost))


def _do(*command: object) -> None:
    subprocess.run([*map(str, command)], check=True, capture_output=True)


KINDS: dict[str, Callable[[Path, str], Found]] = {
    "full-disk": full_disk,
    "power-loss": power_loss,
    "power-loss-unsynced": lambda folder, at: power_loss(folder, at, unsynced=True),
}
"""Each kind by its name."""

if __name__ == "__main__":
    kind, at, folder = sys.argv[1:]
    sys.stdout.buffer.write(msgspec.json.encode(KINDS[kind](Path(folder), at)))
