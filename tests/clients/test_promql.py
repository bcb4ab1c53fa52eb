"""PromQL as the readers of Prometheus ask for it: promtool, a Prometheus server that evaluates the
same through remote read, Prometheus' Go client, and the requests of Grafana."""

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

import test_prometheus
from conftest import ROOT, Server
from peer import free_port

START_MS = 1_700_000_000_000
START, END = START_MS // 1000, START_MS // 1000 + 3600
ORACLE = ROOT / "tests/promql/oracle"


def ask(port, path, form=None, headers=None):
    """Status and body of a request of the API: a GET, or a POST of `form`."""
    data = urllib.parse.urlencode(form).encode() if form is not None else None
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/{path}", data, headers or {})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    """The HTTP port of a server with two counters, of which one half came late, and a Redis key."""
    port = free_port()
    server = Server(tmp_path_factory.mktemp("promql") / "data", "--http", f"127.0.0.1:{port}")
    redis = server.client()
    for host, slope in (("a", 1.5), ("b", 0.25)):
        key = f'requests_total{{host="{host}",job="web"}}'
        labels = {"__name__": "requests_total", "host": host, "job": "web"}
        redis.ts().create(key, labels=labels)
        samples = [(START_MS + at * 15_000, slope * at) for at in range(241)]
        for part in (samples[120:], samples[:120]):
            redis.ts().madd([(key, at, value) for at, value in part])
    redis.ts().add("sensor:1", START_MS + 3_590_000, 21.5, labels={"site": "north"})
    yield port
    server.kill()


@pytest.mark.needs("prometheus")
@pytest.mark.parametrize(
    ("command", "arguments", "wanted"),
    [
        ("instant", ["sum by (job) (requests_total)", f"--time={END}"], r'\{job="web"\} => 420 @'),
        ("instant", ['{__name__="sensor:1"}', f"--time={END}"], r'sensor:1\{site="north"\} => 21.5 @'),
        ("range", ["rate(requests_total[5m])", f"--start={START}", f"--end={END}", "--step=30m"], r"0\.0999+ @"),
        ("series", ["--match=requests_total", f"--start={START}", f"--end={END}"], r'host="b"'),
        ("labels", ["host", f"--start={START}", f"--end={END}"], r"^a\nb\n$"),
    ],
)
def test_promtool(http, command, arguments, wanted):
    address = f"http://127.0.0.1:{http}"
    # Of `series` and `labels` the flags come first; queries take them anywhere.
    flags = [argument for argument in arguments if argument.startswith("--")]
    words = [argument for argument in arguments if not argument.startswith("--")]
    ran = subprocess.run(
        ["promtool", "query", command, *flags, address, *words], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert re.search(wanted, ran.stdout), ran.stdout


# No window begins on a sample: a range of Prometheus 2 includes both ends.
BOTH = """
requests_total
rate(requests_total[5m])
sum(rate(requests_total[5m]))
sum by (host) (increase(requests_total[10m])) / on (host) requests_total
histogram_quantile(0.9, sum by (le) (requests_total))
topk(1, requests_total)
max_over_time(requests_total[7m]) - min_over_time(requests_total[7m])
avg_over_time(requests_total[7m]) > bool 10
quantile_over_time(0.3, requests_total[20m])
stddev_over_time(requests_total[20m])
deriv(requests_total[10m])
predict_linear(requests_total[10m], 3600)
requests_total offset 5m
requests_total{host="a"} or requests_total{host="b"} * 2
count without (host) (requests_total)
label_replace(requests_total, "short", "$1", "host", "(.).*")
absent(requests_total{host="c"})
changes(requests_total[5m])
resets(requests_total[5m])
max_over_time(rate(requests_total[1m])[10m:30s])
requests_total{job=~"w.b", host!="b"} ^ 2 % 7
sensor:1
clamp_max(requests_total, 100)
round(requests_total / 7, 0.1)
""".strip().splitlines()


@pytest.mark.needs("prometheus")
def test_a_prometheus_that_remote_reads_answers_the_same(http, tmp_path):
    port = free_port()
    config = f"""
remote_read:
  - url: http://127.0.0.1:{http}/api/v1/read
    read_recent: true
"""
    prometheus = test_prometheus.begin(tmp_path, port, config)

    def rows(port, path):
        status, body = ask(port, path)
        assert status == 200, body
        number = lambda pair: (round(pair[0], 3), pytest.approx(float(pair[1]), rel=1e-9, nan_ok=True))
        found = {}
        for row in body["data"]["result"]:
            samples = row.get("values") or [row["value"]]
            found[tuple(sorted(row["metric"].items()))] = [number(pair) for pair in samples]
        return found

    plain = lambda found: {
        labels: [(at, value.expected) for at, value in samples] for labels, samples in found.items()
    }
    try:
        for query in BOTH:
            instant = urllib.parse.urlencode({"query": query, "time": END - 3})
            steps = {"query": query, "start": START + 7, "end": END - 3, "step": 90}
            for path in (f"query?{instant}", f"query_range?{urllib.parse.urlencode(steps)}"):
                assert plain(rows(http, path)) == rows(port, path), query
    finally:
        prometheus.kill()
        prometheus.wait()


@pytest.mark.needs("go")
def test_the_go_client_of_prometheus(http, tmp_path):
    program = tmp_path / "client"
    subprocess.run(["go", "build", "-o", program, "./client"], cwd=ORACLE, check=True)
    ran = subprocess.run([program, f"http://127.0.0.1:{http}"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_grafana_saves_and_tests_the_data_source(http):
    """Save & test of Grafana's Prometheus data source, and what it asks for to know its kind."""
    status, body = ask(http, "query", {"query": "1+1", "time": 4}, FORM)
    assert (status, body["data"]) == (200, {"resultType": "scalar", "result": [4, "2"]})
    status, body = ask(http, "status/buildinfo")
    assert status == 200 and body["data"]["version"] == "3.16.0"
    # Grafana takes a server with features for Mimir.
    assert not body["data"].get("features")


