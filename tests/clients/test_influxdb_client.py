"""The Python clients of InfluxDB 2 write; redis-py reads back."""

import pytest
import urllib.error
import urllib.request
from influxdb_client import InfluxDBClient, Point, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS, WriteOptions
from influxdb_client.rest import ApiException

from conftest import Server
from peer import free_port


@pytest.fixture
def sender(tmp_path):
    port = free_port()
    server = Server(tmp_path / "data", "--http", f"127.0.0.1:{port}")
    server.url = f"http://127.0.0.1:{port}"
    yield server
    server.kill()


def writer(server, options, token="any"):
    client = InfluxDBClient(url=server.url, token=token, org="o", enable_gzip=True)
    return client, client.write_api(write_options=options)


def test_points_are_read_by_redis(sender):
    client, write = writer(sender, SYNCHRONOUS)
    assert client.ping()
    points = [
        Point("cpu").tag("host", f"h {n}").field("user", n / 4).field("n", n).field("up", True)
        .field("note", "text").time(1_700_000_000_000 + n, WritePrecision.MS)
        for n in range(100)
    ]
    write.write(bucket="b", record=points, write_precision=WritePrecision.MS)
    with sender.client() as store:
        for n in (0, 7, 99):
            labels = f'{{host="h {n}"}}'
            assert store.ts().get(f"cpu_user{labels}") == (1_700_000_000_000 + n, n / 4)
            assert store.ts().get(f"cpu_n{labels}") == (1_700_000_000_000 + n, n)
            assert store.ts().get(f"cpu_up{labels}") == (1_700_000_000_000 + n, 1)
        assert len(store.ts().queryindex(["__name__=cpu_user"])) == 100
        assert not store.exists('cpu_note{host="h 0"}')


def test_batches_in_the_background_arrive_whole(sender):
    client, write = writer(sender, WriteOptions(batch_size=500, flush_interval=100))
    for n in range(5000):
        write.write(bucket="b", record=f"m,h=h{n % 10} v={n}i {n + 1}", write_precision="ms")
    write.close()
    client.close()
    with sender.client() as store:
        counts = [len(store.ts().range(f'm_v{{h="h{n}"}}', "-", "+")) for n in range(10)]
    assert counts == [500] * 10


def test_a_bad_line_is_an_error_with_its_line_and_the_others_are_kept(sender):
    client, write = writer(sender, SYNCHRONOUS)
    with pytest.raises(ApiException) as refused:
        write.write(bucket="b", record="m v=1 1\nm v=x 2\nm v=3 3", write_precision="ms")
    assert refused.value.status == 400
    assert "line 2" in refused.value.message or "line 2" in refused.value.body
    with sender.client() as store:
        assert store.ts().range("m_v", "-", "+") == [(1, 1.0), (3, 3.0)]


def test_a_user_of_the_redis_side_is_asked_for(tmp_path):
    port = free_port()
    server = Server(tmp_path / "data", "--http", f"127.0.0.1:{port}")
    server.url = f"http://127.0.0.1:{port}"
    try:
        with server.client() as store:
            store.execute_command("ACL SETUSER telegraf on >secret +ts.add %W~cpu_*")
            store.execute_command("CONFIG SET requirepass sesame")
        for token, status in [("telegraf:wrong", 401), ("telegraf:secret", None), ("sesame", None)]:
            _, write = writer(server, SYNCHRONOUS, token)
            if status is None:
                write.write(bucket="b", record="cpu v=1 1")
            else:
                with pytest.raises(ApiException) as refused:
                    write.write(bucket="b", record="cpu v=1 1")
                assert refused.value.status == status
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{server.url}/metrics")
        assert refused.value.code == 401
    finally:
        server.kill()
