#!/usr/bin/env python3
"""The public PromQL compliance queries (https://github.com/prometheus/compliance), asked of
Prometheus and of Latewood over the same data, no query tweaked.

    go install github.com/prometheus/compliance/promql/cmd/promql-compliance-tester@main
    tests/promql/compliance.py --tester TESTER --queries promql-test-queries.yml \\
        --prometheus PROMETHEUS --promtool PROMTOOL --latewood target/release/latewood

The data has the metrics of the demo service that the queries expect, made by a seed: three hours of
three instances, every 5 seconds. Latewood gets it in disorder. Prints what the tester prints; its
last lines are the score.

Two queries must fail for the tester, and do not in Prometheus 3, which takes any name for a label
("~invalid"): their results are compared instead.
"""

import argparse
import math
import pathlib
import random
import re
import subprocess
import tempfile
import time
import urllib.request

START_S, STEP_S, SAMPLES = 1_700_000_000, 5, 3 * 720
END_S = START_S + STEP_S * SAMPLES
INSTANCES = [f"demo.promlabs.com:{port}" for port in (10000, 10001, 10002)]
CONFIG = """
reference_target_config:
  query_url: 'http://127.0.0.1:{prometheus}'
test_target_config:
  query_url: 'http://127.0.0.1:{latewood}'
query_time_parameters:
  end_time: '{end}'
  range_in_seconds: 3600
  resolution_in_seconds: 10
"""


def labels(instance, **more):
    pairs = {"instance": instance, "job": "demo", **more}
    return ",".join(f'{name}="{value}"' for name, value in sorted(pairs.items()))


def counter(rng, per_step):
    total = 0.0
    for _ in range(SAMPLES):
        # A restart about once in three hours.
        total = 0.0 if rng.random() < 1 / SAMPLES else total + rng.random() * per_step
        yield total


def wave(rng, mean, swing):
    phase = rng.random() * 2 * math.pi
    for at in range(SAMPLES):
        yield mean + swing * math.sin(phase + at / 100) + rng.random() * swing / 10


def buckets(rng):
    """Cumulative counters of latencies, by upper bound."""
    bounds = [0.0001 * 1.5**at for at in range(25)]
    counts, series = [0] * (len(bounds) + 1), [[] for _ in range(len(bounds) + 1)]
    for _ in range(SAMPLES):
        for _ in range(rng.randrange(1, 8)):
            took = rng.expovariate(1) / 100
            for at, bound in enumerate([*bounds, math.inf]):
                counts[at] += took <= bound
        for at, count in enumerate(counts):
            series[at].append(count)
    shown = [repr(bound) for bound in bounds] + ["+Inf"]
    return zip(shown, series)


def all_series():
    """Metric, kind, and its series: labels and values, None where there is no sample."""
    rng = random.Random(1)
    memory = [
        (labels(one, type=kind), list(wave(rng, 1e9, 2e8)))
        for one in INSTANCES
        for kind in ("free", "used", "cached", "buffers")
    ]
    yield "demo_memory_usage_bytes", "gauge", memory
    cpu = [
        (labels(one, mode=mode), list(counter(rng, 4)))
        for one in INSTANCES
        for mode in ("idle", "system", "user")
    ]
    yield "demo_cpu_usage_seconds", "counter", cpu
    yield "demo_num_cpus", "gauge", [(labels(one), [4] * SAMPLES) for one in INSTANCES]
    disk = [(labels(one), list(wave(rng, 1e11 + at, 3e10))) for at, one in enumerate(INSTANCES)]
    yield "demo_disk_usage_bytes", "gauge", disk
    batch = [
        (labels(one), [START_S + at * STEP_S // 300 * 300 for at in range(SAMPLES)])
        for one in INSTANCES
    ]
    yield "demo_batch_last_success_timestamp_seconds", "gauge", batch
    gaps = [
        (labels(one), [1 if at // 60 % 3 else None for at in range(SAMPLES)]) for one in INSTANCES
    ]
    yield "demo_intermittent_metric", "gauge", gaps
    latency = [
        (labels(one, le=le, method=method, path="/api/foo", status="200"), values)
        for one in INSTANCES
        for method in ("GET", "POST")
        for le, values in buckets(rng)
    ]
    yield "demo_api_request_duration_seconds", "histogram", latency


def write_both(directory):
    """The data as OpenMetrics, and as batches of lines in disorder."""
    suffix = {"gauge": "", "counter": "_total", "histogram": "_bucket"}
    lines, batches = [], []
    for metric, kind, series in all_series():
        lines.append(f"# TYPE {metric} {kind}\n")
        for pairs, values in series:
            name = f"{metric}{suffix[kind]}{{{pairs}}}"
            samples = [
                (START_S + at * STEP_S, value)
                for at, value in enumerate(values)
                if value is not None
            ]
            lines += [f"{name} {value!r} {at}\n" for at, value in samples]
            ours = [f"{name} {value!r} {at * 1000}\n" for at, value in samples]
            batches += ["".join(ours[at : at + 100]) for at in range(0, len(ours), 100)]
    path = directory / "data.om"
    path.write_text("".join(lines) + "# EOF\n")
    random.Random(2).shuffle(batches)
    return path, batches


def wait_for(url):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(url)


def run(arguments, directory):
    path, batches = write_both(directory)
    blocks = ["tsdb", "create-blocks-from", "openmetrics", path, directory / "tsdb"]
    subprocess.run([arguments.promtool, *blocks], check=True, stdout=subprocess.DEVNULL)
    (directory / "prometheus.yml").write_text("")
    ports = {"prometheus": 9391, "latewood": 9392}
    config = directory / "compliance.yml"
    config.write_text(CONFIG.format(end=END_S, **ports))
    started = [
        subprocess.Popen(
            [
                arguments.prometheus,
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'tsdb'}",
                "--storage.tsdb.retention.time=100y",
                f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
            ],
            stderr=subprocess.DEVNULL,
        ),
        subprocess.Popen(
            [
                arguments.latewood,
                *("serve", "--dir", directory / "latewood", "--listen", "127.0.0.1:9393"),
                *("--http", f"127.0.0.1:{ports['latewood']}"),
            ],
            stderr=subprocess.DEVNULL,
        ),
    ]
    try:
        for port in ports.values():
            wait_for(f"http://127.0.0.1:{port}/-/ready")
        for batch in batches:
            url = f"http://127.0.0.1:{ports['latewood']}/api/v1/import/prometheus"
            urllib.request.urlopen(url, batch.encode()).read()
        queries = directory / "queries.yml"
        fails = re.compile(r"(.*\"~invalid\".*\n) *should_fail: true\n")
        queries.write_text(fails.sub(r"\1", arguments.queries.read_text()))
        files = ["-config-file", config, "-config-file", queries]
        subprocess.run([arguments.tester, *files], check=False)
    finally:
        for process in started:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("tester", "queries", "prometheus", "promtool", "latewood"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    with tempfile.TemporaryDirectory() as directory:
        run(parser.parse_args(), pathlib.Path(directory))


if __name__ == "__main__":
    main()
