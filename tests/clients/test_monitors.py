"""collectd and netdata, which send measurements by OpenTSDB's protocols."""

import contextlib
import socket
import subprocess
import time

import pytest

from conftest import Server
from peer import free_port


@contextlib.contextmanager
def running(*words):
    """A program that is stopped after the block; its output is shown if it exits by itself."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield
        assert process.poll() is None, process.stdout.read()
    finally:
        process.kill()
        process.wait()


def samples(redis, key, at_least):
    """The samples of a series, once it has this many."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        found = redis.ts().range(key, "-", "+") if redis.exists(key) else []
        if len(found) >= at_least:
            return found
        time.sleep(0.2)
    raise AssertionError(f"{key} is not among {sorted(redis.keys('*'))}")


@pytest.mark.needs("collectd")
def test_collectd_writes_by_telnet(tmp_path):
    port, control = free_port(), tmp_path / "control"
    server = Server(tmp_path / "data", "--listen-lines", f"opentsdb=127.0.0.1:{port}")
    config = tmp_path / "collectd.conf"
    config.write_text(
        f"""
Hostname "here"
BaseDir "{tmp_path}"
PIDFile "{tmp_path}/pid"
TypesDB "/usr/share/collectd/types.db"
Interval 1
LoadPlugin load
LoadPlugin unixsock
LoadPlugin write_tsdb
<Plugin unixsock>
  SocketFile "{control}"
</Plugin>
<Plugin write_tsdb>
  <Node>
    Host "127.0.0.1"
    Port "{port}"
    HostTags "status=production"
  </Node>
</Plugin>
"""
    )
    with running("collectd", "-f", "-C", config), contextlib.closing(server.client()) as redis:
        load = samples(redis, 'load.load.shortterm{fqdn="here",status="production"}', 2)
        assert all(value >= 0 for _, value in load)
        # Values sent by hand; the second is late.
        with socket.socket(socket.AF_UNIX) as told:
            told.connect(str(control))
            for identity, when, value in [("web", 1700000010, 43), ("db", 1700000000, 42.5)]:
                line = f'PUTVAL "{identity}/shop-a/gauge-orders" interval=1 {when}:{value}\n'
                told.sendall(line.encode())
                assert told.recv(100).startswith(b"0 Success")
        stored = samples(redis, 'shop.a.gauge.orders{fqdn="web",status="production"}', 1)
        assert stored == [(1700000010000, 43)]
        stored = samples(redis, 'shop.a.gauge.orders{fqdn="db",status="production"}', 1)
        assert stored == [(1700000000000, 42.5)]
        assert redis.info("latewood")["intake_opentsdb_refused"] == 0
    server.kill()


def system_ticks():
    """The time in the kernel according to /proc/stat."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[3])


NETDATA = """
[global]
  hostname = here
[directories]
  config = {root}/config
  cache = {root}/cache
  lib = {root}/lib
  log = {root}/log
[db]
  mode = ram
  update every = 1
[web]
  mode = none
[health]
  enabled = no
[ml]
  enabled = no
[logs]
  error = stderr
[plugins]
  enable running new plugins = no
  apps = no
  cgroups = no
  diskspace = no
  idlejitter = no
  statsd = no
  tc = no
  timex = no
"""

EXPORTER = """
[opentsdb{transport}:{prefix}]
  enabled = yes
  destination = 127.0.0.1:{port}
  prefix = {prefix}
  hostname = here
  update every = 1
  data source = as collected
  send charts matching = system.cpu
"""


@pytest.mark.needs("netdata")
def test_netdata_writes_by_telnet_and_http(tmp_path):
    lines, http = free_port(), free_port()
    server = Server(
        tmp_path / "data",
        *("--listen-lines", f"opentsdb=127.0.0.1:{lines}", "--http", f"127.0.0.1:{http}"),
    )
    for name in ("config", "cache", "lib", "log"):
        (tmp_path / name).mkdir()
    (tmp_path / "config/netdata.conf").write_text(NETDATA.format(root=tmp_path))
    (tmp_path / "config/exporting.conf").write_text(
        "[exporting:global]\n  enabled = yes\n"
        + EXPORTER.format(transport="", prefix="lines", port=lines)
        + EXPORTER.format(transport=":http", prefix="web", port=http)
    )
    before = system_ticks()
    words = "netdata", "-D", "-u", "root", "-c", tmp_path / "config/netdata.conf"
    with running(*words), contextlib.closing(server.client()) as redis:
        for prefix in ("lines", "web"):
            samples(redis, key_of(redis, f"{prefix}.system.cpu.system"), 3)
        after = system_ticks()
        for prefix in ("lines", "web"):
            key = key_of(redis, f"{prefix}.system.cpu.system")
            ticks = [value for _, value in redis.ts().range(key, "-", "+")]
            assert ticks == sorted(ticks)
            # The samples of the first seconds; more may have arrived since.
            assert before <= ticks[0] <= after, (before, ticks, after)
        assert redis.info("latewood")["intake_opentsdb_refused"] == 0
    server.kill()


def key_of(redis, metric):
    """The key of the only series of `here` with this metric, once it exists."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        found = redis.ts().queryindex([f"__name__={metric}", "host=here"])
        if found:
            assert len(found) == 1
            return found[0]
        time.sleep(0.2)
    raise AssertionError(f"{metric} is not among {sorted(redis.keys('*'))}")
