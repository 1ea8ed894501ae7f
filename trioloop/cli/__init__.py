"""The command line. Needs the extra `cli`; without it, one line says how to get it."""

import sys

_EXTRA = ("click", "rich")


def main() -> None:
    """Run `trioloop`, as the console script and `python -m trioloop` do. Doesn't return."""
    try:
        from trioloop.cli.entry import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        print("trioloop: the command line needs: pip install 'trioloop[cli]'", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run(sys.argv[1:]))
