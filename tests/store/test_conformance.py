"""What every store promises, whatever keeps its rows (`SessionStore` in ports.py)."""

from collections.abc import Callable

import msgspec
import pytest
import trio
import trio.testing

from trioloop.errors import (
    FencedError,
    SequenceConflictError,
    SessionExistsError,
    SessionLockedError,
    StoreError,
    UnknownSessionError,
)
from trioloop.ids import SessionId
from trioloop.ports import (
    Append,
    CommitAnswer,
    Committed,
    Owner,
    Refused,
    SessionStore,
    StoredRow,
)

MakeRows = Callable[..., tuple[StoredRow, ...]]
AppendOf = Callable[..., Append]


def refusal(answer: CommitAnswer) -> Exception:
    assert isinstance(answer, Refused)
    return answer.error


async def test_what_is_committed_is_read_back(
    store: SessionStore, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    lease = await store.open(name, owner, create=True)
    assert lease.next_seq == 0
    rows = make_rows(5)
    assert await store.commit([append_of(lease, rows[:3])]) == [Committed(3)]
    assert await store.commit([append_of(lease, rows[3:])]) == [Committed(5)]
    assert await store.read(name) == list(rows)
    assert await store.read(name, after=1) == list(rows[2:])
    assert await store.read(name, after=1, limit=2) == list(rows[2:4])
    assert await store.read(name, after=4) == []
    assert await store.read(name, after=90) == []


async def test_a_later_owner_goes_on_where_the_session_ends(
    store: SessionStore, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    first = await store.open(name, owner, create=True)
    rows = make_rows(4)
    await store.commit([append_of(first, rows[:2])])
    await store.release(first)
    second = await store.open(name, owner, create=False)
    assert second.next_seq == 2
    assert second.epoch > first.epoch
    assert await store.commit([append_of(second, rows[2:])]) == [Committed(4)]


async def test_a_new_session_takes_no_name_that_exists(
    store: SessionStore, name: SessionId, owner: Owner
) -> None:
    await store.release(await store.open(name, owner, create=True))
    with pytest.raises(SessionExistsError, match="'paris'"):
        await store.open(name, owner, create=True)


async def test_an_unknown_session_is_named(
    store: SessionStore, name: SessionId, owner: Owner
) -> None:
    for attempt in (
        lambda: store.open(name, owner, create=False),
        lambda: store.read(name),
        lambda: store.delete(name),
    ):
        with pytest.raises(UnknownSessionError, match="'paris'"):
            await attempt()
    assert await store.sessions() == []


async def test_a_held_session_is_refused_naming_its_holder(
    store: SessionStore, name: SessionId, owner: Owner
) -> None:
    lease = await store.open(name, owner, create=True)
    for attempt in (
        lambda: store.open(name, Owner(2, "there"), create=False),
        lambda: store.open(name, Owner(2, "there"), create=True),
        lambda: store.delete(name),
    ):
        with pytest.raises(SessionLockedError, match="test 1 on here"):
            await attempt()
    await store.release(lease)
    await store.release(lease)
    await store.open(name, Owner(2, "there"), create=False)


async def test_an_old_owner_is_fenced_and_writes_nothing(
    store: SessionStore, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    old = await store.open(name, owner, create=True)
    await store.release(old)
    assert isinstance(refusal((await store.commit([append_of(old, make_rows(1))]))[0]), FencedError)
    new = await store.open(name, owner, create=False)
    error = refusal((await store.commit([append_of(old, make_rows(1))]))[0])
    assert isinstance(error, FencedError)
    assert error.epoch == new.epoch
    assert await store.renew([old, new]) == [new]
    await store.release(old)
    assert await store.commit([append_of(new, make_rows(1))]) == [Committed(1)]


async def test_a_deleted_session_fences_its_last_owner_for_good(
    store: SessionStore, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    old = await store.open(name, owner, create=True)
    await store.commit([append_of(old, make_rows(3))])
    await store.release(old)
    await store.delete(name)
    assert isinstance(refusal((await store.commit([append_of(old, make_rows(1))]))[0]), FencedError)
    new = await store.open(name, owner, create=True)
    assert new.next_seq == 0
    assert isinstance(refusal((await store.commit([append_of(old, make_rows(1))]))[0]), FencedError)
    assert await store.read(name) == []


async def test_a_repeated_append_is_recognised_by_its_id(
    store: SessionStore, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    lease = await store.open(name, owner, create=True)
    append = append_of(lease, make_rows(2))
    assert await store.commit([append]) == [Committed(2)]
    assert await store.commit([append]) == [Committed(2)]
    assert len(await store.read(name)) == 2


async def test_an_append_that_skips_or_repeats_a_seq_writes_nothing(
    store: SessionStore, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    lease = await store.open(name, owner, create=True)
    rows = make_rows(4)
    await store.commit([append_of(lease, rows[:2])])
    for wrong in (rows[3:], rows[1:]):
        error = refusal((await store.commit([append_of(lease, wrong, "other")]))[0])
        assert isinstance(error, SequenceConflictError)
        assert error.actual == 2
    hole = Append(lease, 2, "hole", (rows[3],))
    assert isinstance(refusal((await store.commit([hole]))[0]), StoreError)
    assert await store.read(name) == list(rows[:2])


async def test_a_row_that_is_not_chained_writes_nothing(
    store: SessionStore, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    lease = await store.open(name, owner, create=True)
    rows = make_rows(2)
    wrong = (rows[0], msgspec.structs.replace(rows[1], crc=rows[1].crc ^ 1))
    assert "CRC of event 1" in str(refusal((await store.commit([append_of(lease, wrong)]))[0]))
    assert await store.read(name) == []


async def test_a_refused_append_concerns_only_its_own_session(
    store: SessionStore, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    good = await store.open(name, owner, create=True)
    bad = await store.open(SessionId("rome"), owner, create=True)
    answers = await store.commit(
        [
            append_of(bad, make_rows(2, session="rome")[1:]),
            append_of(good, make_rows(2)),
        ]
    )
    assert isinstance(answers[0], Refused)
    assert answers[1] == Committed(2)


async def test_two_appends_of_one_session_may_share_a_transaction(
    store: SessionStore, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    lease = await store.open(name, owner, create=True)
    rows = make_rows(4)
    appends = [append_of(lease, rows[:2]), append_of(lease, rows[2:])]
    assert await store.commit(appends) == [Committed(2), Committed(4)]
    assert await store.commit([]) == []


async def test_sessions_are_listed_by_name_with_their_size(
    store: SessionStore, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    leases = {}
    for session in ("rome", "athens", "paris"):
        leases[session] = await store.open(SessionId(session), owner, create=True)
    rows = make_rows(3, session="rome")
    await store.commit([append_of(leases["rome"], rows)])
    found = await store.sessions()
    assert [one.session for one in found] == ["athens", "paris", "rome"]
    assert [one.events for one in found] == [0, 0, 3]
    assert found[2].bytes == sum(len(row.payload) for row in rows)
    assert 0 < found[2].created <= found[2].changed
    assert found[2].epoch == leases["rome"].epoch


async def test_equal_content_shares_a_locator(store: SessionStore) -> None:
    locator = await store.put_blob(b"content")
    assert await store.put_blob(b"content") == locator
    assert await store.put_blob(b"") != locator
    assert await store.get_blob(locator) == b"content"


@pytest.mark.parametrize("locator", ["", "0" * 64, "../../etc/passwd", "\0", "é" * 64])
async def test_a_locator_of_nothing_is_an_error(store: SessionStore, locator: str) -> None:
    with pytest.raises(StoreError):
        await store.get_blob(locator)


async def test_every_method_is_a_checkpoint(
    store: SessionStore, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    with trio.testing.assert_checkpoints():
        lease = await store.open(name, owner, create=True)
    for attempt in (
        lambda: store.commit([append_of(lease, make_rows(1))]),
        lambda: store.read(name),
        store.sessions,
        lambda: store.put_blob(b"x"),
        lambda: store.renew([lease]),
        lambda: store.release(lease),
        lambda: store.delete(name),
        store.aclose,
        store.aclose,
    ):
        with trio.testing.assert_checkpoints():
            await attempt()


async def test_a_lease_is_given_back_even_when_cancelled(
    store: SessionStore, name: SessionId, owner: Owner
) -> None:
    lease = await store.open(name, owner, create=True)
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.release(lease)
    assert scope.cancelled_caught
    await store.open(name, owner, create=False)


async def test_a_cancelled_commit_is_whole_or_absent(
    store: SessionStore, name: SessionId, owner: Owner, make_rows: MakeRows, append_of: AppendOf
) -> None:
    lease = await store.open(name, owner, create=True)
    append = append_of(lease, make_rows(50))
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.commit([append])
    assert await store.commit([append]) == [Committed(50)]
    assert len(await store.read(name)) == 50
