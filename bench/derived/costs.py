#!/usr/bin/env python3
"""What rules cost a sample that is in order: TS.ADD to servers that run beside each other, without rules, with
20 that watch nothing of it, with 20 that watch all of it, and with 10,000. Samples are 0 to 5 s behind the
clock, groups run every 15 s. Adds to docs/benchmarks/derived.json and derived.md.

    bench/derived/costs.py --binary target/release/latewood

Servers take turns of some seconds, so that what else a machine does hits all of them. `--instructions` counts
under valgrind instead.
"""

import argparse
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request

from systems import ROOT, TICKS, free_port

import derived  # noqa: E402, beside the other pages: systems says where

SERIES, PIPELINE = 1_000, 50


def rules(count, metric, groups):
    """`count` rules over a metric, in so many groups of 15 s."""
    lines = ["groups:"]
    for group in range(groups):
        lines += [f"- name: g{group}", "  interval: 15s", "  rules:"]
        for at in range(count // groups):
            function = ["avg", "max", "min", "sum"][at % 4]
            lines += [f"  - record: r{group}:{at}", f"    expr: {function} by (site) ({function}_over_time({metric}[{1 + at % 5}m]))"]
    return "\n".join(lines) + "\n"


KINDS = {
    "without rules": None,
    "20 unwatched": rules(20, "other", 2),
    "20 watched": rules(20, "reading", 2),
    "10,000 rules": rules(10_000, "other", 20),
}


def command(*words):
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class Server:
    def __init__(self, binary, directory, text, within=()):
        self.port, self.http = free_port(), free_port()
        words = [*within, binary, "serve", "--dir", directory, "--listen", f"127.0.0.1:{self.port}", "--http", f"127.0.0.1:{self.http}"]
        if text:
            file = directory.parent / f"{directory.name}.yml"
            file.write_text(text)
            words += ["--rules", file]
        self.said = open(directory.parent / f"{directory.name}.log", "wb")
        self.process = subprocess.Popen([str(word) for word in words], stderr=self.said)
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
                break
            except OSError:
                assert self.process.poll() is None, "it does not start"
                time.sleep(0.1)
        self.random = random.Random(1)
        while not self.ask("PING").startswith(b"+PONG"):
            time.sleep(0.1)

    def ask(self, *words):
        self.socket.sendall(command(*words))
        return self.answers(1)

    def answers(self, count):
        """Replies, of which each but a bulk string is a line."""
        data = b""
        while data.count(b"\r\n") < count:
            data += self.socket.recv(1 << 16)
        return data

    def begin(self, series=SERIES, metric="reading"):
        for first in range(0, series, PIPELINE):
            some = range(first, min(first + PIPELINE, series))
            labels = lambda at: ["LABELS", "__name__", metric, "site", at % 20, "device", at]
            self.socket.sendall(b"".join(command("TS.CREATE", f"{metric}:{at}", *labels(at)) for at in some))
            assert b"-" not in self.answers(len(some))

    def adds(self, seconds=None, count=None):
        """Batches, until it is enough; returns how many samples."""
        sent, end = 0, seconds and time.monotonic() + seconds
        while (end and time.monotonic() < end) or (count and sent < count):
            now = int(time.time() * 1000)
            batch = (command("TS.ADD", f"reading:{self.random.randrange(SERIES)}", now - self.random.randrange(5_000), self.random.random(), "ON_DUPLICATE", "LAST") for _ in range(PIPELINE))
            self.socket.sendall(b"".join(batch))
            self.answers(PIPELINE)
            sent += PIPELINE
        return sent

    def cpu(self):
        words = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / TICKS

    def metric(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def info(self, name):
        self.socket.sendall(command("INFO", "memory"))
        data = self.socket.recv(1 << 16)
        head, _, _ = data.partition(b"\r\n")
        while len(data) < len(head) + 2 + int(head[1:]) + 2:
            data += self.socket.recv(1 << 16)
        return next(int(line.split(":")[1]) for line in data.decode().splitlines() if line.startswith(name + ":"))

    def end(self):
        self.process.terminate()
        self.process.wait(120)


def paired(binary, directory, seconds, rounds):
    servers = {name: Server(binary, directory / name.replace(" ", "-"), text) for name, text in KINDS.items()}
    for server in servers.values():
        server.begin()
        server.adds(seconds)
    nanoseconds = {name: [] for name in servers}
    logged = {name: 0 for name in servers}
    for number in range(rounds):
        for name in random.Random(number).sample(list(servers), len(servers)):
            server = servers[name]
            # What is fixed a second, and what runs whether or not there are samples, is not the samples'.
            idle = server.cpu()
            time.sleep(seconds / 2)
            idle = (server.cpu() - idle) * 2
            before, log = server.cpu(), server.metric("latewood_wal_written_bytes_total")
            sent = server.adds(seconds)
            nanoseconds[name].append({"all": 1e9 * (server.cpu() - before) / sent, "idle": 1e9 * idle / sent})
            logged[name] += (server.metric("latewood_wal_written_bytes_total") - log) / sent
    plain = nanoseconds["without rules"]
    found = {}
    for name, rows in nanoseconds.items():
        ratios = [row["all"] / of["all"] for row, of in zip(rows, plain)]
        net = [(row["all"] - row["idle"]) / (of["all"] - of["idle"]) for row, of in zip(rows, plain)]
        found[name] = {
            "ns_a_sample": round(statistics.median(row["all"] for row in rows), 1),
            "ratio": round(statistics.median(ratios), 4),
            "ratio_without_idle": round(statistics.median(net), 4),
            "log_bytes_a_sample": round(logged[name] / rounds, 2),
        }
    for server in servers.values():
        server.end()
    return found


def memory(binary, directory, series):
    """Bytes a series of idle ones."""
    found = {}
    for name in KINDS:
        server = Server(binary, directory / f"memory-{name.replace(' ', '-')}", KINDS[name])
        before = server.info("used_memory")
        server.begin(series)
        time.sleep(2)
        found[name] = round((server.info("used_memory") - before) / series, 1)
        server.end()
    return found


def instructions(binary, directory):
    """A sample's, from runs of two lengths."""
    found = {}
    for name in KINDS:
        counts = []
        for samples in (20_000, 60_000):
            place = directory / f"count-{name.replace(' ', '-')}-{samples}"
            server = Server(binary, place, KINDS[name], ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"])
            server.begin()
            server.adds(count=samples)
            server.end()
            said = pathlib.Path(server.said.name).read_text(errors="replace")
            counts.append(int(said.split("Collected :")[1].split()[0]))
        found[name] = round((counts[1] - counts[0]) / 40_000, 1)
        print(name, found[name], flush=True)
    return found


def waits(server, until):
    """Microseconds that single samples took, one after the other."""
    took = []
    while not until():
        for _ in range(200):
            words = "TS.ADD", f"reading:{server.random.randrange(SERIES)}", int(time.time() * 1000), 1, "ON_DUPLICATE", "LAST"
            begun = time.perf_counter()
            server.ask(*words)
            took.append(1e6 * (time.perf_counter() - begun))
    took.sort()
    return {"samples": len(took), "p50": round(took[len(took) // 2], 1), "p99.9": round(took[len(took) * 999 // 1000], 1), "most": round(took[-1], 1)}


def beside(binary, directory, steps=1_000):
    """How long a sample takes while a backfill writes a million rows, and while nothing else goes on."""
    text = "groups:\n- name: g\n  interval: 15s\n  rules:\n  - record: r\n    expr: max by (device) (max_over_time(reading[1m]))\n"
    server = Server(binary, directory / "beside", text)
    server.begin()
    start_s = int(time.time()) - 15 * steps
    for first in range(0, steps, 10):
        for device in range(0, SERIES, PIPELINE):
            rows = [("TS.MADD", *(word for at in range(10) for word in (f"reading:{one}", (start_s + 15 * (first + at)) * 1000, at))) for one in range(device, device + PIPELINE)]
            server.socket.sendall(b"".join(command(*row) for row in rows))
            server.answers(11 * PIPELINE)
    end = time.monotonic() + 10
    alone = waits(server, lambda: time.monotonic() > end)
    words = [binary, "rules", "backfill", "--url", f"http://127.0.0.1:{server.http}", "--from", str(start_s)]
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
    rows = lambda: server.metric("latewood_rules_corrected_rows_total")
    during = waits(server, lambda: rows() >= SERIES * (steps - 10))
    server.end()
    return {"alone": alone, "during": during}


def main():
    of = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    of.add_argument("--binary", default=ROOT / "target/release/latewood", type=pathlib.Path)
    of.add_argument("--out", default=ROOT / "docs/benchmarks", type=pathlib.Path)
    of.add_argument("--build", default="--release", help="how the binary was built, for the page")
    of.add_argument("--seconds", default=2.0, type=float)
    of.add_argument("--rounds", default=15, type=int)
    of.add_argument("--series", default=1_000_000, type=int)
    of.add_argument("--instructions", action="store_true")
    read = of.parse_args()
    out = read.out / "derived.json"
    all_ = json.loads(out.read_text()) if out.exists() else {}
    report = all_.get("costs", {}) | {"machine": derived.machine(), "build": read.build}
    with tempfile.TemporaryDirectory(prefix="latewood-costs-") as place:
        if read.instructions:
            report["instructions_a_sample"] = instructions(read.binary, pathlib.Path(place))
        else:
            report["paired"] = paired(read.binary, pathlib.Path(place), read.seconds, read.rounds)
            print(json.dumps(report["paired"]), flush=True)
            report["beside_a_backfill"] = beside(read.binary, pathlib.Path(place))
            print(json.dumps(report["beside_a_backfill"]), flush=True)
            report["bytes_a_series"] = memory(read.binary, pathlib.Path(place), read.series)
    all_["costs"] = report
    out.write_text(json.dumps(all_, indent=1) + "\n")
    (read.out / "derived.md").write_text(derived.drawn(all_))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
