"""`python -m trioloop` is `trioloop`."""

from trioloop.cli import main

if __name__ == "__main__":
    main()
