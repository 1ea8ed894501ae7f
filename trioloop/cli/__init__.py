"""The command line. Needs the extra `cli`; without it, one line says how to get it."""

import signal
import sys

_EXTRA = ("click", "rich")
_INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Run `trioloop`, as the console script and `python -m trioloop` do. Doesn't return."""
    try:
        from trioloop.cli.entry import run

        code = run(sys.argv[1:])
        # Only the interpreter is left to end: a Ctrl-C more must not change how we ended.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        print("trioloop: the command line needs: pip install 'trioloop[cli]'", file=sys.stderr)
        code = 1
    except KeyboardInterrupt:  # before the first line of `run`, or behind its last
        code = _INTERRUPTED
    sys.exit(code)
