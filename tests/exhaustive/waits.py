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
    """One wait for a value that is there already, as a channel hands it over."""
    send, receive = trio.open_memory_channel[None](1)
    with send, receive:
        send.send_nowait(None)
        await receive.receive()
