"""CI says which tests were skipped, and refuses a skip that nobody allowed."""

import subprocess
import sys
from pathlib import Path

import pytest

CI = Path(__file__).resolve().parent.parent / ".ci"
ALONE = ("--disable-plugin-autoload",)
BESIDE_EACH_OTHER = (*ALONE, "-p", "xdist", "-n", "2", "--dist=loadfile")
SUITE_WITH_SKIPS = """
import pytest

@pytest.mark.skip(reason="no such server here")
@pytest.mark.parametrize("port", [1, 2])
def test_server(port):
    pass
"""
SUITE_WITH_A_FAULT = """
import pytest

@pytest.mark.xfail(reason="not yet")
def test_expected_to_fail():
    assert False
"""
SUITE_THAT_DIES = """
import os

def test_that_ends_its_process():
    os._exit(0)
"""


def _run(folder: Path, how: tuple[str, ...], **files: str) -> subprocess.CompletedProcess[str]:
    """Run files of tests as CI runs the suite."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", *how, "-rsx", "--no-fold-skipped"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", params=[ALONE, BESIDE_EACH_OTHER], ids=["one", "two workers"])
def output(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pytest prints of a suite with skips in two files, one for each worker."""
    folder = tmp_path_factory.mktemp("suite")
    run = _run(folder, request.param, test_suite=SUITE_WITH_SKIPS, test_other=SUITE_WITH_A_FAULT)
    log = folder / "tests.log"
    log.write_text(run.stdout)
    return log


def _judge(output: Path, *allowed: str) -> subprocess.CompletedProcess[str]:
    allowed_file = output.with_name("allowed_skips.txt")
    allowed_file.write_text("# a comment\n\n" + "\n".join(allowed))
    command = [sys.executable, str(CI / "skips.py"), str(output), str(allowed_file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_skip_that_nobody_allowed_fails_and_is_named(output: Path) -> None:
    judged = _judge(output, "test_suite.py::test_server* - no such server here")
    assert judged.returncode == 1
    assert "NOT ALLOWED: test_other.py::test_expected_to_fail - not yet" in judged.stdout


def test_allowed_skips_pass_and_are_named(output: Path) -> None:
    judged = _judge(output, "*::test_server* - no such server*", "test_other.py::test_e* - not yet")
    assert judged.returncode == 0
    assert "test_suite.py::test_server[1] - no such server here" in judged.stdout
    assert "tests that were skipped: 3" in judged.stdout


def test_a_skip_for_another_reason_is_not_allowed(output: Path) -> None:
    judged = _judge(output, "*::test_server* - the moon is full", "*::test_e* - not yet")
    assert judged.returncode == 1


def test_a_worker_that_dies_fails_the_run(tmp_path: Path) -> None:
    run = _run(tmp_path, BESIDE_EACH_OTHER, test_dies=SUITE_THAT_DIES, test_suite=SUITE_WITH_SKIPS)
    assert run.returncode == 1
    assert "crashed while running 'test_dies.py::test_that_ends_its_process'" in run.stdout


def test_readme_has_the_two_blocks_that_ci_runs() -> None:
    for number, expected in ((1, "trioloop run"), (2, "pytest")):
        command = [sys.executable, str(CI / "readme_block.py"), str(number)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert expected in run.stdout
