"""What every store promises, as checks that run on anyone's store (`SessionStore` in `ports`).

Each promise is an async function of an empty store. Whatever keeps its rows, a store that keeps
them all can be given to `open_runtime`.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import trio
import trio.testing

from trioloop.codec import chain_crc, encode_event
from trioloop.errors import (
    FencedError,
    SequenceConflictError,
    SessionExistsError,
    SessionLockedError,
    StoreError,
    UnknownSessionError,
)
from trioloop.events import FORMAT, Event, EventData, SessionOpened, TurnStarted
from trioloop.ids import SessionId
from trioloop.ports import (
    Append,
    CommitAnswer,
    Committed,
    Lease,
    Owner,
    Refused,
    SessionStore,
    StoredRow,
)

StorePromise: TypeAlias = Callable[[SessionStore], Awaitable[None]]
_Rows: TypeAlias = tuple[StoredRow, ...]

_OWNER, _OTHER = Owner(1, "here", "conformance"), Owner(2, "there", "conformance")
_PARIS, _ROME, _ATHENS = SessionId("paris"), SessionId("rome"), SessionId("athens")


async def store_conformance(
    open_store: Callable[[], AbstractAsyncContextManager[SessionStore]],
) -> None:
    """Check that a store keeps every promise of `SessionStore`.

    Args:
        open_store: gives an async context manager of an empty store; called for each promise.

    Raises:
        AssertionError: it breaks a promise, whose words are in the message; also where it raises
            an error that it shouldn't.
    """
    for promise in STORE_PROMISES:
        async with open_store() as store:
            await promise(store)


def _promise(check: StorePromise) -> StorePromise:
    """A check whose failure, an unexpected error included, says what was promised."""

    async def promise(store: SessionStore) -> None:
        try:
            await check(store)
        except Exception as error:
            why = str(error) if isinstance(error, AssertionError) else repr(error)
            raise AssertionError(f"{store!r} breaks a promise. {check.__doc__} {why}") from error

    promise.__name__ = promise.__qualname__ = check.__name__
    promise.__doc__ = check.__doc__
    STORE_PROMISES.append(promise)
    return promise


STORE_PROMISES: list[StorePromise] = []
"""All promises, each a function of an empty store, to be run one by one."""


# Rows and answers


def _rows(count: int, *, session: str = "paris", after: _Rows = ()) -> _Rows:
    """Some rows as a runtime writes them, going on behind others."""
    crc = after[-1].crc if after else 0
    rows = []
    for seq in range(len(after), len(after) + count):
        opened = SessionOpened(format=FORMAT, session=session, created=0)
        data: EventData = TurnStarted(seq) if seq else opened
        payload = encode_event(Event(seq, 1_000 + seq, data))
        crc = chain_crc(crc, payload)
        rows.append(StoredRow(seq, payload, crc))
    return tuple(rows)


def _append(lease: Lease, rows: _Rows, append_id: str = "") -> Append:
    first = rows[0].seq
    return Append(lease, first, append_id or f"{lease.epoch}.{first}", rows)


def _equal(found: object, expected: object) -> None:
    assert found == expected, f"Found {found!r}, not {expected!r}."


async def _refusal(store: SessionStore, append: Append, kind: type[Exception]) -> Exception:
    answers = await store.commit([append])
    return _refused(answers[0], kind)


def _refused(answer: CommitAnswer, kind: type[Exception]) -> Exception:
    assert isinstance(answer, Refused), f"It was answered {answer!r}, not refused."
    assert isinstance(answer.error, kind), f"The refusal is {answer.error!r}, no {kind.__name__}."
    return answer.error


async def _raises(kind: type[Exception], attempt: Awaitable[object], *words: str) -> None:
    try:
        result = await attempt
    except kind as error:
        told = str(error)
    else:
        raise AssertionError(f"It gave {result!r}, and should raise {kind.__name__}.")
    missing = [word for word in words if word not in told]
    assert not missing, f"The error {told!r} doesn't name {missing}."


# Reading and writing


@_promise
async def what_is_committed_is_read_back(store: SessionStore) -> None:
    """What is committed is read back: all of it, after a seq, or at most so many rows."""
    lease = await store.open(_PARIS, _OWNER, create=True)
    _equal(lease.next_seq, 0)
    rows = _rows(5)
    _equal(await store.commit([_append(lease, rows[:3])]), [Committed(3)])
    _equal(await store.commit([_append(lease, rows[3:])]), [Committed(5)])
    _equal(list(await store.read(_PARIS)), list(rows))
    _equal(list(await store.read(_PARIS, after=1)), list(rows[2:]))
    _equal(list(await store.read(_PARIS, after=1, limit=2)), list(rows[2:4]))
    _equal(list(await store.read(_PARIS, after=4)), [])
    _equal(list(await store.read(_PARIS, after=90)), [])


@_promise
async def a_large_event_is_read_back(store: SessionStore) -> None:
    """An event of a megabyte is read back, byte for byte."""
    lease = await store.open(_PARIS, _OWNER, create=True)
    opened = SessionOpened(format=FORMAT, session="paris", created=0, cwd="x" * (1 << 20))
    payload = encode_event(Event(0, 0, opened))
    row = StoredRow(0, payload, chain_crc(0, payload))
    _equal(await store.commit([_append(lease, (row,))]), [Committed(1)])
    _equal(list(await store.read(_PARIS)), [row])


@_promise
async def two_appends_of_one_session_may_share_a_transaction(store: SessionStore) -> None:
    """Two appends of one session may share a transaction."""
    lease = await store.open(_PARIS, _OWNER, create=True)
    rows = _rows(4)
    appends = [_append(lease, rows[:2]), _append(lease, rows[2:])]
    _equal(await store.commit(appends), [Committed(2), Committed(4)])
    _equal(await store.commit([]), [])


@_promise
async def sessions_are_listed_by_name_with_their_size(store: SessionStore) -> None:
    """Sessions are listed by name, with their size, times and epoch."""
    leases = {one: await store.open(one, _OWNER, create=True) for one in (_ROME, _ATHENS, _PARIS)}
    rows = _rows(3, session="rome")
    await store.commit([_append(leases[_ROME], rows)])
    found = await store.sessions()
    _equal([one.session for one in found], ["athens", "paris", "rome"])
    _equal([one.events for one in found], [0, 0, 3])
    _equal(found[2].bytes, sum(len(row.payload) for row in rows))
    assert 0 < found[2].created <= found[2].changed, f"Its times are {found[2]!r}."
    _equal(found[2].epoch, leases[_ROME].epoch)


# Who may write


@_promise
async def a_later_owner_goes_on_where_the_session_ends(store: SessionStore) -> None:
    """A later owner goes on where the session ends, with a greater epoch."""
    first = await store.open(_PARIS, _OWNER, create=True)
    rows = _rows(4)
    await store.commit([_append(first, rows[:2])])
    await store.release(first)
    second = await store.open(_PARIS, _OTHER, create=False)
    _equal(second.next_seq, 2)
    assert second.epoch > first.epoch, f"Its epoch is {second.epoch}, after {first.epoch}."
    _equal(await store.commit([_append(second, rows[2:])]), [Committed(4)])


@_promise
async def a_new_session_takes_no_name_that_exists(store: SessionStore) -> None:
    """A new session takes no name that exists."""
    await store.release(await store.open(_PARIS, _OWNER, create=True))
    await _raises(SessionExistsError, store.open(_PARIS, _OWNER, create=True), "'paris'")


@_promise
async def an_unknown_session_is_named(store: SessionStore) -> None:
    """A session that doesn't exist is named, and nothing is made of it."""
    await _raises(UnknownSessionError, store.open(_PARIS, _OWNER, create=False), "'paris'")
    await _raises(UnknownSessionError, store.read(_PARIS), "'paris'")
    await _raises(UnknownSessionError, store.delete(_PARIS), "'paris'")
    _equal(list(await store.sessions()), [])


