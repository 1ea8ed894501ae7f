"""What a mutant is: one place of the package, changed so that one rule no longer holds."""

import zlib
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]


@attrs.frozen
class Mutant:
    """A fault that somebody might make.

    Attributes:
        name: what is wrong with it, in words; no two have the same.
        rule: the contract rule that it breaks.
        file: where, from the root of the repository.
        old: a text that stands there once.
        new: what stands in its place.
        tests: files or node ids of tests of which one must fail, the likeliest first.
    """

    name: str
    rule: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, source: str) -> str:
        """The source of its file with the fault in it.

        Raises:
            ValueError: the text to change isn't there, or more than once.
        """
        found = source.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name!r}: {self.old!r} stands {found} times in {self.file}")
        return source.replace(self.old, self.new)

    @property
    def digest(self) -> str:
        """What it changes, in short: by this a run that was written down is known to be of it."""
        changed = "\0".join((self.file, self.old, self.new))
        return f"{zlib.crc32(changed.encode()):08x}"
