"""The behaviour that applications using redis-py's ts() client rely on."""

import math

import pytest
import redis


def rows(answer):
    """Samples as (timestamp, value), independent of the protocol."""
    return [(int(timestamp), float(value)) for timestamp, value in answer]


def info_of(client, key):
    """TS.INFO as a dictionary: redis-py wraps it under RESP2 only."""
    info = client.ts().info(key)
    return info if isinstance(info, dict) else {
        "totalSamples": info.total_samples,
        "firstTimestamp": info.first_timestamp,
        "lastTimestamp": info.last_timestamp,
        "retentionTime": info.retention_msecs,
        "chunkSize": info.chunk_size,
        "duplicatePolicy": info.duplicate_policy,
        "labels": info.labels,
    }


def test_write_and_read_back(client):
    ts = client.ts()
    assert ts.create("room:1", labels={"site": "north", "unit": "celsius"})
    assert ts.add("room:1", 1_000, 20.5) == 1_000
    assert ts.madd([("room:1", 2_000, 20.75), ("room:1", 3_000, -0.5)]) == [2_000, 3_000]
    timestamp, value = ts.get("room:1")
    assert (timestamp, float(value)) == (3_000, -0.5)
    assert rows(ts.range("room:1", "-", "+")) == [(1_000, 20.5), (2_000, 20.75), (3_000, -0.5)]
    assert rows(ts.revrange("room:1", "-", "+", count=1)) == [(3_000, -0.5)]


def test_late_samples_take_their_place(client):
    ts = client.ts()
    for timestamp in range(0, 10_000, 10):
        ts.add("late", timestamp, timestamp)
    pipe = client.pipeline(transaction=False)
    for timestamp in range(9_995, 0, -10):
        pipe.ts().add("late", timestamp, timestamp)
    pipe.execute()
    expected = [(timestamp, float(timestamp)) for timestamp in sorted([*range(0, 10_000, 10), *range(5, 10_000, 10)])]
    assert rows(ts.range("late", "-", "+")) == expected
    assert info_of(client, "late")["totalSamples"] == len(expected)


@pytest.mark.parametrize(
    "policy, kept",
    [("first", 5.0), ("last", 3.0), ("min", 3.0), ("max", 5.0), ("sum", 8.0)],
)
def test_duplicate_policies(client, policy, kept):
    ts = client.ts()
    ts.create(policy, duplicate_policy=policy)
    ts.add(policy, 10, 5)
    ts.add(policy, 10, 3)
    assert rows(ts.range(policy, "-", "+")) == [(10, kept)]


def test_block_refuses_and_on_duplicate_overrides(client):
    ts = client.ts()
    ts.add("blocked", 10, 5)
    with pytest.raises(redis.ResponseError, match="Error at upsert"):
        ts.add("blocked", 10, 6)
    ts.add("blocked", 10, 6, on_duplicate="last")
    assert rows(ts.range("blocked", "-", "+")) == [(10, 6.0)]


def test_aggregation(client):
    ts = client.ts()
    for timestamp in range(100):
        ts.add("agg", timestamp, timestamp)
    assert rows(ts.range("agg", 0, 99, aggregation_type="avg", bucket_size_msec=50)) == [(0, 24.5), (50, 74.5)]
    assert rows(ts.range("agg", 5, 14, aggregation_type="sum", bucket_size_msec=5, align="start")) == [
        (5, 35.0),
        (10, 60.0),
    ]
    filtered = ts.range("agg", 0, 99, filter_by_ts=[3, 7], filter_by_min_value=5, filter_by_max_value=9)
    assert rows(filtered) == [(7, 7.0)]


def test_values_keep_their_bits(client):
    ts = client.ts()
    values = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 123456789.123456789, 1e-7]
    for timestamp, value in enumerate(values):
        ts.add("bits", timestamp, value)
    read = [value for _, value in rows(ts.range("bits", "-", "+"))]
    assert [value.hex() for value in read] == [value.hex() for value in values]
    ts.add("bits", 100, float("nan"))
    assert math.isnan(rows(ts.range("bits", 100, 100))[0][1])


def test_info(client):
    ts = client.ts()
    ts.create("info", retention_msecs=60_000, chunk_size=128, duplicate_policy="max", labels={"a": "b"})
    ts.add("info", 5, 1)
    info = info_of(client, "info")
    assert (info["totalSamples"], info["firstTimestamp"], info["lastTimestamp"]) == (1, 5, 5)
    assert (info["retentionTime"], info["chunkSize"], info["duplicatePolicy"]) == (60_000, 128, "max")
    assert info["labels"] == {"a": "b"}


def test_delete(client):
    ts = client.ts()
    for timestamp in range(10):
        ts.add("del", timestamp, 1)
    assert ts.delete("del", 2, 4) == 3
    assert [timestamp for timestamp, _ in rows(ts.range("del", "-", "+"))] == [0, 1, 5, 6, 7, 8, 9]
    assert client.delete("del") == 1
    with pytest.raises(redis.ResponseError, match="does not exist"):
        ts.get("del")


def test_keys_and_scan(client):
    for number in range(25):
        client.ts().add(f"k:{number}", 1, 1)
    assert client.dbsize() == 25
    assert set(client.scan_iter(match="k:1*")) == {"k:1", *(f"k:1{digit}" for digit in range(10))}
    assert client.type("k:1") == "TSDB-TYPE"
    assert client.flushall()
    assert client.keys("*") == []


def test_wrong_input_is_refused_in_words(client):
    ts = client.ts()
    for arguments, text in [
        (("TS.ADD", "k", "-5", "1"), "invalid timestamp"),
        (("TS.ADD", "k", "1", "one"), "invalid value"),
        (("TS.ADD", "k", "99999999999999999999", "1"), "invalid timestamp"),
        (("TS.ADD", "k"), "wrong number of arguments"),
        (("TS.CREATE", "k", "CHUNK_SIZE", "7"), "CHUNK_SIZE"),
        (("TS.NOSUCH", "k"), "unknown command"),
    ]:
        with pytest.raises(redis.ResponseError, match=text):
            client.execute_command(*arguments)
    assert client.ping(), "the connection lives on"
    with pytest.raises(redis.ResponseError, match="does not exist"):
        ts.range("k", "-", "+")


@pytest.mark.parametrize("durability", ["sync", "interval"])
def test_a_killed_server_comes_back_with_everything(server, durability):
    client = server.client()
    assert client.execute_command("CLIENT", "DURABILITY", durability) in ("OK", True)
    pipe = client.pipeline(transaction=False)
    for step in range(5_000):
        timestamp = step if step % 4 else 1_000_000 - step
        pipe.ts().add("ledger", timestamp, step, on_duplicate="last")
    acknowledged = pipe.execute()
    server.kill()
    server.start()
    read = rows(server.client().ts().range("ledger", "-", "+"))
    assert [timestamp for timestamp, _ in read] == sorted(set(acknowledged))


def test_sigterm_stops_in_order(server):
    server.client().ts().add("k", 1, 2.5)
    assert server.stop() == 0
    server.start()
    assert rows(server.client().ts().range("k", "-", "+")) == [(1, 2.5)]


def test_a_password_is_asked_for(tmp_path):
    from conftest import Server

    class Locked(Server):
        def client(self, **options):
            return super().client(**{"password": "s3cret", **options})

    running = Locked(tmp_path / "data", "--requirepass", "s3cret")
    try:
        with pytest.raises(redis.AuthenticationError):
            running.client(password=None).ping()
        with pytest.raises(redis.AuthenticationError):
            running.client(password="wrong").ping()
        assert running.client().ping()
    finally:
        running.kill()