@_promise
async def a_held_session_is_refused_naming_its_holder(store: SessionStore) -> None:
    """A session that is held is refused to others, naming who holds it."""
    lease = await store.open(_PARIS, _OWNER, create=True)
    named = ("conformance", "1", "here")
    await _raises(SessionLockedError, store.open(_PARIS, _OTHER, create=False), *named)
    await _raises(SessionLockedError, store.open(_PARIS, _OTHER, create=True), *named)
    await _raises(SessionLockedError, store.delete(_PARIS), *named)
    await store.release(lease)
    await store.release(lease)
    await store.open(_PARIS, _OTHER, create=False)


@_promise
async def one_of_many_openers_gets_a_session(store: SessionStore) -> None:
    """Of many that open a session at once, one gets it."""
    got: list[Lease] = []

    async def opening(owner: Owner) -> None:
        try:
            got.append(await store.open(_PARIS, owner, create=True))
        except (SessionLockedError, SessionExistsError):
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for pid in range(5):
            nursery.start_soon(opening, Owner(pid, "here"))
    assert len(got) == 1, f"The leases {got!r} were given."


@_promise
async def an_old_owner_is_fenced_and_writes_nothing(store: SessionStore) -> None:
    """An owner whose lease was given back, or taken over, writes nothing."""
    old = await store.open(_PARIS, _OWNER, create=True)
    await store.release(old)
    await _refusal(store, _append(old, _rows(1)), FencedError)
    new = await store.open(_PARIS, _OTHER, create=False)
    error = await _refusal(store, _append(old, _rows(1)), FencedError)
    _equal(getattr(error, "epoch", None), new.epoch)
    _equal(list(await store.renew([old, new])), [new])
    await store.release(old)
    _equal(await store.commit([_append(new, _rows(1))]), [Committed(1)])


