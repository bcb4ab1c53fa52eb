"""A process that rests before it starts anew."""

import os
import signal
import subprocess

from conftest import BINARY
from peer import free_port

REST_MS = 30_000


def test_sigterm_ends_the_rest_in_order(tmp_path):
    """Also the first process of a container, which only signals that it watches reach."""
    process = subprocess.Popen(
        [BINARY, "serve", "--dir", tmp_path, "--listen", f"127.0.0.1:{free_port()}"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LATEWOOD_HTTP": "off", "_LATEWOOD_ANEW_REST_MS": str(REST_MS)},
    )
    with process:
        try:
            assert any("resting" in line for line in process.stderr)
            process.send_signal(signal.SIGTERM)
            rest = process.stderr.read()
            assert process.wait() == 0
            assert "stopped while loading" in rest and "ready" not in rest
        finally:
            process.kill()
