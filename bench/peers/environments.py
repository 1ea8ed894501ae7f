"""Makes the peers' environments: `python -m bench.peers.environments [NAME ...]`.

Each is a virtual environment with one peer in it, below `bench/peers/.environments` or where the
variable `TRIOLOOP_BENCH_PEERS` says. Packages come from PyPI, at their newest version.
"""

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

PACKAGES = {
    "anyio": ("anyio",),
    "langgraph": ("langgraph", "anyio"),
    "openai-agents": ("openai-agents", "anyio"),
    "pydantic-ai": ("pydantic-ai-slim", "anyio"),
}


def folder() -> Path:
    """Where the environments are."""
    default = Path(__file__).with_name(".environments")
    return Path(os.environ.get("TRIOLOOP_BENCH_PEERS", default))


def python_of(peer: str) -> Path:
    """The Python of a peer's environment, whether or not it was made."""
    return folder() / peer / "bin" / "python"


def versions_of(peer: str) -> str:
    """The peer's package and version, as its environment has it."""
    package = PACKAGES[peer][0]
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([python_of(peer), "-c", code], capture_output=True, text=True, check=True)
    return f"{package} {done.stdout.strip()}"


def make(peer: str) -> None:
    """Make one environment anew.

    Raises:
        CalledProcessError: pip could not install its packages.
    """
    venv.create(folder() / peer, clear=True, with_pip=True)
    subprocess.run(
        [python_of(peer), "-m", "pip", "install", "--quiet", *PACKAGES[peer]], check=True
    )


def main() -> None:
    """Read the command line, and make what it names."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.environments", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"of {', '.join(PACKAGES)}; left out: all")
    for peer in parser.parse_args().name or PACKAGES:
        if peer not in PACKAGES:
            sys.exit(f"no peer is called {peer!r}: {', '.join(PACKAGES)}")
        make(peer)
        print(versions_of(peer), "in", folder() / peer)


if __name__ == "__main__":
    main()