@_promise
async def a_deleted_session_fences_its_last_owner_for_good(store: SessionStore) -> None:
    """A session that is deleted, and made anew, fences its last owner all the same."""
    old = await store.open(_PARIS, _OWNER, create=True)
    await store.commit([_append(old, _rows(3))])
    await store.release(old)
    await store.delete(_PARIS)
    await _refusal(store, _append(old, _rows(1)), FencedError)
    new = await store.open(_PARIS, _OTHER, create=True)
    _equal(new.next_seq, 0)
    await _refusal(store, _append(old, _rows(1)), FencedError)
    _equal(list(await store.read(_PARIS)), [])


# What an append must be


@_promise
async def a_repeated_append_is_recognised_by_its_id(store: SessionStore) -> None:
    """An append that is repeated is recognised by its id, and answered as it was."""
    lease = await store.open(_PARIS, _OWNER, create=True)
    append = _append(lease, _rows(2))
    _equal(await store.commit([append]), [Committed(2)])
    _equal(await store.commit([append]), [Committed(2)])
    _equal(len(await store.read(_PARIS)), 2)


@_promise
async def an_append_that_skips_or_repeats_a_seq_writes_nothing(store: SessionStore) -> None:
    """An append that doesn't begin where the session ends, or leaves a hole, writes nothing."""
    lease = await store.open(_PARIS, _OWNER, create=True)
    rows = _rows(4)
    await store.commit([_append(lease, rows[:2])])
    for wrong in (rows[3:], rows[1:]):
        error = await _refusal(store, _append(lease, wrong, "other"), SequenceConflictError)
        _equal(getattr(error, "actual", None), 2)
    await _refusal(store, Append(lease, 2, "hole", (rows[3],)), StoreError)
    _equal(list(await store.read(_PARIS)), list(rows[:2]))


@_promise
async def a_row_that_is_not_chained_writes_nothing(store: SessionStore) -> None:
    """A row whose CRC isn't chained to the one before it writes nothing."""
    lease = await store.open(_PARIS, _OWNER, create=True)
    rows = _rows(2)
    wrong = (rows[0], StoredRow(1, rows[1].payload, rows[1].crc ^ 1))
    await _refusal(store, _append(lease, wrong), StoreError)
    _equal(list(await store.read(_PARIS)), [])


@_promise
async def a_refused_append_concerns_only_its_own_session(store: SessionStore) -> None:
    """An append that is refused leaves the others of its transaction alone."""
    good = await store.open(_PARIS, _OWNER, create=True)
    bad = await store.open(_ROME, _OWNER, create=True)
    wrong = _append(bad, _rows(2, session="rome")[1:])
    answers = await store.commit([wrong, _append(good, _rows(2))])
    _refused(answers[0], SequenceConflictError)
    _equal(answers[1], Committed(2))


# Side files


@_promise
async def equal_content_shares_a_locator(store: SessionStore) -> None:
    """Content is found by its locator, which equal content shares; there is no other."""
    locator = await store.put_blob(b"content")
    _equal(await store.put_blob(b"content"), locator)
    assert await store.put_blob(b"") != locator, "Other content has the same locator."
    _equal(await store.get_blob(locator), b"content")
    for none in ("", "0" * 64, "../../etc/passwd", "\0", "é" * 64):
        await _raises(StoreError, store.get_blob(none))


# Cancelling


@_promise
async def every_method_is_a_checkpoint(store: SessionStore) -> None:
    """Every method is a checkpoint, whether it has anything to do or not."""
    with trio.testing.assert_checkpoints():
        lease = await store.open(_PARIS, _OWNER, create=True)
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: store.commit([_append(lease, _rows(1))]),
        lambda: store.read(_PARIS),
        store.sessions,
        lambda: store.put_blob(b"x"),
        lambda: store.renew([lease]),
        lambda: store.release(lease),
        lambda: store.delete(_PARIS),
        store.aclose,
        store.aclose,
    ]
    for attempt in attempts:
        with trio.testing.assert_checkpoints():
            await attempt()


@_promise
async def a_lease_is_given_back_even_when_cancelled(store: SessionStore) -> None:
    """A lease is given back even where that is cancelled."""
    lease = await store.open(_PARIS, _OWNER, create=True)
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.release(lease)
    await store.open(_PARIS, _OTHER, create=False)


@_promise
async def a_cancelled_open_takes_the_lease_or_leaves_it(store: SessionStore) -> None:
    """An open that is cancelled has no lease that nobody knows of."""
    lease = None
    with trio.CancelScope() as scope:
        scope.cancel()
        lease = await store.open(_PARIS, _OWNER, create=True)
    if lease is not None:
        await store.release(lease)
    exists = any(one.session == _PARIS for one in await store.sessions())
    await store.open(_PARIS, _OTHER, create=not exists)


@_promise
async def a_cancelled_commit_is_whole_or_absent(store: SessionStore) -> None:
    """A commit that is cancelled is whole or absent, and may be repeated."""
    lease = await store.open(_PARIS, _OWNER, create=True)
    append = _append(lease, _rows(50))
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.commit([append])
    _equal(await store.commit([append]), [Committed(50)])
    _equal(len(await store.read(_PARIS)), 50)
