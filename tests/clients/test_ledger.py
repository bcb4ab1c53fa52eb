"""The ledger of the tests of faults finds what it is for: a lost write, one that counts twice, a stale answer,
and something seen that vanishes."""

import time

from ledger import Counter, Rows


def now():
    time.sleep(0.001)
    return time.monotonic()


def test_a_counter_lies_between_what_was_acknowledged_and_what_was_sent():
    counter = Counter()
    counter.begin()
    counter.done()
    between = now()
    # The reply of this one never came.
    counter.begin()
    asked = now()
    assert [held for held in range(4) if not counter.check(held, asked, now())] == [1, 2]
    assert counter.check(2, asked, between), "it came before the second was sent"


def test_a_counter_that_was_seen_does_not_fall():
    counter = Counter()
    counter.begin()
    before = now()
    assert not counter.check(1, before, now())
    assert not counter.check(0, before, now()), "asked for before it was seen"
    assert counter.check(0, now(), now())


def test_a_refused_write_counts_for_nothing():
    counter, rows = Counter(), Rows()
    counter.begin()
    counter.refused()
    assert counter.check(1, now(), now())
    rows.begin([5], 1.0)
    rows.refused([5])
    assert rows.check({5: 1.0}, 0, 9, now(), now())


def test_rows_show_the_newest_acknowledged_value():
    rows, before = Rows(), now()
    rows.begin([5], 1.0).done()
    between = now()
    rows.begin([5], 2.0).done()
    later = now()
    assert not rows.check({5: 2.0}, 0, 9, later, now())
    assert rows.check({5: 1.0}, 0, 9, later, now()), "stale"
    assert rows.check({}, 0, 9, later, now()), "lost"
    assert not rows.check({5: 1.0}, 0, 9, between, now())
    assert not rows.check({}, 0, 9, before, now())
    assert rows.check({5: 2.0, 7: 3.0}, 0, 9, later, now()), "nobody wrote 7"


def test_deleted_rows_are_gone_once_that_is_acknowledged():
    rows = Rows()
    rows.begin([5], 1.0).done()
    between = now()
    write = rows.begin([5, 10], None)
    asked = now()
    assert not rows.check({5: 1.0}, 0, 20, asked, now()) and not rows.check({}, 0, 20, asked, now())
    write.done()
    later = now()
    assert rows.check({5: 1.0}, 0, 20, later, now())
    assert not rows.check({5: 1.0}, 0, 20, between, now())


def test_a_row_whose_reply_never_came_stays_once_it_was_seen():
    rows = Rows()
    rows.begin([5], 1.0)
    asked = now()
    assert not rows.check({}, 0, 9, asked, now())
    assert not rows.check({5: 1.0}, 0, 9, asked, now())
    assert rows.check({}, 0, 9, now(), now())
