"""A Prometheus server that writes what it scrapes to Latewood, and one that reads from it."""

import contextlib
import json
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

import prometheus_read
from conftest import Server
from peer import free_port

START_MS = 1_700_000_000_000
SCRAPES_AND_WRITES = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: itself
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
remote_write:
  - url: http://127.0.0.1:{http}/api/v1/write
"""


def begin(tmp_path, port, config):
    """A Prometheus at `port`, ready for queries."""
    path = tmp_path / "prometheus.yml"
    path.write_text(config)
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={path}",
            f"--storage.tsdb.path={tmp_path / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read().decode()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5).read()
            return process
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("Prometheus does not get ready")


@contextlib.contextmanager
def writing(tmp_path, samples):
    """A Prometheus that scrapes itself and writes to a Latewood, once that has enough samples of
    `up`: a client of Latewood, the key of `up`, and the HTTP ports of both."""
    http, port = free_port(), free_port()
    server = Server(tmp_path / "data", "--http", f"127.0.0.1:{http}")
    prometheus = begin(tmp_path, port, SCRAPES_AND_WRITES.format(port=port, http=http))
    try:
        redis = server.client()
        key = f'up{{instance="127.0.0.1:{port}",job="itself"}}'
        deadline = time.monotonic() + 120
        while not (redis.exists(key) and len(redis.ts().range(key, "-", "+")) >= samples):
            assert prometheus.poll() is None, prometheus.stderr.read().decode()
            assert time.monotonic() < deadline, "nothing comes"
            time.sleep(0.5)
        yield redis, key, {"ours": f"127.0.0.1:{http}", "theirs": f"127.0.0.1:{port}"}
    finally:
        prometheus.kill()
        prometheus.wait()
        server.kill()


def promql(port, query, at_ms):
    """`{labels: value or samples}` of an instant query."""
    parameters = urllib.parse.urlencode({"query": query, "time": at_ms / 1000})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{parameters}") as answer:
        reply = json.load(answer)
    assert reply["status"] == "success" and not reply.get("warnings"), reply
    number = lambda pair: (round(pair[0] * 1000), float(pair[1]))
    found = {}
    for series in reply["data"]["result"]:
        labels = tuple(sorted(series["metric"].items()))
        values = series.get("values")
        found[labels] = [number(pair) for pair in values] if values else number(series["value"])[1]
    return found


@pytest.mark.needs("prometheus")
def test_promql_over_remote_read_sees_what_was_written(tmp_path):
    http, port = free_port(), free_port()
    server = Server(tmp_path / "data", "--http", f"127.0.0.1:{http}")
    redis = server.client()
    times = [START_MS + at * 15_000 for at in range(241)]
    written = {}
    for host, slope in (("a", 1.5), ("b", 0.25)):
        key = f'requests{{host="{host}",job="web"}}'
        labels = {"__name__": "requests", "host": host, "job": "web"}
        redis.ts().create(key, labels=labels)
        written[host] = [(at, slope * index) for index, at in enumerate(times)]
        # The first half is late.
        for part in (written[host][120:], written[host][:120]):
            redis.ts().madd([(key, at, value) for at, value in part])
    redis.ts().add("sensor:1", START_MS, 1e300, labels={"site": "north"})
    prometheus = begin(
        tmp_path,
        port,
        f"""
remote_read:
  - url: http://127.0.0.1:{http}/api/v1/read
    read_recent: true
""",
    )
    try:
        end = times[-1]
        whole = promql(port, "requests[1h]", end)
        of = lambda host: (("__name__", "requests"), ("host", host), ("job", "web"))
        # A range selector of Prometheus 2 includes both ends.
        assert whole == {of("a"): written["a"], of("b"): written["b"]}
        rates = promql(port, "sum by (job) (rate(requests[5m]))", end)
        assert rates[(("job", "web"),)] == pytest.approx(1.75 / 15)
        assert promql(port, 'requests{host!~"b|c"}', end) == {of("a"): written["a"][-1][1]}
        assert promql(port, 'requests{host=~"a|c",job!="db"}', end - 1) == {of("a"): 1.5 * 239}
        by_key = (("__name__", "sensor:1"), ("site", "north"))
        assert promql(port, '{site="north"}', START_MS) == {by_key: 1e300}
        assert promql(port, "sensor:1", START_MS) == {by_key: 1e300}
        counted = promql(port, 'count({__name__=~".+"}) by (__name__)', START_MS)
        assert counted == {(("__name__", "requests"),): 2, (("__name__", "sensor:1"),): 1}
        assert promql(port, "requests", START_MS - 1) == {}
        # The same through both response types.
        matchers = [(prometheus_read.MATCH, "__name__", "req.*")]
        address = f"127.0.0.1:{http}"
        sampled = prometheus_read.samples(address, times[7], times[200], matchers)
        assert sampled == {of(host): written[host][7:201] for host in "ab"}
        streamed = prometheus_read.chunks(address, times[7], times[200], matchers)
        for labels, parts in streamed.items():
            decoded = [sample for part in parts for sample in prometheus_read.decode_chunk(part[2])]
            assert decoded == sampled[labels]
            assert [part[:2] for part in parts] == [(times[7], times[126]), (times[127], times[200])]
    finally:
        prometheus.kill()
        prometheus.wait()
        server.kill()


@pytest.mark.needs("prometheus")
def test_both_answer_remote_read_with_the_same_chunks(tmp_path):
    with writing(tmp_path, samples=8) as (redis, key, addresses):
        # All of these have arrived: later samples of `up` were written.
        times = [at for at, _ in redis.ts().range(key, "-", "+")]
        span = (times[0], times[4])
        matchers = [(prometheus_read.EQUAL, "job", "itself")]
        asked = {}
        for name, address in addresses.items():
            asked[name] = prometheus_read.chunks(address, *span, matchers)
        decoded = {
            name: {
                labels: [
                    repr(sample)
                    for part in parts
                    for sample in prometheus_read.decode_chunk(part[2])
                    if span[0] <= sample[0] <= span[1]
                ]
                for labels, parts in found.items()
            }
            for name, found in asked.items()
        }
        theirs = {labels: samples for labels, samples in decoded["theirs"].items() if samples}
        assert decoded["ours"] == theirs and len(theirs) > 100
        # A chunk of the same samples has the same bytes, except that Prometheus may append a
        # spare byte when the last one is full.
        bits = lambda chunk: (*chunk[:2], chunk[2].rstrip(b"\0"))
        same = 0
        for labels, parts in asked["ours"].items():
            for part, other in zip(parts, asked["theirs"][labels]):
                if prometheus_read.decode_chunk(part[2]) == prometheus_read.decode_chunk(other[2]):
                    assert bits(part) == bits(other), labels
                    same += 1
        assert same > 0, "no chunk to compare"


@pytest.mark.needs("prometheus")
def test_prometheus_writes_what_it_scrapes(tmp_path):
    with writing(tmp_path, samples=3) as (redis, key, _):
        assert all(value == 1 for _, value in redis.ts().range(key, "-", "+"))
        buckets = redis.ts().queryindex(["__name__=prometheus_http_request_duration_seconds_bucket", "le=+Inf"])
        assert buckets
