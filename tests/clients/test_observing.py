"""INFO, SLOWLOG, LATENCY and MEMORY as redis-py's parsers read them; a server whose own log is lost."""

import signal
import subprocess

import redis

from conftest import BINARY, NO_RETRY
from peer import free_port
from world import wait_for


def test_info_is_parsed_into_fields(client):
    client.ts().add("k", 1, 1)
    info = client.info("everything")
    assert info["db0"]["keys"] == 1
    assert info["cmdstat_ts.add"]["calls"] == 1
    assert info["cmdstat_ts.add"]["usec_per_call"] >= 0
    assert info["latency_percentiles_usec_ts.add"]["p50"] > 0
    assert info["role"] == "master" and info["instantaneous_ops_per_sec"] >= 0
    assert info["modules"][0]["name"] == "timeseries"


def test_slow_commands_are_parsed(client):
    client.config_set("slowlog-log-slower-than", 0)
    client.echo("slow")
    entries = client.slowlog_get()
    assert any(entry["command"] in (b"ECHO slow", "ECHO slow") for entry in entries)
    assert all(entry["duration"] >= 0 and entry["client_address"] for entry in entries)
    assert client.slowlog_len() >= 1 and client.slowlog_reset()


def test_memory_and_delays_are_parsed(client):
    client.ts().add("k", 1, 1)
    assert client.memory_usage("k") > 100 and client.memory_usage("nosuch") is None
    stats = client.memory_stats()
    assert stats["keys.count"] == 1 and stats["db.0"]["overhead.hashtable.main"] > 0
    assert float(stats["dataset.percentage"]) > 0
    assert client.latency_latest() == [] and client.latency_history("command") == []
    assert client.latency_reset() == 0


def test_a_server_whose_log_cannot_be_written_goes_on(tmp_path):
    port = free_port()
    command = [BINARY, "serve", "--dir", tmp_path, "--listen", f"127.0.0.1:{port}"]
    with open("/dev/full", "wb") as full, redis.Redis(port=port, retry=NO_RETRY) as client:
        server = subprocess.Popen(command, stderr=full, env={"LATEWOOD_HTTP": "off", "LATEWOOD_LOG_LEVEL": "debug"})

        def answers():
            try:
                return client.ping()
            except redis.ConnectionError:
                return False

        wait_for("the server", answers)
        client.execute_command("TS.ADD", "a", 1, 1)
        assert client.execute_command("TS.GET", "a")
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
