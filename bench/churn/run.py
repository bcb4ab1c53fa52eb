#!/usr/bin/env python3
"""Series that come and go: each generation has 100,000 new ones with nine labels, ten minutes of data after the
one before, and nobody writes to the one before any more. Latewood with 512 MB, beside VictoriaMetrics and
Prometheus. Writes docs/benchmarks/churn.json and churn.md.

    make churn                     all of them, from a release build: two and a half hours, 8 GB
    bench/churn/run.py --only long --rest 0 --park-after 2s --every 50 --minutes 90
                                   Latewood alone towards 100 million series, as fast as it parks: 12 GB
    bench/churn/run.py --help

Every series gets two samples, five minutes of data apart. The data is fed as fast as it is taken, so idle
time passes faster than by the clock: Latewood parks a series after --park-after of the clock.
PROMETHEUS and VICTORIAMETRICS name newer programs than those that the peers' scripts fetch.
"""

import argparse
import functools
import json
import pathlib
import random
import shutil
import struct
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/derived"), str(ROOT / "crates/bench/report")]

import systems  # noqa: E402
from derived import machine  # noqa: E402

import churn  # noqa: E402, beside the other pages

SERIES, LINES = 100_000, 5_000
# Of a question over all series, of every system.
PATIENCE = "15m"
systems.PATIENCE_S = 900
STEP_S, SECOND_S = 600, 300
JOBS = 20


def labels_of(generation, number):
    """Nine labels of which three tell generations apart, as those of pods do."""
    return {
        "__name__": "cpu_usage",
        "cluster": f"c{number % 3}",
        "container": f"app-{number % 40}",
        "image": f"registry/app-{number % 40}:v{generation}",
        "instance": f"10.{number % 7}.{number // 250 % 250}.{number % 250}:9100",
        "job": f"job-{number % JOBS}",
        "namespace": f"team-{number % 90}",
        "node": f"node-{number % 500:03}",
        "pod": f"app-{number % 40}-{generation:04x}{number:06x}",
        "uid": f"{(generation * 7919 + number) * 2654435761 % 2**32:08x}-{generation}-{number}",
    }


@functools.lru_cache(2 * SERIES)
def line_to(generation, number):
    """Without its value. Each series is written to twice."""
    return line_of(labels_of(generation, number))


def line_of(labels):
    tags = ",".join(f"{name}={value}" for name, value in labels.items() if name != "__name__")
    return f"{labels['__name__']},{tags} value="


class Latewood(systems.Latewood):
    def __init__(self, directory, start_s, binary, memory, park_after):
        self.options = ["--memory", memory, "--park-after", park_after, "--promql-timeout", PATIENCE]
        super().__init__(directory, start_s, None, binary)

    def command(self):
        return [*super().command(), *self.options]

    def send(self, lines):
        self.ask("/write?precision=s", "\n".join(lines).encode())


class VictoriaMetrics(systems.VictoriaMetrics):
    options = ["-search.maxUniqueTimeseries=300000000", "-memory.allowedBytes=512MiB", f"-search.maxQueryDuration={PATIENCE}"]

    def send(self, lines):
        self.ask("/write?precision=s", "\n".join(lines).encode())


class Prometheus(systems.Prometheus):
    options = [*systems.Prometheus.options, f"--query.timeout={PATIENCE}"]


def memory(system):
    """MiB: what cannot be mapped away, and what is mapped from files."""
    found = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{system.process.pid}/status").read_text().splitlines())
    return [round(int(found[name].split()[0]) / 1024, 1) for name in ("RssAnon", "RssFile")]


def disk(system):
    return sum(file.stat().st_size for file in system.directory.rglob("*") if file.is_file())


def packed_of(generation, number, value, at_s):
    sample = systems.sample(struct.pack("<d", value), at_s * 1000)
    return systems.series(systems.packed(labels_of(generation, number)) + sample)


def send(system, generation, numbers, at_s, tries=1):
    """One sample each; whether all were taken. What is refused is sent again, a second later each time."""
    numbers = list(numbers)
    for at in range(0, len(numbers), LINES):
        some = numbers[at : at + LINES]
        for left in reversed(range(tries)):
            try:
                if hasattr(system, "send"):
                    system.send([f"{line_to(generation, number)}{number % 97} {at_s}" for number in some])
                else:
                    system.write(b"".join(packed_of(generation, number, number % 97, at_s) for number in some))
                break
            except OSError as error:
                if not left or system.process.poll() is not None:
                    print(f"{system.name}: {str(error)[-300:]}", flush=True)
                    return False
                time.sleep(1)
    return True