def test_grafana_builds_and_explores(http):
    """The builder's lists, Explore's range and instant query, and the lists of variables."""
    ends = {"start": START, "end": END}
    status, body = ask(http, "labels", {**ends, "match[]": '{__name__="requests_total"}'}, FORM)
    assert body["data"] == ["__name__", "host", "job"]
    query = urllib.parse.urlencode({**ends, "match[]": 'requests_total{job="web"}', "limit": 40000})
    assert ask(http, f"label/host/values?{query}")[1]["data"] == ["a", "b"]
    query = urllib.parse.urlencode({**ends, "limit": 40000})
    names = ask(http, f"label/__name__/values?{query}")[1]["data"]
    assert names == ["requests_total", "sensor:1"]
    status, body = ask(http, "series", {**ends, "match[]": "requests_total"}, FORM)
    assert [series["host"] for series in body["data"]] == ["a", "b"]
    assert ask(http, "metadata")[0] == 200
    assert ask(http, "metadata?limit_per_metric=1")[0] == 200
    assert ask(http, "rules")[1]["data"]["groups"] == []

    explored = {"query": "sum by (host) (rate(requests_total[1m0s]))", **ends, "step": "15"}
    status, body = ask(http, "query_range", explored, FORM)
    assert body["data"]["resultType"] == "matrix" and len(body["data"]["result"]) == 2
    status, body = ask(http, "query", {"query": "requests_total", "time": f"{END}.123"}, FORM)
    assert [row["value"] for row in body["data"]["result"]] == [[END + 0.123, "360"], [END + 0.123, "60"]]
    exemplars = {"query": "requests_total", "start": START_MS, "end": START_MS + 3_600_000}
    assert ask(http, "query_exemplars", exemplars, FORM) == (200, {"status": "success", "data": []})


def test_grafana_retries_a_refused_post_as_get(http):
    status, body = ask(http, "query_range", {"query": "sum(", "start": 1, "end": 2, "step": 1}, FORM)
    assert (status, body["errorType"]) == (400, "bad_data")
    status, again = ask(http, "query_range?query=sum(&start=1&end=2&step=1")
    assert (status, again) == (400, body)


def test_a_dashboard_of_many_panels(http):
    panels = [f"quantile(0.{at}, rate(requests_total[5m]))" for at in range(1, 10)]
    for query in panels:
        form = {"query": query, "start": START, "end": END, "step": "30"}
        status, body = ask(http, "query_range", form, FORM)
        assert status == 200 and len(body["data"]["result"][0]["values"]) > 100, body


def test_the_dashboard_of_deploy(http):
    """Its queries, with the values that Grafana puts in the place of variables."""
    dashboard = json.loads((ROOT / "deploy/grafana/explore.json").read_text())
    values = {"$metric": "requests_total", "$__rate_interval": "1m", "$__range": "1h"}
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            query = target["expr"]
            for name, value in values.items():
                query = query.replace(name, value)
            form = {"query": query, "start": START, "end": END, "step": 60, "time": END}
            path = "query" if target["instant"] else "query_range"
            status, body = ask(http, path, form, FORM)
            assert status == 200 and body["data"]["result"], (query, body)


def test_the_redis_data_source_sends_a_stray_bucket(server):
    """Grafana's Redis data source writes the bucket also where it has no aggregation."""
    redis = server.client()
    redis.ts().add("sensor:1", 1000, 5, labels={"site": "north"})
    sent = "TS.MRANGE 0 2000 0 WITHLABELS FILTER site=north"
    wanted = [{"sensor:1": [{"site": "north"}, [(1000, 5.0)]]}]
    assert redis.execute_command(*sent.split()) == wanted


@pytest.mark.parametrize("operator", ["+", "or", "and", "^", "* on () group_left ()"])
@pytest.mark.parametrize("endpoint", ["query", "query_range", "explain"])
def test_chains_of_operators_are_as_long_as_they_may_be(http, endpoint, operator):
    """The server of `make demo` is not optimised: what it evaluates takes more of a stack."""
    # Right sides are nested.
    terms = 199 if operator == "^" else 990
    form = {"query": f" {operator} ".join(["vector(1)"] * terms), "start": START, "end": END, "step": 3600}
    status, answer = ask(http, endpoint, form)
    assert (status, answer["status"]) == (200, "success"), answer
