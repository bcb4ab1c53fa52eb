"""A Prometheus server that writes what it scrapes to Latewood."""

import subprocess
import time

from conftest import Server
from peer import free_port


def test_prometheus_writes_what_it_scrapes(tmp_path):
    http, port = free_port(), free_port()
    server = Server(tmp_path / "data", "--http", f"127.0.0.1:{http}")
    config = tmp_path / "prometheus.yml"
    config.write_text(
        f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: itself
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
remote_write:
  - url: http://127.0.0.1:{http}/api/v1/write
"""
    )
    prometheus = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stderr=subprocess.PIPE,
    )
    try:
        redis = server.client()
        key = f'up{{instance="127.0.0.1:{port}",job="itself"}}'
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert prometheus.poll() is None, prometheus.stderr.read().decode()
            if redis.exists(key) and len(redis.ts().range(key, "-", "+")) >= 3:
                break
            time.sleep(0.5)
        samples = redis.ts().range(key, "-", "+")
        assert len(samples) >= 3 and all(value == 1 for _, value in samples)
        buckets = redis.ts().queryindex(["__name__=prometheus_http_request_duration_seconds_bucket", "le=+Inf"])
        assert buckets
    finally:
        prometheus.kill()
        prometheus.wait()
        server.kill()
