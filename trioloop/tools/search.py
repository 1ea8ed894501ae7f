"""The program behind `search_files`, run by `workspace` as a process of its own.

A regular expression that a model wrote may take for ever, and Python can't interrupt one; a
process can be ended. It uses the standard library alone, starts in about 20 ms, and reads below
the folder whose descriptor it was given, without following links.

Arguments: descriptor, prefix for paths, expression, file pattern, matches at most, names to skip.
Exit codes: 0, or 2 where the expression is wrong; its error is on standard output.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_LINE_BYTES_MAX = 100_000
_SHOWN_CHARACTERS = 300
_SAMPLE_BYTES = 8192


def files_below(folder: int, skipped: set[str]) -> Iterator[tuple[str, str, int]]:
    """Path, name and folder's descriptor of each file, in order."""
    for above, folders, names, at in os.fwalk(".", dir_fd=folder):
        folders[:] = sorted(set(folders) - skipped)
        for name in sorted(names):
            yield os.path.normpath(os.path.join(above, name)), name, at


def matches_in(name: str, folder: int, wanted: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Number and text of each matching line of a text file."""
    with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return
        if b"\0" in file.peek(_SAMPLE_BYTES)[:_SAMPLE_BYTES]:
            return
        number, at_start = 0, True
        while piece := file.readline(_LINE_BYTES_MAX):
            number += at_start
            at_start = piece.endswith(b"\n")
            line = piece.decode("utf-8", "backslashreplace").rstrip("\r\n")
            if found := wanted.search(line):
                yield number, _around(line, found.start())


def _around(line: str, at: int) -> str:
    """A line, or, where it is long, the part of it around a match."""
    if len(line) <= _SHOWN_CHARACTERS:
        return line
    first = max(0, at - _SHOWN_CHARACTERS // 3)
    end = "..." if first + _SHOWN_CHARACTERS < len(line) else ""
    return ("..." if first else "") + line[first : first + _SHOWN_CHARACTERS] + end


def main(arguments: list[str]) -> int:
    """Print `path:line: text` for each match, and give the exit code."""
    folder, prefix, expression, pattern, limit, skip = arguments
    try:
        wanted = re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        print(error)
        return 2
    count = 0
    for path, name, at in files_below(int(folder), set(skip.split("/"))):
        if not (fnmatchcase(name, pattern) or fnmatchcase(path, pattern)):
            continue
        shown = prefix + path if path.isprintable() else ascii(prefix + path)[1:-1]
        try:
            for number, line in matches_in(name, at, wanted):
                print(f"{shown}:{number}: {line}", flush=True)
                count += 1
                if count == int(limit):
                    print(f"[stopped after {limit} matches: search for something narrower]")
                    return 0
        except OSError:  # gone meanwhile, a link, or no permission
            continue
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
