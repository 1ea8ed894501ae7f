"""Standard output and error, where nobody may be reading any more."""

import os
from typing import IO, AnyStr

from rich.console import Console


class PipeConsole(Console):
    """A console that goes on in silence when the other side of its pipe has gone."""

    def on_broken_pipe(self) -> None:
        """Write nothing from now on."""
        self.quiet = True
        silence(self.file)


def console(stream: IO[str]) -> Console:
    """A console on a stream: no markup, no highlighting, and no error for odd characters."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # a model may say what the terminal can't
    return PipeConsole(file=stream, highlight=False, emoji=False, markup=False)


def silence(stream: object) -> None:
    """Let what is written to a stream from now on go nowhere; what it still holds, too."""
    descriptor = getattr(stream, "fileno", None)
    if descriptor is not None:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), descriptor())


def write(stream: IO[AnyStr], text: AnyStr) -> None:
    """Write and flush, whether or not anybody reads."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        silence(stream)
