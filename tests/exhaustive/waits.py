"""The two waits that everything scripted passes wherever it waits."""

import trio


async def pass_waits() -> None:
    """Pass two waits; the last hands over a value, so that a cancel can come too late for it.

    Out of a sleep Trio raises by itself. A task that was handed what it waits for goes on, even
    where it is cancelled before it does: only the driver's own last look notices (R8).
    """
    await trio.lowlevel.checkpoint()
    await handed_over()


async def handed_over() -> None:
    """One wait for a value that is there already: what a channel's `receive` then does."""
    await trio.lowlevel.checkpoint_if_cancelled()
    await trio.lowlevel.cancel_shielded_checkpoint()
