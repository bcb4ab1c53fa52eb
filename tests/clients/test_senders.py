"""Senders of other protocols: plain sockets and OpenTelemetry's SDK."""

import socket

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from conftest import Server
from peer import free_port


@pytest.fixture
def senders(tmp_path):
    """A server with all protocols, and its ports."""
    ports = {name: free_port() for name in ("http", "opentsdb", "akumuli")}
    options = ["--http", f"127.0.0.1:{ports['http']}"]
    for name in ("opentsdb", "akumuli"):
        options += ["--listen-lines", f"{name}=127.0.0.1:{ports[name]}"]
    server = Server(tmp_path / "data", *options)
    yield server, ports
    if server.process.poll() is None:
        server.kill()


def exchange(port, text):
    """Sends a text, shuts down the sending side, and reads the reply."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(text.encode())
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def test_opentsdb_lines_as_collectd_and_netdata_write_them(senders):
    server, ports = senders
    lines = [
        "put cpu.0.cpu.idle 1700000000 97.5 fqdn=web01.example.com",
        "put netdata.system.cpu.user 1700000000 1.2500000 host=web01",
        "put netdata.system.cpu.user 1700000010 2.5000000 host=web01",
        "put netdata.system.cpu.user never 2.5 host=web01",
    ]
    answer = exchange(ports["opentsdb"], "\n".join(lines) + "\n")
    assert answer == "put: invalid value: Invalid character in timestamp never\n"
    redis = server.client()
    key = 'netdata.system.cpu.user{host="web01"}'
    assert redis.ts().range(key, "-", "+") == [(1700000000000, 1.25), (1700000010000, 2.5)]
    assert redis.ts().queryindex(["fqdn=web01.example.com"]) == ['cpu.0.cpu.idle{fqdn="web01.example.com"}']


def test_akumuli_messages_in_any_order_survive_a_kill(senders):
    server, ports = senders
    start = 1_700_000_000_000_000_000
    messages = [
        f"+cpu.user|cpu.sys host=h{i % 7}\r\n:{start + (i * 7919 % 1000) * 10**9}\r\n*2\r\n+{i}.5\r\n:{i}\r\n"
        for i in range(1000)
    ]
    assert exchange(ports["akumuli"], "".join(messages)) == ""
    server.kill()
    server.start()
    redis = server.client()
    keys = redis.ts().queryindex(["__name__=(cpu.user,cpu.sys)"])
    assert len(keys) == 14
    assert sum(redis.ts().info(key).total_samples for key in keys) == 2000


def test_opentelemetrys_exporter(senders):
    server, ports = senders
    exporter = OTLPMetricExporter(endpoint=f"http://127.0.0.1:{ports['http']}/v1/metrics")
    results = []
    export = exporter.export
    exporter.export = lambda *args, **named: results.append(export(*args, **named)) or results[-1]
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    resource = Resource.create({"service.name": "shop", "service.instance.id": "1"})
    provider = MeterProvider(metric_readers=[reader], resource=resource)
    meter = provider.get_meter("till")
    meter.create_counter("sold").add(3, {"fruit": "apple"})
    meter.create_gauge("warmth").set(21.5)
    meter.create_histogram("wait", explicit_bucket_boundaries_advisory=[1, 5]).record(2)
    provider.shutdown()
    assert results == [MetricExportResult.SUCCESS]

    redis = server.client()
    rows = redis.ts().mget(["job=shop", "instance=1"], with_labels=True)
    found = {}
    for row in rows:
        for labels, _, value in row.values():
            extra = labels.get("fruit") or labels.get("le") or ""
            found[labels["__name__"], extra] = value
    assert found == {
        ("sold", "apple"): 3,
        ("warmth", ""): 21.5,
        ("wait_bucket", "1"): 0,
        ("wait_bucket", "5"): 1,
        ("wait_bucket", "+Inf"): 1,
        ("wait_count", ""): 1,
        ("wait_sum", ""): 2,
        ("wait_min", ""): 2,
        ("wait_max", ""): 2,
        ("target_info", ""): 1,
    }
