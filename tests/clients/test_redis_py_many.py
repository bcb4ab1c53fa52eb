"""Label queries, compaction rules and the Redis around them, through redis-py's typed replies.

Each test runs against Latewood and against RedisTimeSeries, under RESP2 and RESP3.
"""

import pytest
import redis

HOUR = 3_600_000


def protocol_of(client):
    return client.connection_pool.connection_kwargs["protocol"]


def by_key(client, reply):
    """{key: (labels, samples)} of a reply for many series, independent of the protocol."""
    if protocol_of(client) == 3:
        return {key: (parts[0], rows(parts[-1])) for key, parts in reply.items()}
    return {key: (labels, rows(samples)) for entry in reply for key, (labels, samples) in entry.items()}


def rows(samples):
    return [(int(timestamp), float(value)) for timestamp, value in samples]


@pytest.fixture
def rooms(store):
    ts = store.ts()
    for number, site in enumerate(["north", "north", "south"], 1):
        ts.create(f"room:{number}", labels={"site": site, "room": str(number)})
        ts.madd([(f"room:{number}", at * 1000, at * number) for at in (3, 1, 2)])
    return ts


def test_keys_by_label(rooms):
    assert sorted(rooms.queryindex(["site=north"])) == ["room:1", "room:2"]
    assert list(rooms.queryindex(["site=north", "room!=1"])) == ["room:2"]
    assert sorted(rooms.queryindex(["site=(south,north)", "room=(1,3)"])) == ["room:1", "room:3"]
    assert list(rooms.queryindex(["site=nowhere"])) == []
    with pytest.raises(redis.ResponseError, match="at least one matcher"):
        rooms.queryindex(["site!=north"])


def test_newest_samples_by_label(store, rooms):
    reply = rooms.mget(["site=north"], with_labels=True)
    if protocol_of(store) == 3:
        newest = {key: (labels, int(sample[0]), float(sample[1])) for key, (labels, sample) in reply.items()}
    else:
        newest = {key: (parts[0], parts[1], parts[2]) for entry in reply for key, parts in entry.items()}
    assert newest == {
        "room:1": ({"site": "north", "room": "1"}, 3000, 3.0),
        "room:2": ({"site": "north", "room": "2"}, 3000, 6.0),
    }


def test_ranges_by_label(store, rooms):
    got = by_key(store, rooms.mrange("-", "+", ["site=north"], with_labels=True))
    assert got == {
        "room:1": ({"site": "north", "room": "1"}, [(1000, 1), (2000, 2), (3000, 3)]),
        "room:2": ({"site": "north", "room": "2"}, [(1000, 2), (2000, 4), (3000, 6)]),
    }
    got = by_key(store, rooms.mrevrange(0, 2000, ["site=(north,south)"], count=1))
    assert {key: samples for key, (_, samples) in got.items()} == {
        "room:1": [(2000, 2)], "room:2": [(2000, 4)], "room:3": [(2000, 6)],
    }
    sums = {"aggregation_type": "sum", "bucket_size_msec": 10_000}
    got = by_key(store, rooms.mrange("-", "+", ["site=north"], select_labels=["room"], **sums))
    assert got == {"room:1": ({"room": "1"}, [(0, 6)]), "room:2": ({"room": "2"}, [(0, 12)])}


def test_groups(store, rooms):
    got = by_key(store, rooms.mrange("-", "+", ["room=(1,2,3)"], groupby="site", reduce="sum"))
    assert {key: samples for key, (_, samples) in got.items()} == {
        "site=north": [(1000, 3), (2000, 6), (3000, 9)],
        "site=south": [(1000, 3), (2000, 6), (3000, 9)],
    }


def test_labels_follow_changes(rooms, store):
    rooms.alter("room:3", labels={"site": "north"})
    assert sorted(rooms.queryindex(["site=north"])) == ["room:1", "room:2", "room:3"]
    store.delete("room:1")
    assert sorted(rooms.queryindex(["site=north"])) == ["room:2", "room:3"]
    store.rename("room:2", "hall")
    assert sorted(rooms.queryindex(["site=north"])) == ["hall", "room:3"]


def test_rules_follow_late_samples(store):
    ts = store.ts()
    ts.create("raw", duplicate_policy="last")
    ts.create("hourly")
    assert ts.createrule("raw", "hourly", "avg", HOUR)
    for timestamp, value in [(0, 10), (1, 20), (HOUR, 1), (2, 60), (1, 50)]:
        ts.add("raw", timestamp, value)
    assert rows(ts.range("hourly", "-", "+")) == [(0, 40)]
    timestamp, value = ts.get("hourly", latest=True)
    assert (timestamp, float(value)) == (HOUR, 1)
    assert ts.delete("raw", 2, 2) == 1
    assert rows(ts.range("hourly", "-", "+")) == [(0, 30)]
    assert ts.deleterule("raw", "hourly")
    with pytest.raises(redis.ResponseError, match="compaction rule does not exist"):
        ts.deleterule("raw", "hourly")


def test_counters(store):
    ts = store.ts()
    assert ts.incrby("visits", 2, timestamp=10) == 10
    assert ts.incrby("visits", 3, timestamp=20) == 20
    assert ts.decrby("visits", 1, timestamp=20) == 20
    assert rows(ts.range("visits", "-", "+")) == [(10, 2), (20, 4)]


def test_transactions_and_expiry(store):
    with store.pipeline(transaction=True) as pipe:
        pipe.ts().add("k", 1, 1)
        pipe.ts().add("k", 2, 2)
        pipe.execute_command("TS.GET", "k")
        first, second, newest = pipe.execute()
    assert (first, second, int(newest[0])) == (1, 2, 2)
    assert store.pexpire("k", 100_000)
    assert 0 < store.pttl("k") <= 100_000
    assert store.persist("k")
    assert store.pttl("k") == -1
