"""Print the n-th fenced `sh` block of README.md, so that CI runs what the README says."""

import re
import sys
from pathlib import Path

FENCED_SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sh_block(markdown: str, number: int) -> str:
    """The commands of the `number`-th `sh` block, counted from 1.

    Raises:
        SystemExit: there are fewer blocks.
    """
    blocks = FENCED_SH.findall(markdown)
    if len(blocks) < number:
        raise SystemExit(f"README.md has {len(blocks)} sh blocks, so there is no block {number}")
    return str(blocks[number - 1])


if __name__ == "__main__":
    readme = Path(__file__).resolve().parent.parent / "README.md"
    print(sh_block(readme.read_text(encoding="utf-8"), int(sys.argv[1])), end="")
