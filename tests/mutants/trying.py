"""Tries mutants: a copy of the checkout, one fault at a time in it, and the tests that must notice.

The copy has the checkout's files. The tests of each mutant run in a process of their own, forked
from one that has imported pytest and whatever else is expensive, but nothing of ours. One that
takes longer than its limit is ended with all its processes, and counts as a fault noticed: that is
how most faults of a scheduler show.
"""

import compileall
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from py_compile import PycInvalidationMode

import attrs
import docstring_parser  # noqa: F401 - imported here so that no forked process has to
import httpx  # noqa: F401 - likewise
import msgspec  # noqa: F401 - likewise
import pytest
import pytest_trio  # type: ignore[import-untyped]  # noqa: F401 - likewise
import trio  # noqa: F401 - likewise
from hypothesis import Phase, is_hypothesis_test, settings

from tests.mutants.mutant import ROOT, Mutant

TIME_LIMIT_S = 180
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*cache", ".hypothesis", "node_modules", "site"
)
SURVIVED = "SURVIVED"
BROKEN = "BROKEN"

_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/[^:\s]+::\w+)", re.MULTILINE)
_BEGUN = re.compile(r"^(tests/[^:\s]+::\w+)", re.MULTILINE)
_OPTIONS = (
    "-x",
    "-v",
    "-rfE",
    "--tb=line",
    "--no-header",
    "--assert=plain",
    "-p",
    "no:cacheprovider",
)


@attrs.frozen
class Tried:
    """What came of a mutant.

    Attributes:
        mutant: what was tried.
        caught_by: the test that failed, `hang in` a test, SURVIVED, or BROKEN where its tests
            couldn't even be collected.
        output: what pytest printed.
    """

    mutant: Mutant
    caught_by: str
    output: str

    @property
    def caught(self) -> bool:
        """Whether a test noticed."""
        return self.caught_by not in (SURVIVED, BROKEN)


@contextmanager
def copied_checkout() -> Iterator[Path]:
    """A copy of the checkout in a temporary directory, compiled but for what changes in it."""
    with tempfile.TemporaryDirectory(prefix="trioloop-mutants-") as folder:
        copy = Path(folder).resolve()
        shutil.copytree(ROOT, copy, dirs_exist_ok=True, ignore=_LEFT_OUT)
        for room in ("trioloop", "tests"):
            # By hash: a mutant is written within the second, and may be as long as what was there.
            compileall.compile_dir(
                copy / room, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH
            )
        yield copy


def tried(mutant: Mutant, copy: Path) -> Tried:
    """Run the tests of a mutant with the mutant in place; the copy is as before afterwards.

    Raises:
        ValueError: its text isn't in its file once.
    """
    file = copy / mutant.file
    source = file.read_text(encoding="utf-8")
    file.write_text(mutant.applied(source), encoding="utf-8")
    try:
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            code = _run_tests(mutant, copy, output.fileno())
            output.seek(0)
            return _judged(mutant, code, output.read())
    finally:
        file.write_text(source, encoding="utf-8")


def _run_tests(mutant: Mutant, copy: Path, output: int) -> int:
    """The exit code of pytest in a process of its own; negative: the signal that ended it."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 70  # what happens before pytest begins
        try:
            code = _in_the_child(mutant, copy, output)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what its tests may have left running
    return os.waitstatus_to_exitcode(status)


def _in_the_child(mutant: Mutant, copy: Path, output: int) -> int:
    os.setsid()
    signal.alarm(TIME_LIMIT_S)  # nobody handles it, so it ends the process
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.chdir(copy)
    os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    sys.path[:] = [str(copy), *(path for path in sys.path if Path(path).resolve() != ROOT)]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "trioloop")]:
        del sys.modules[name]
    return int(pytest.main([*_OPTIONS, *mutant.tests], plugins=[_Hasty()]))


class _Hasty:
    """Lets properties come last and look for a failure, the same each time, not the smallest."""

    def pytest_configure(self) -> None:
        settings.register_profile(
            "hasty",
            settings.get_profile("trioloop"),
            max_examples=40,
            phases=[Phase.explicit, Phase.generate],
            database=None,
            derandomize=True,
        )
        settings.load_profile("hasty")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: is_hypothesis_test(getattr(item, "obj", None)))


def _judged(mutant: Mutant, code: int, output: str) -> Tried:
    failed = _FAILED.search(output)
    begun = _BEGUN.findall(output)
    if code == 0:
        caught_by = SURVIVED
    elif code == -signal.SIGALRM and begun:
        caught_by = f"hang in {begun[-1]}"
    elif code == pytest.ExitCode.TESTS_FAILED and failed is not None:
        caught_by = failed[1]
    else:
        caught_by = BROKEN
    return Tried(mutant, caught_by, output)
