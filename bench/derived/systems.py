"""What is measured: how each system is started, written to, asked, and how it mends its rows."""

import atexit
import json
import os
import pathlib
import re
import resource
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy as np

from month import HOURS, LEVEL_1, LEVEL_2, RULES, SITES, STEP_H, STEPS, rule_file

STEP_S = STEP_H * 3600

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/clients"), str(ROOT / "crates/bench/report")]

from prometheus_read import field, snappy, varint  # noqa: E402

PEERS = pathlib.Path(os.environ.get("PEER_HOME_ALL", pathlib.Path.home() / ".cache/latewood-peers"))
TICKS = os.sysconf("SC_CLK_TCK")
STALE = struct.pack("<Q", 0x7FF0000000000002)
PATIENCE_S = 300


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def packed(labels):
    """The labels of a series as remote write has them."""
    return b"".join(field(1, field(1, name.encode()) + field(2, text.encode())) for name, text in sorted(labels.items()))


def sample(value, at_ms):
    return b"\x12" + varint(10 + len(varint(at_ms))) + b"\x09" + value + b"\x10" + varint(at_ms)


def series(body):
    return b"\x0a" + varint(len(body)) + body


class System:
    """A server at a port; `cpu` is what it and its tools have taken, in seconds."""

    name, ready, is_peer = "", "/-/ready", True
    delete = "/api/v1/admin/tsdb/delete_series"

    def __init__(self, directory, start_s):
        self.directory, self.start_s, self.port = directory, start_s, free_port()
        self.past_cpu = 0.0
        self.directory.mkdir(parents=True)
        self.begin()

    def command(self):
        return [str(ROOT / f"bench/peers/{self.script}"), "run", str(self.port), str(self.directory), *self.options]

    def begin(self):
        environment = {**os.environ, **self.environment()}
        with open(self.directory.parent / f"{self.directory.name}.log", "ab") as said:
            self.process = subprocess.Popen(self.command(), stdout=said, stderr=said, env=environment)
        atexit.register(self.process.kill)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.ask(self.ready)
            except OSError:
                assert self.process.poll() is None and time.monotonic() < deadline, f"{self.name} does not start"
                time.sleep(0.05)

    def environment(self):
        return {}

    def cpu(self):
        words = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return self.past_cpu + (int(words[11]) + int(words[12])) / TICKS

    def end(self):
        self.past_cpu = self.cpu()
        self.process.terminate()
        self.process.wait(PATIENCE_S)

    def ask(self, path, body=None, head=(), **parameters):
        url = f"http://127.0.0.1:{self.port}{path}"
        if parameters:
            url += "?" + urllib.parse.urlencode(parameters, doseq=True)
        request = urllib.request.Request(url, body, dict(head))
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise OSError(f"{self.name}: {url[:300]}: {error.read()[:500]}") from error

    def write(self, message):
        head = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
        self.ask("/api/v1/write", snappy(message), head)

    def query(self, expr, at_s, path="/api/v1/query", **more):
        return json.loads(self.ask(path, query=expr, time=at_s, nocache=1, **more))["data"]["result"]

    def version(self):
        return os.environ.get(f"{self.name.upper()}_VERSION") or json.loads(self.ask("/api/v1/status/buildinfo"))["data"]["version"]

    def settle(self):
        """What was written can be read."""

    def stored(self, record, phase_s=0):
        """The rows of a rule as [series, step]."""
        end_s = self.start_s + HOURS * 3600 + STEP_S - 1
        found = self.query(f"{{__name__={json.dumps(record)}}}[31d]", end_s)
        by = next(rule.by for rule in RULES if rule.record == record)
        rows = np.full(({"device": 1000, "site": SITES, "all": 1}[by], STEPS), np.nan)
        for one in found:
            place = int(one["metric"].get("device" if by == "device" else "site", "0"))
            times, texts = zip(*one["values"])
            steps = np.round((np.array(times) - self.start_s - phase_s) / STEP_S, 6)
            assert np.all(steps == np.round(steps)), f"{record} has rows beside the steps: {steps[:3]}"
            within = (steps >= 1) & (steps <= STEPS)
            rows[place, steps[within].astype(int) - 1] = np.array(texts, dtype=float)[within]
        return rows

    def phase(self):
        """Seconds between whole steps and the rows."""
        found = self.query("{__name__='all:avg6h'}[31d]", self.start_s + HOURS * 3600 + STEP_S - 1)
        return round((found[0]["values"][0][0] - self.start_s) % STEP_S, 3)

    def tool(self, words):
        """Runs one, and counts what it takes."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE_S * 4)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.past_cpu += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def forget_rows(self):
        self.ask(self.delete, b"", **{"match[]": '{__name__=~"(device|site|all):.*"}'})


class Prometheus(System):
    name, script, options = "Prometheus", "prometheus.sh", ["--web.enable-admin-api"]

    def promtool(self):
        server = os.environ.get("PROMETHEUS")
        return os.environ.get("PROMTOOL") or (server and "promtool") or PEERS / "prometheus/usr/bin/promtool"

    def replay(self):
        """promtool makes blocks of the rules; of a chain one level at a time. What is there is deleted first."""
        self.forget_rows()
        end_s = self.start_s + HOURS * 3600 + STEP_S - 1
        rules = self.directory.parent / "month.yml"
        for level in [LEVEL_1, LEVEL_2]:
            rules.write_text(rule_file("month", level))
            words = ["tsdb", "create-blocks-from", "rules", "-q", f"--start={self.start_s}", f"--end={end_s}"]
            self.tool([self.promtool(), *words, f"--url=http://127.0.0.1:{self.port}", f"--output-dir={self.directory}/data", rules])
            # It looks for new blocks when it starts.
            self.end()
            self.begin()


class VictoriaMetrics(System):
    name, script, ready, options = "VictoriaMetrics", "victoriametrics.sh", "/health", ["-search.maxUniqueTimeseries=3000000"]

    def settle(self):
        self.ask("/internal/force_flush")

    def version(self):
        if told := os.environ.get("VICTORIAMETRICS_VERSION"):
            return told
        found = re.search(r'\nvm_app_version\{[^}]*short_version="([^"]*)"', self.ask("/metrics").decode())
        return found[1] if found and found[1] else "1.79.5 (Debian)"

    def replay(self):
        """vmalert replays all rules; of a chain one level at a time. What is there is deleted first."""
        self.forget_rows()
        moment = lambda seconds: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
        vmalert = os.environ.get("VMALERT") or PEERS / "victoria-metrics/usr/bin/vmalert"
        url = f"http://127.0.0.1:{self.port}"
        rules = self.directory.parent / "vm-month.yml"
        for level in [LEVEL_1, LEVEL_2]:
            rules.write_text(rule_file("month", level))
            words = [f"-rule={rules}", f"-datasource.url={url}", f"-remoteWrite.url={url}", "-replay.disableProgressBar", f"-datasource.queryStep={STEP_H}h"]
            words += [f"-replay.timeFrom={moment(self.start_s + STEP_S)}", f"-replay.timeTo={moment(self.start_s + HOURS * 3600)}"]
            # No rule of a level reads what another one writes.
            self.tool([vmalert, *words, "-replay.rulesDelay=1ms", "-remoteWrite.flushInterval=200ms"])
            self.settle()


class Latewood(System):
    name, is_peer, ready = "Latewood", False, "/-/ready"

    def __init__(self, directory, start_s, rules, binary):
        self.rules, self.binary = rules, binary
        super().__init__(directory, start_s)

    def command(self):
        words = [str(self.binary), "serve", "--dir", str(self.directory), "--listen", f"127.0.0.1:{free_port()}"]
        words += ["--http", f"127.0.0.1:{self.port}"]
        return words + (["--rules", str(self.rules)] if self.rules else [])

    def version(self):
        return subprocess.run([self.binary, "--version"], capture_output=True, text=True).stdout.split()[-1]

    def command_of_rules(self, verb, from_s, to_s):
        words = [self.binary, "rules", verb, "--url", f"http://127.0.0.1:{self.port}"]
        return [*words, "--from", str(from_s), "--to", str(to_s)]

    def corrections(self):
        groups = json.loads(self.ask("/api/v1/rules"))["data"]["groups"]
        return [rule["corrections"] | {"last": rule["lastEvaluation"]} for group in groups for rule in group["rules"]]
