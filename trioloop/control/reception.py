"""Reads the head of a request with h11, bounded in size; time is up to the caller."""

import h11
import trio

from trioloop.control.door import Head

_READ_BYTES = 4_096


class UnreadableHead(Exception):  # noqa: N818 - an answer rather than an error
    """The bytes are no head of a request. `status` is what to answer; None: nobody is there."""

    def __init__(self, status: int | None) -> None:
        super().__init__(status)
        self.status = status


async def receive_head(stream: trio.abc.Stream, bytes_max: int) -> tuple[Head, bytes]:
    """Read a head. A checkpoint.

    Args:
        stream: where it comes from.
        bytes_max: of the head.

    Returns:
        The head, and the bytes that came behind it.

    Raises:
        UnreadableHead: it is none, or too large, or the peer is gone.
    """
    reader = h11.Connection(h11.SERVER, max_incomplete_event_size=bytes_max)
    seen = bytearray()
    while True:
        try:
            event = reader.next_event()
        except h11.RemoteProtocolError as error:
            raise UnreadableHead(_status(error)) from None
        if isinstance(event, h11.Request):
            # A head that came in one piece is parsed whatever its size.
            if seen.find(b"\r\n\r\n") > bytes_max:
                raise UnreadableHead(431)
            return _head(event), reader.trailing_data[0]
        if event is not h11.NEED_DATA:
            raise UnreadableHead(400)
        data = await _received(stream)
        seen += data
        reader.receive_data(data)


async def _received(stream: trio.abc.Stream) -> bytes:
    try:
        data = await stream.receive_some(_READ_BYTES)
    except trio.BrokenResourceError:
        raise UnreadableHead(None) from None
    if not data:
        raise UnreadableHead(None)
    return bytes(data)


def _head(request: h11.Request) -> Head:
    return Head(
        method=bytes(request.method),
        target=bytes(request.target),
        version=bytes(request.http_version),
        headers=tuple((bytes(name), bytes(value)) for name, value in request.headers),
    )


def _status(error: h11.RemoteProtocolError) -> int:
    """What to answer; h11 calls a missing or doubled Host a bad request, which is a wrong address.

    It says so only of a head that is whole and otherwise good.
    """
    if "Host" in str(error):
        return 421
    return error.error_status_hint if error.error_status_hint in (400, 431) else 400
