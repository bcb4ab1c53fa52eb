#!/usr/bin/env python3
"""Writing beside reading: TS.ADD in pipelines of 50, alone and while four users ask heavy questions in PromQL.
Writes docs/benchmarks/beside.json and beside.md.

    make beside              from a release build: three minutes; needs redis-benchmark
    bench/beside/run.py --help

Alone and beside alternate. What a write costs is the processor time of the threads that take it (the event loops and
the log), as the kernel counts it; the questions have threads of their own.
"""

import argparse
import http.client
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/derived"), str(ROOT / "crates/bench/report")]

import systems  # noqa: E402
from derived import machine  # noqa: E402

import beside  # noqa: E402, beside the other pages

HOSTS, SAMPLES, STEP_S = 1000, 2160, 10
QUESTIONS = [
    "sum by (region) (rate(cpu_user[5m]))",
    "max_over_time(cpu_user[1h])",
    "topk(5, rate(cpu_user[5m]))",
    "quantile(0.9, rate(cpu_user[5m]))",
]
STEPS, KEYS = 100, 10_000
WRITERS = ("loop-", "latewood-log")


class Latewood(systems.Latewood):
    def command(self):
        self.redis_port = systems.free_port()
        words = [str(self.binary), "serve", "--dir", str(self.directory), "--listen", f"127.0.0.1:{self.redis_port}"]
        return [*words, "--http", f"127.0.0.1:{self.port}"]

    def threads(self):
        """Seconds of processor time by the names of threads."""
        used = {}
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            name, ran = (task / "comm").read_text().strip(), (task / "schedstat").read_text().split()[0]
            used[name] = used.get(name, 0.0) + int(ran) / 1e9
        return used


def load(system):
    """A gauge of each host, whose samples are whole numbers, as those of TSBS are."""
    lines = []
    times = [(system.start_s + at * STEP_S) * 1000 for at in range(SAMPLES)]
    for host in range(HOSTS):
        values, value = [], host % 100
        for at in range(SAMPLES):
            value = min(100, max(0, value + (host * 7919 + at * 104_729) % 3 - 1))
            values.append(value)
        metric = {"__name__": "cpu_user", "host": f"host-{host}", "region": f"region-{host % 9}"}
        lines.append(json.dumps({"metric": metric, "values": values, "timestamps": times}))
    system.ask("/api/v1/import", "\n".join(lines).encode())


def asking(system, number, ends, told, failed):
    """One user, who asks until the end; what goes wrong is kept in `failed`."""
    try:
        ask_on(system, number, ends, told)
    except Exception as error:
        failed.append(error)


def ask_on(system, number, ends, told):
    end_s = system.start_s + SAMPLES * STEP_S
    times = {"start": end_s - 5 * 3600, "end": end_s, "step": 5 * 3600 / (STEPS - 1), "nocache": 1}
    path = "/api/v1/query_range?" + urllib.parse.urlencode({"query": QUESTIONS[number % len(QUESTIONS)], **times})
    connection = http.client.HTTPConnection("127.0.0.1", system.port)
    while not ends.is_set():
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200 and b'"metric":{' in body, body[:300]
        told[number] += 1


def write(system, samples):
    """What a run of redis-benchmark tells."""
    words = ["redis-benchmark", "-p", system.redis_port, "-P", 50, "-c", 8, "-r", KEYS, "-n", samples, "--csv"]
    words += ["TS.ADD", "w:__rand_int__", "*", "1", "ON_DUPLICATE", "LAST"]
    before, begun = system.threads(), time.monotonic()
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
    seconds, after = time.monotonic() - begun, system.threads()
    head, row = [line.strip('"').split('","') for line in done.stdout.strip().splitlines()[-2:]]
    found = dict(zip(head, row))
    grown = {name: after[name] - before.get(name, 0.0) for name in after}
    cpu_s = sum(used for name, used in grown.items() if name.startswith(WRITERS))
    return {
        "samples": samples,
        "seconds": round(seconds, 2),
        "cpu_us_a_sample": round(1e6 * cpu_s / samples, 4),
        "server_cpu_s": round(sum(grown.values()), 2),
        "p50_ms": float(found["p50_latency_ms"]),
        "p99_ms": float(found["p99_latency_ms"]),
    }


def main():
    of = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    of.add_argument("--binary", default=ROOT / "target/release/latewood", type=pathlib.Path)
    of.add_argument("--out", default=ROOT / "docs/benchmarks", type=pathlib.Path)
    of.add_argument("--repeats", default=7, type=int)
    of.add_argument("--samples", default=4_000_000, type=int, help="of a run")
    read = of.parse_args()
    with tempfile.TemporaryDirectory(prefix="latewood-beside-") as folder:
        system = Latewood(pathlib.Path(folder) / "data", int(time.time()) // 60 * 60 - SAMPLES * STEP_S, None, read.binary)
        load(system)
        # The series are made, and what is new is warm.
        write(system, read.samples)
        rows = {"alone": [], "beside": []}
        for _ in range(read.repeats):
            rows["alone"].append(write(system, read.samples))
            ends, told, failed = threading.Event(), [0] * len(QUESTIONS), []
            users = [threading.Thread(target=asking, args=(system, number, ends, told, failed)) for number in range(len(told))]
            for user in users:
                user.start()
            time.sleep(0.5)
            asked = sum(told)
            row = write(system, read.samples)
            row["queries_a_second"] = round((sum(told) - asked) / row["seconds"], 1)
            ends.set()
            for user in users:
                user.join()
            if failed:
                raise failed[0]
            rows["beside"].append(row)
            print(rows["alone"][-1], row, flush=True)
        report = {"machine": machine(), "version": system.version(), "questions": QUESTIONS, "steps": STEPS, "rows": rows}
        system.end()
    cost = {name: statistics.median(row["cpu_us_a_sample"] for row in runs) for name, runs in rows.items()}
    report["kept"] = round(cost["alone"] / cost["beside"], 3)
    (read.out / "beside.json").write_text(json.dumps(report, indent=1) + "\n")
    (read.out / "beside.md").write_text(beside.drawn(report))


if __name__ == "__main__":
    main()
