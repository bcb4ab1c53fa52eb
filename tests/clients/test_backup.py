"""Backups in an S3 object store: moto's server."""

import functools
import http.server
import json
import math
import pathlib
import subprocess
import threading

import pytest

from conftest import BINARY, Server
from s3 import S3

SAMPLES = 1_200_000
# Bytes of a part.
PART_BYTES = 8 << 20
BUCKET = "backups"
URL = f"s3://{BUCKET}/latewood/monday"


class Store(S3):
    """The object store, with a backup in its bucket."""

    def place(self, name):
        return {"Bucket": BUCKET, "Key": f"latewood/monday/{name}"}

    def read(self, name):
        return self.client.get_object(**self.place(name))["Body"].read()

    def listing(self):
        return json.loads(self.read("BACKUP.json"))

    def tool(self, *words):
        """Runs `latewood` with this store as S3."""
        environment = self.environment(self.settings)
        return subprocess.run([BINARY, *words], env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture
def store():
    running = Store(BUCKET)
    yield running
    running.close()


def fill(client):
    """Samples in a block, and enough in the log for a multipart upload."""
    keys = [f"room:{number}" for number in range(7)]
    for key in keys:
        client.execute_command("TS.CREATE", key)
    for first in range(0, SAMPLES, 1000):
        words = []
        for at in range(first, first + 1000):
            words += [keys[at % 7], at, math.sqrt(at)]
        client.execute_command("TS.MADD", *words)
        if first == 10_000:
            client.save()


def test_a_served_database_goes_to_s3_and_comes_back(store, server, tmp_path):
    client = server.client()
    fill(client)
    backup = ["backup", "--to", URL, "--server", f"127.0.0.1:{server.port}"]
    done = store.tool(*backup)
    assert done.returncode == 0, done.stderr
    listing = store.listing()
    assert any(file["bytes"] > PART_BYTES for file in listing["files"]), "nothing went in parts"
    assert not (pathlib.Path(server.directory) / "upload").exists()

    target = tmp_path / "restored"
    done = store.tool("restore", URL, str(target))
    assert done.returncode == 0, done.stderr
    assert "every checksum was verified" in done.stdout
    restored = Server(target)
    try:
        for key in sorted(client.keys()):
            for aggregator in ["count", "sum", "max"]:
                command = ["TS.RANGE", key, "-", "+", "AGGREGATION", aggregator, 1000]
                assert restored.client().execute_command(*command) == client.execute_command(*command)
    finally:
        restored.kill()

    refused = store.tool(*backup)
    assert refused.returncode == 1 and "is not empty: it contains" in refused.stderr

    # A changed or missing object.
    name = next(file["path"] for file in listing["files"] if file["path"].startswith("blocks/"))
    good = store.read(name)
    for number, bad in enumerate([good[:-1], good[:40] + b"x" + good[41:], None]):
        if bad is None:
            store.client.delete_object(**store.place(name))
        else:
            store.client.put_object(Body=bad, **store.place(name))
        place = tmp_path / f"refused{number}"
        refused = store.tool("restore", URL, str(place))
        assert refused.returncode == 1 and name in refused.stderr, refused.stderr
        assert not (place / "FORMAT").exists()
        checked = store.tool("check", str(place))
        assert checked.returncode != 0, checked.stdout


def test_a_backup_comes_back_from_a_web_server(store, server, tmp_path):
    client = server.client()
    client.execute_command("TS.ADD", "room:1", 1000, 21.5)
    folder = tmp_path / "web"
    done = store.tool(
        "backup", "--to", f"file://{folder}/monday", "--server", f"127.0.0.1:{server.port}"
    )
    assert done.returncode == 0, done.stderr
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{web.server_port}/monday"
        target = tmp_path / "restored"
        done = store.tool("restore", url, str(target))
        assert done.returncode == 0, done.stderr
        refused = store.tool("backup", "--to", f"{url}2", "--server", f"127.0.0.1:{server.port}")
        assert refused.returncode == 1 and "are supported for restore only" in refused.stderr, refused.stderr
        web.shutdown()
    restored = Server(target)
    try:
        assert restored.client().execute_command("TS.GET", "room:1") == [1000, 21.5]
    finally:
        restored.kill()


def test_what_is_missing_in_s3_is_said(store, server, tmp_path):
    target = tmp_path / "restored"
    refused = store.tool("restore", URL, str(target))
    assert refused.returncode == 1 and "no backup at" in refused.stderr, refused.stderr
    assert not target.exists()
    backup = ["backup", "--server", f"127.0.0.1:{server.port}", "--to"]
    refused = store.tool(*backup, "s3://no-such-bucket/monday")
    assert refused.returncode == 1 and "no-such-bucket" in refused.stderr, refused.stderr
    assert not (pathlib.Path(server.directory) / "upload").exists()
