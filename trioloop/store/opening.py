"""Somebody who opens a session, and the answer to come: many of them share one transaction."""

import attrs

from trioloop.ids import SessionId
from trioloop.ports import Lease, Owner


@attrs.define(eq=False)
class Opening:
    """The wish to write a session.

    Attributes:
        session: its name.
        owner: who wants to.
        create: make it, rather than take up what is there.
        lease: the right, once it is given; it holds when the transaction is through.
        error: why it isn't given.
    """

    session: SessionId
    owner: Owner
    create: bool
    lease: Lease | None = None
    error: Exception | None = None

    def grant(self, lease: Lease) -> None:
        """Give the right to write, for when the transaction is through."""
        self.lease = lease

    def refuse(self, error: Exception) -> None:
        """Answer with an error."""
        self.lease, self.error = None, error

    def result(self) -> Lease:
        """The lease.

        Raises:
            TrioloopError: why there is none.
        """
        if self.error is not None:
            raise self.error
        assert self.lease is not None  # it was answered
        return self.lease
