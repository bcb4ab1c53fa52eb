"""A RedisTimeSeries for one test, as the reference."""

import os
import pathlib
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench/peers/redistimeseries.sh"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Peer:
    """A redis-server with the module loaded; the first one downloads it."""

    def __init__(self, directory):
        subprocess.run([SCRIPT, "install"], check=True)
        self.port = free_port()
        environment = {**os.environ, "PEER_DIR": str(directory), "DUP": "BLOCK"}
        self.process = subprocess.Popen([SCRIPT, "run", str(self.port)], env=environment, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.wait()
