"""What an append must meet to be written: the same in every store, whatever keeps its rows.

An old owner is fenced by its epoch, a repeated append is recognised by its id, and rows go on
where the session ends, chained to its CRC.
"""

from msgspec import Struct

from trioloop.codec import chain_crc
from trioloop.errors import FencedError, SequenceConflictError, StoreError
from trioloop.ports import Append, CommitAnswer, Committed, Refused


class Head(Struct, frozen=True, gc=False):
    """Where a stored session ends.

    Attributes:
        epoch: that of its last owner.
        next_seq: the seq that it goes on with.
        crc: the chained CRC-32 of its last row; 0 before the first.
        append_id: the append that wrote its last row.
    """

    epoch: int
    next_seq: int = 0
    crc: int = 0
    append_id: str = ""

    def owned(self, epoch: int) -> "Head":
        """The head once its session has another owner."""
        return Head(epoch, self.next_seq, self.crc, self.append_id)

    def after(self, append: Append) -> "Head":
        """The head once an append is written."""
        last = append.rows[-1]
        return Head(self.epoch, last.seq + 1, last.crc, append.append_id)


def answer_without_writing(head: Head, append: Append, *, held: bool) -> CommitAnswer | None:
    """The answer to an append that needs no write; None where its rows are to be written.

    Args:
        head: where its session ends.
        append: what is asked for.
        held: its lease hasn't been given back.
    """
    session = append.lease.session
    if not held or head.epoch != append.lease.epoch:
        return Refused(FencedError(session, head.epoch))
    if append.append_id == head.append_id:
        return Committed(head.next_seq)
    if append.expected_seq != head.next_seq:
        return Refused(SequenceConflictError(session, append.expected_seq, head.next_seq))
    fault = _row_fault(head, append)
    if fault is not None:
        return Refused(StoreError(f"session {session!r} can't take an append: {fault}"))
    return None if append.rows else Committed(head.next_seq)


def _row_fault(head: Head, append: Append) -> str | None:
    crc = head.crc
    for seq, row in enumerate(append.rows, head.next_seq):
        crc = chain_crc(crc, row.payload)
        if row.seq != seq:
            return f"event {seq} was expected, {row.seq} came"
        if row.crc != crc:
            return f"the CRC of event {seq} isn't chained to the one before it"
    return None
