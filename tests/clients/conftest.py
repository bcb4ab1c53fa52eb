"""Fixtures: each test has its own Latewood on a free loopback port."""

import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from peer import Peer, free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("LATEWOOD_BIN", ROOT / "target/debug/latewood"))

# Tries of the client's own would wait for seconds, and hide a connection that ends.
NO_RETRY = Retry(NoBackoff(), 0)


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(tool): skipped where LEFT_OUT names the tool")


def pytest_runtest_setup(item):
    """Without LEFT_OUT, which tests/setup.sh determines, every test runs."""
    left_out = os.environ.get("LEFT_OUT", "").split()
    for mark in item.iter_markers("needs"):
        if mark.args[0] in left_out:
            pytest.skip(f"{mark.args[0]} is missing")


def needs(value, tool):
    """A parameter of tests that need a tool."""
    return pytest.param(value, marks=pytest.mark.needs(tool), id=value)


def make_certificate(directory):
    """The certificate of the first command of docs/operations.md: its file, and that of its key."""
    page = (ROOT / "docs/operations.md").read_text()
    make = re.search(r"^openssl req .*$", page, re.MULTILINE)[0]
    subprocess.run(make, shell=True, check=True, cwd=directory, capture_output=True)
    return directory / "server.crt", directory / "server.key"


class Server:
    """A server process; `start` may follow `kill` or `stop`."""

    def __init__(self, directory, *options):
        self.directory, self.options = directory, options
        self.port = free_port()
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [BINARY, "serve", "--dir", self.directory, "--listen", f"127.0.0.1:{self.port}", *self.options],
            stderr=subprocess.PIPE,
            env={"LATEWOOD_HTTP": "off", **os.environ},
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(self.process.stderr.read().decode())
            try:
                if self.client().ping():
                    return
            except redis.ConnectionError:
                time.sleep(0.02)
        raise TimeoutError("the server does not respond")

    def client(self, **options):
        options = {"retry": NO_RETRY, "decode_responses": True, **options}
        return redis.Redis(host="127.0.0.1", port=self.port, **options)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


@pytest.fixture
def server(tmp_path):
    running = Server(tmp_path / "data")
    yield running
    if running.process.poll() is None:
        running.kill()


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def client(request, server):
    with server.client(protocol=request.param) as connection:
        yield connection


@pytest.fixture(params=["latewood", needs("redistimeseries", "redistimeseries")])
def either(request, tmp_path):
    """Latewood, then RedisTimeSeries, so that tests state the behaviour of the original."""
    running = Server(tmp_path / "data") if request.param == "latewood" else Peer(tmp_path)
    yield running
    running.kill()


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def store(request, either):
    with redis.Redis(port=either.port, decode_responses=True, protocol=request.param) as connection:
        yield connection
