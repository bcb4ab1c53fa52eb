"""Rule files: alerts on their way to Alertmanagers, and after a start."""

import contextlib
import http.server
import json
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import pytest

from conftest import Server
from peer import free_port

RULES = """
groups:
- name: machines
  interval: 100ms
  rules:
  - record: job:t:max
    expr: max by (job) (t)
  - alert: Hot
    expr: job:t:max > 1
    for: {lasts}
    labels: {{severity: page}}
    annotations: {{summary: '{{{{ $labels.job }}}} is at {{{{ $value }}}}'}}
"""
PATIENCE_S = 60


def until(question):
    """The first answer that is something."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(OSError):
            if answer := question():
                return answer
        assert time.monotonic() < deadline, "no answer"
        time.sleep(0.02)


class Alertmanager:
    """Takes alerts as Alertmanager does, and remembers them."""

    def __init__(self):
        self.alerts = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler):
                body = handler.rfile.read(int(handler.headers["Content-Length"]))
                assert handler.path == "/api/v2/alerts"
                self.alerts += json.loads(body)
                handler.send_response(200)
                handler.end_headers()

            def log_message(handler, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def of(self, name):
        return [alert for alert in self.alerts if alert["labels"]["alertname"] == name]


class Ruled(Server):
    """A server with the rules above."""

    def __init__(self, tmp_path, *options, lasts="0s"):
        self.http = free_port()
        rules = tmp_path / "rules.yml"
        rules.write_text(RULES.format(lasts=lasts))
        super().__init__(tmp_path / "data", "--http", f"127.0.0.1:{self.http}", "--rules", rules, *options)

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}", timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"]

    def query(self, text):
        return self.ask("/api/v1/query?" + urllib.parse.urlencode({"query": text}))["result"]

    def write(self, value):
        url = f"http://127.0.0.1:{self.http}/api/v1/import/prometheus"
        urllib.request.urlopen(url, f't{{job="a"}} {value}\n'.encode()).close()


@pytest.fixture
def ruled(tmp_path):
    with contextlib.ExitStack() as ends:

        def start(*options, **rules):
            server = Ruled(tmp_path, *options, **rules)
            ends.callback(lambda: server.process.poll() is None and server.kill())
            return server

        yield start


def test_an_alert_is_told_and_its_end_too(ruled):
    manager = Alertmanager()
    server = ruled("--alertmanager", manager.url, "--external-labels", "site=north")
    server.write(3)
    [first, *_] = until(lambda: manager.of("Hot"))
    assert first["labels"] == {"alertname": "Hot", "job": "a", "severity": "page", "site": "north"}
    assert first["annotations"] == {"summary": "a is at 3"}
    assert first["startsAt"] < first["endsAt"]
    [alert] = server.ask("/api/v1/alerts")["alerts"]
    assert (alert["state"], alert["value"]) == ("firing", "3e+00")
    server.write(0)
    ended = until(lambda: [alert for alert in manager.of("Hot")[1:] if alert["endsAt"] != first["endsAt"]])
    assert ended[0]["startsAt"] == first["startsAt"]
    until(lambda: server.ask("/api/v1/alerts")["alerts"] == [])
    assert server.stop() == 0


def test_an_alert_goes_on_after_a_kill(ruled):
    server = ruled(lasts="1s")
    server.write(3)
    [alert] = until(lambda: server.query("(timestamp(ALERTS_FOR_STATE) - ALERTS_FOR_STATE >= 2) * 0 + ALERTS_FOR_STATE"))
    since = alert["value"][1]
    server.kill()
    started = time.time()
    server.start()
    until(lambda: server.query(f"timestamp(ALERTS_FOR_STATE) > {started}"))
    # One that began anew would be as old as the server.
    [alert] = server.query("ALERTS_FOR_STATE")
    assert alert["value"][1] == since
    [rule] = [rule for group in server.ask("/api/v1/rules?type=alert")["groups"] for rule in group["rules"]]
    assert rule["state"] == "firing"


@pytest.mark.needs("prometheus-alertmanager")
def test_alertmanager_has_the_alert(ruled, tmp_path):
    port = free_port()
    config = tmp_path / "alertmanager.yml"
    config.write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    process = subprocess.Popen(
        [
            "prometheus-alertmanager",
            f"--config.file={config}",
            f"--storage.path={tmp_path / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ]
    )
    try:
        url = f"http://127.0.0.1:{port}"

        def alerts():
            with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=PATIENCE_S) as answer:
                return json.load(answer)

        until(lambda: alerts() == [])
        server = ruled("--alertmanager", url)
        server.write(3)
        [alert] = until(alerts)
        assert alert["labels"] == {"alertname": "Hot", "job": "a", "severity": "page"}
        assert alert["annotations"] == {"summary": "a is at 3"}
        server.write(0)
        until(lambda: alerts() == [])
    finally:
        process.kill()
        process.wait()