def timed(ask):
    begun = time.monotonic()
    found = ask()
    return found, round(time.monotonic() - begun, 2)


def counts(system, windows, end_s):
    """`count by (job)` over each window before the end."""
    rows = {}
    for name, window in windows.items():
        before = system.cpu()
        # Line protocol names the field too.
        metric = "cpu_usage_value" if hasattr(system, "send") else "cpu_usage"
        try:
            found, seconds = timed(lambda: system.query(f"count by (job) (last_over_time({metric}[{window}s]))", end_s))
            total = sum(int(row["value"][1]) for row in found)
            rows[name] = {"seconds": seconds, "cpu_s": round(system.cpu() - before, 2), "jobs": len(found), "series": total}
        except OSError as error:
            rows[name] = {"refused": str(error)[-300:]}
        print(system.name, name, rows[name], flush=True)
    return rows


def late(system, generations, start_s, picker):
    """Late samples to series of generations that are over, beside those in order to the last one."""
    rows, count, at_s = {}, 50_000, start_s + (generations - 1) * STEP_S + SECOND_S
    # Those of the last generation may rest, too.
    send(system, generations - 1, range(SERIES), at_s + 1)
    for percent in (0, 1, 10, 99):
        old = [(picker.randrange(generations - 1), picker.randrange(SERIES)) for _ in range(count * percent // 100)]
        before, begun = system.cpu(), time.monotonic()
        numbers = random.Random(percent).sample(range(SERIES), count - len(old))
        if not send(system, generations - 1, numbers, at_s + 2 + percent):
            break
        lines = [f"{line_of(labels_of(generation, number))}1 {start_s + generation * STEP_S + 60 + percent}" for generation, number in old]
        for at in range(0, len(lines), LINES):
            system.send(lines[at : at + LINES])
        rows[percent] = {"cpu_us_a_sample": round(1e6 * (system.cpu() - before) / count, 2), "seconds": round(time.monotonic() - begun, 2)}
        print(system.name, percent, "% late", rows[percent], flush=True)
    return rows


def figure(system, name):
    return float(next(line for line in system.ask("/metrics").decode().splitlines() if line.startswith(f"{name} ")).split()[1])


def restarted(system):
    """Starts it, and tells what that took."""
    _, seconds = timed(system.begin)
    row = {"seconds": seconds, "cpu_s": round(system.cpu() - system.past_cpu, 2), "samples": int(figure(system, "latewood_recovery_samples"))}
    row |= {"parked": int(figure(system, "latewood_series_parked")), "anon_mib": memory(system)[0]}
    print(system.name, row, flush=True)
    return row


def recovery(system, generations, rest_s):
    """A start after a kill, whose log has ten percent late samples to up to 50,000 series that rested, beside one after a stop."""
    start_s, picker, rounds, late_a_round = system.start_s, random.Random(2), 60, 11_100
    for generation in range(generations):
        at_s = start_s + generation * STEP_S
        taken = send(system, generation, range(SERIES), at_s) and send(system, generation, range(SERIES), at_s + SECOND_S)
        assert taken, "series were refused"
        time.sleep(rest_s)
    # The oldest rest first.
    until = time.monotonic() + 300
    while (parked := int(figure(system, "latewood_series_parked"))) < 3 * SERIES:
        assert time.monotonic() < until, f"only {parked} series rest"
        time.sleep(1)
    system.end()
    stopped = restarted(system)
    news = [line_of(labels_of(generations - 1, number)) for number in range(SERIES)]
    olds = [line_of(labels_of(picker.randrange(parked // SERIES - 1), picker.randrange(SERIES))) for _ in range(50_000)]
    for round_ in range(rounds):
        at_s = start_s + (generations - 1) * STEP_S + SECOND_S + 1 + round_
        some = random.Random(round_).sample(olds, late_a_round)
        lines = [f"{line}1 {at_s}" for line in news] + [f"{line}2 {start_s + 61 + round_}" for line in some]
        random.Random(round_).shuffle(lines)
        for at in range(0, len(lines), LINES):
            system.send(lines[at : at + LINES])
    system.process.kill()
    system.process.wait()
    told = {"stopped": stopped, "killed": restarted(system)}
    return {"version": system.version(), "rows": [{"series": generations * SERIES}], "recovery": told}


def run(system, read, generations, is_long):
    rows, start_s, took, until = [], system.start_s, 0.0, time.monotonic() + read.minutes * 60
    for generation in range(generations):
        before, begun = system.cpu(), time.monotonic()
        at_s, tries = start_s + generation * STEP_S, 60 if is_long else 1
        taken = send(system, generation, range(SERIES), at_s, tries) and send(system, generation, range(SERIES), at_s + SECOND_S, tries)
        took += time.monotonic() - begun
        if not taken:
            rows.append({"series": generation * SERIES, "refused": True, "anon_mib": memory(system)[0]})
            break
        is_last = generation + 1 == generations or time.monotonic() >= until
        if is_last or generation % read.every == read.every - 1:
            anon, mapped = memory(system)
            row = {"series": (generation + 1) * SERIES, "cpu_us_a_series": round(1e6 * (system.cpu() - before) / SERIES, 1)}
            rows.append(row | {"anon_mib": anon, "mapped_mib": mapped, "disk_bytes_a_series": round(disk(system) / row["series"], 1)})
            print(system.name, rows[-1], flush=True)
        if is_last:
            break
        time.sleep(read.rest)
    done = len(rows) and rows[-1]["series"] // SERIES
    report = {"version": system.version(), "rows": rows, "seconds": round(took, 1), "cpu_s": round(system.cpu(), 1)}
    if rows[-1].get("refused"):
        return report
    system.settle()
    end_s = start_s + (done - 1) * STEP_S + SECOND_S + 1
    windows = {"hour": 3600} if is_long else {"hour": 3600, "all": done * STEP_S + 60}
    report["count_by_job"] = counts(system, windows, end_s)
    if not system.is_peer and not is_long:
        report["late"] = late(system, done, start_s, random.Random(1))
    report["at_rest"] = {"anon_mib": memory(system)[0], "disk_bytes_a_series": round(disk(system) / rows[-1]["series"], 1)}
    system.end()
    before, (_, seconds) = system.past_cpu, timed(system.begin)
    report["start"] = {"seconds": seconds, "cpu_s": round(system.cpu() - before, 1), "anon_mib": memory(system)[0]}
    print(system.name, "start", report["start"], flush=True)
    return report


def main():
    of = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    of.add_argument("--binary", default=ROOT / "target/release/latewood", type=pathlib.Path)
    of.add_argument("--out", default=ROOT / "docs/benchmarks", type=pathlib.Path)
    of.add_argument("--only", default="latewood,awake,large,recovery,victoriametrics,prometheus")
    of.add_argument("--build", default="--release", help="how the binary was built, for the page")
    of.add_argument("--generations", default=100, type=int)
    of.add_argument("--generations-of", default="awake=10,recovery=10,long=1000", help="for single systems: latewood=10,prometheus=20,...")
    of.add_argument("--every", default=5, type=int, help="generations between two rows")
    of.add_argument("--rest", default=2.0, type=float, help="seconds after each generation")
    of.add_argument("--minutes", default=15, type=float, help="no more generations after that, of each system")
    of.add_argument("--memory", default="512mb")
    of.add_argument("--park-after", default="10s")
    read = of.parse_args()
    own = dict(word.split("=") for word in read.generations_of.split(",") if word)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="latewood-churn-"))
    out = read.out / "churn.json"
    report = json.loads(out.read_text()) if out.exists() else {"systems": {}}
    told = {"memory": read.memory, "park_after": read.park_after, "rest_s": read.rest}
    report |= {"machine": machine(), "build": read.build}
    if read.only != "long" or "memory" not in report:
        report |= told
    for name in read.only.split(","):
        generations = int(own.get(name, read.generations))
        start_s = (int(time.time()) // STEP_S - generations - 1) * STEP_S
        system = {
            "latewood": lambda: Latewood(directory / name, start_s, read.binary, read.memory, read.park_after),
            "awake": lambda: Latewood(directory / name, start_s, read.binary, read.memory, "0"),
            "large": lambda: Latewood(directory / name, start_s, read.binary, "8gb", "0"),
            "recovery": lambda: Latewood(directory / name, start_s, read.binary, read.memory, read.park_after),
            "long": lambda: Latewood(directory / name, start_s, read.binary, read.memory, read.park_after),
            "victoriametrics": lambda: VictoriaMetrics(directory / name, start_s),
            "prometheus": lambda: Prometheus(directory / name, start_s),
        }[name]()
        # A page may have systems that were run at different times.
        found = recovery(system, generations, read.rest) if name == "recovery" else run(system, read, generations, name == "long")
        report["systems"][name] = found | (told | {"note": ""} if name == "long" else {}) | {"commit": machine().rsplit(" ", 1)[1], "minutes": read.minutes}
        if system.process.poll() is None:
            system.end()
        shutil.rmtree(system.directory)
        out.write_text(json.dumps(report, indent=1) + "\n")
    (read.out / "churn.md").write_text(churn.drawn(report))
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
