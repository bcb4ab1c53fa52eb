"""TLS as clients meet it: redis-cli, redis-py, node-redis, go-redis, curl, Prometheus and a
sender of lines, with the certificate of the first command of docs/operations.md."""

import os
import socket
import ssl
import subprocess
import time

import pytest
import redis

import test_programs
import test_prometheus
from conftest import BINARY, Server, make_certificate
from peer import free_port
from test_programs import program  # noqa: F401, a fixture

pytestmark = pytest.mark.needs("openssl")
REMOTE_WRITE = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: itself
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
remote_write:
  - url: https://localhost:{https}/api/v1/write
    tls_config: {{ca_file: {ca}}}
"""


class Encrypted(Server):
    """A server with a certificate, and with TLS ports beside its plain one."""

    def __init__(self, directory):
        self.ca, key = make_certificate(directory)
        self.tls, self.https, self.lines = free_port(), free_port(), free_port()
        super().__init__(
            directory / "data",
            *("--tls-listen", f"127.0.0.1:{self.tls}", "--https", f"127.0.0.1:{self.https}"),
            *("--listen-lines", f"opentsdb=127.0.0.1:{self.lines},tls"),
            *("--tls-cert-file", self.ca, "--tls-key-file", key),
        )


@pytest.fixture
def encrypted(tmp_path):
    running = Encrypted(tmp_path)
    yield running
    running.kill()


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@pytest.mark.needs("redis-cli")
def test_redis_cli(encrypted):
    cli = ["redis-cli", "-h", "localhost", "-p", str(encrypted.tls), "--tls"]
    assert run(*cli, "--cacert", encrypted.ca, "TS.ADD", "a", "1", "2").stdout == "1\n"
    pipeline = "".join(f"TS.ADD b {at} 1\n" for at in range(1, 50_001))
    piped = run(*cli, "--cacert", encrypted.ca, "--pipe", input=pipeline)
    assert "errors: 0, replies: 50000" in piped.stdout
    assert len(encrypted.client().ts().range("b", "-", "+")) == 50_000
    untrusted = run(*cli, "PING")
    assert untrusted.returncode != 0 and "certificate verify failed" in untrusted.stderr


@pytest.mark.parametrize("protocol", [2, 3], ids=["resp2", "resp3"])
def test_redis_py(encrypted, protocol):
    client = redis.Redis(
        host="localhost", port=encrypted.tls, ssl=True, ssl_ca_certs=str(encrypted.ca), protocol=protocol
    )
    pipe = client.pipeline(transaction=False)
    for at in range(20_000):
        pipe.ts().add("series", at, at / 2)
    assert pipe.execute() == list(range(20_000))
    rows = client.ts().range("series", "-", "+")
    assert [tuple(row) for row in rows] == [(at, at / 2) for at in range(20_000)]


@pytest.mark.parametrize("protocol", ["2", "3"], ids=["resp2", "resp3"])
def test_program(program, protocol, encrypted):  # noqa: F811
    environment = {**os.environ, "REDIS_PORT": str(encrypted.tls), "RESP": protocol, "CA_FILE": str(encrypted.ca)}
    test_programs.check(program, environment)


@pytest.mark.needs("curl")
def test_curl(encrypted):
    curl = ["curl", "--silent", "--show-error", "--cacert", encrypted.ca]
    url = f"https://localhost:{encrypted.https}"
    body = "".join(f"room,host=a t={at} {at}\n" for at in range(1, 30_001))
    assert run(*curl, "--data-binary", "@-", f"{url}/write?precision=ms", input=body).returncode == 0
    exported = run(*curl, "-G", f"{url}/api/v1/export", "--data-urlencode", "match[]=room_t", "-d", "format=csv")
    assert len(exported.stdout.splitlines()) > 30_000
    assert "certificate" in run("curl", "--silent", "--show-error", url).stderr


@pytest.mark.needs("prometheus")
def test_prometheus_remote_write(tmp_path, encrypted):
    port = free_port()
    config = REMOTE_WRITE.format(port=port, https=encrypted.https, ca=encrypted.ca)
    prometheus = test_prometheus.begin(tmp_path, port, config)
    key = f'up{{instance="127.0.0.1:{port}",job="itself"}}'
    try:
        deadline = time.monotonic() + 60
        while not encrypted.client().exists(key):
            assert time.monotonic() < deadline, "nothing is written"
            time.sleep(0.1)
    finally:
        prometheus.kill()
        prometheus.wait()


def test_export(encrypted):
    encrypted.client().ts().add("room", 1000, 20.5)
    tool = [BINARY, "export", "csv", "--from", f"localhost:{encrypted.tls}", "--tls", "--cacert", encrypted.ca]
    assert "room,1000,20.5" in run(*tool).stdout


def test_lines(encrypted):
    context = ssl.create_default_context(cafile=encrypted.ca)
    with socket.create_connection(("localhost", encrypted.lines)) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as stream:
            for at in range(1, 10_001):
                stream.sendall(f"put cpu {at} {at} host=a\n".encode())
            stream.sendall(b"put cpu x 1 host=a\nexit\n")
            assert b"put" in stream.recv(4096)
    assert encrypted.client().ts().info('cpu{host="a"}').total_samples == 10_000
