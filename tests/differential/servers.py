"""Starts and stops the two servers of a comparison."""

import contextlib
import os
import pathlib
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = ROOT / "bench/peers/redistimeseries.sh"
BINARY = os.environ.get("LATEWOOD_BIN", ROOT / "target/debug/latewood")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def redistimeseries(directory, policy):
    """RedisTimeSeries 1.12, downloaded if necessary."""
    subprocess.run([PEER, "install"], check=True)
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    environment = {**os.environ, "DUP": policy, "PEER_DIR": str(directory)}
    with running([PEER, "run", str(port)], port, env=environment, stdout=subprocess.DEVNULL):
        yield port


@contextlib.contextmanager
def latewood(directory, policy, *options):
    port = free_port()
    # As RedisTimeSeries 1.12: no series is both source and destination.
    options = ["--ts-compatibility", "1.12", "--ts-chained-rules", "off", *options]
    command = [BINARY, "serve", "--dir", directory, "--listen", f"127.0.0.1:{port}", *options]
    with running(command, port, stderr=subprocess.DEVNULL):
        with socket.create_connection(("127.0.0.1", port)) as control:
            control.sendall(f"CONFIG SET ts-duplicate-policy {policy}\r\n".encode())
            assert control.recv(100) == b"+OK\r\n"
        yield port


@contextlib.contextmanager
def running(command, port, **options):
    process = subprocess.Popen(list(map(str, command)), **options)
    try:
        wait_for(process, port)
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for(process, port):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
                probe.sendall(b"PING\r\n")
                if probe.recv(7) == b"+PONG\r\n":
                    return
        except OSError:
            pass
        time.sleep(0.05)
    raise TimeoutError("the server does not answer")
