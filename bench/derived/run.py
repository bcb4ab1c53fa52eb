#!/usr/bin/env python3
"""A month of 1,000 devices, of whose samples 30 % come late by up to three days, and 20 rules over it:
Latewood, which corrects rows, beside Prometheus and VictoriaMetrics, which do not, before and after their
replay. Writes docs/benchmarks/derived.json and derived.md.

    make derived                      all three, from a release build
    bench/derived/run.py --help

The month is past, and fed hour by hour in the order in which samples came. At each step every rule of a
peer is asked as its rule manager or vmalert would ask, with what was there by then, and its rows
are written back. Latewood evaluates by itself: it is told once, before the first sample, that the steps of the
month count (`latewood rules backfill`), so each sample, in order or late, is a change to work in.
PROMETHEUS, PROMTOOL, VICTORIAMETRICS and VMALERT name newer programs than those that the peers' scripts fetch.
"""

import argparse
import json
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
import time

import numpy as np

from grid import offset_ms
from month import AFTER_S, HOURS, PER_SITE, RULES, SLOT_S, STEP_H, STEPS, Month, differ, rule_file
from systems import ROOT, STALE, STEP_S, Latewood, Prometheus, VictoriaMetrics, packed, sample, series

import derived  # noqa: E402, beside the other pages: systems says where

# Hours that are fed before it is waited until their rows are right, and rows of how many series are watched.
CHUNK_H, WATCHED = 12, 6
# No row older than this can change: the longest delay, the longest window, and that of a rule over it.
REACH_H = 72 + 24 + 24 + 24


class Feed:
    """The month, sent to a system."""

    def __init__(self, month, system):
        self.month, self.system = month, system
        names = ({"__name__": "reading", "site": str(at // PER_SITE), "device": str(at)} for at in range(len(month.values)))
        self.labels = [packed(labels) for labels in names]

    def send(self, hour):
        by_device = {}
        for device, slot in zip(*(part.tolist() for part in self.month.of_hour(hour))):
            at_ms = round((self.system.start_s + slot * SLOT_S + AFTER_S) * 1000)
            value = struct.pack("<d", self.month.values[device, slot])
            by_device.setdefault(device, []).append(sample(value, at_ms))
        if by_device:
            self.system.write(b"".join(series(self.labels[device] + b"".join(rows)) for device, rows in by_device.items()))


class Lived:
    """Rules of a peer, evaluated at each step."""

    def __init__(self, system):
        self.system, self.seen, self.packed = system, {rule.record: set() for rule in RULES}, {}

    def hour(self, hour):
        """The rows of a rule are there before the next one is asked."""
        at_s = self.system.start_s + hour * 3600
        for rule in RULES:
            if rule.record.startswith("site:max1d_of"):
                self.system.settle()
            message, now = [], set()
            for row in self.system.query(rule.expr(), at_s):
                labels = tuple(sorted({**row["metric"], "__name__": rule.record}.items()))
                now.add(labels)
                message.append(self.row(labels, struct.pack("<d", float(row["value"][1])), at_s))
            message += [self.row(labels, STALE, at_s) for labels in self.seen[rule.record] - now]
            self.seen[rule.record] = now
            if message:
                self.system.write(b"".join(message))

    def row(self, labels, value, at_s):
        body = self.packed.get(labels)
        if body is None:
            body = self.packed[labels] = packed(dict(labels))
        return series(body + sample(value, at_s * 1000))


def judged(system, month, phase_s=0):
    """Rows that are wrong, by rule, and how many there are."""
    right = month.rows(HOURS, phase_s)
    wrong = {record: differ(system.stored(record, phase_s), rows) for record, rows in right.items()}
    if phase_s:
        # The last step is after the month.
        wrong = {record: rows[:, :-1] for record, rows in wrong.items()}
    return wrong, int(sum(np.count_nonzero(~np.isnan(rows)) for rows in right.values()))


def spans(hours):
    if not len(hours):
        return {"p50": 0, "p99": 0}
    return {"p50": round(float(np.percentile(hours, 50)), 4), "p99": round(float(np.percentile(hours, 99)), 4)}


def peer(kind, month, directory, quick):
    start_s = int(time.time()) // STEP_S * STEP_S - STEP_S - HOURS * 3600
    system = kind(directory / kind.__name__.lower(), start_s)
    feed, lived = Feed(month, system), Lived(system)
    begun = time.monotonic()
    for hour in range(1, HOURS + 1):
        feed.send(hour)
        system.settle()
        if hour % STEP_H == 0 and (not quick or hour % 24 == 0):
            lived.hour(hour)
        if hour % 24 == 0:
            print(f"{kind.name}: day {hour // 24} after {time.monotonic() - begun:.0f} s", flush=True)
    lived_s, lived_cpu = time.monotonic() - begun, system.cpu()
    wrong, rows = judged(system, month)
    late = month.first_late()
    hours = np.concatenate([(HOURS - np.maximum(late[record][at], (np.nonzero(at)[1] + 1) * STEP_H)) for record, at in wrong.items()])
    hours = np.where(np.isfinite(hours), hours, 0)
    report = {
        "version": system.version(),
        "rows": rows,
        "lived": {"seconds": round(lived_s, 1), "cpu_s": round(lived_cpu, 1)},
        "wrong_rows": int(hours.size),
        "wrong_row_hours": round(float(hours.sum())),
        "by_rule": {record: int(at.sum()) for record, at in wrong.items()},
    }
    begun, before = time.monotonic(), system.cpu()
    try:
        system.replay()
    except subprocess.TimeoutExpired as error:
        report["replay_gave_up_s"] = error.timeout
        system.end()
        return report
    replay_s, replay_cpu = time.monotonic() - begun, system.cpu() - before
    left, _ = judged(system, month, system.phase())
    left = int(sum(at.sum() for at in left.values()))
    report["replay"] = {
        "seconds": round(replay_s, 1),
        "cpu_s": round(replay_cpu, 1),
        "wrong_rows": left,
        "cpu_us_a_corrected_row": round(1e6 * replay_cpu / max(hours.size - left, 1), 1),
        "cpu_us_a_written_row": round(1e6 * replay_cpu / rows, 1),
        # From the late sample to a replay at the end of the month.
        "hours_until_right": spans(hours + replay_s / 3600),
    }
    system.end()
    return report


class Mended:
    """Latewood with its rules, watched."""

    def __init__(self, month, directory, binary):
        self.month, self.random = month, random.Random(1)
        self.rules = directory / "latewood-month.yml"
        group, due_s = self.group_due_soon()
        self.rules.write_text(rule_file(group, RULES))
        self.system = Latewood(directory / "latewood", due_s - HOURS * 3600, self.rules, binary)
        # The last rule of the group at its first step.
        while any(one["last"].startswith("0001") for one in self.system.corrections()):
            time.sleep(0.1)
        self.system.tool(self.system.command_of_rules("backfill", self.system.start_s, due_s))
        self.waits, self.changed, self.unseen = [], 0, 0

    def group_due_soon(self):
        """A name of the group whose first step is in seconds, and that step."""
        for number in range(100_000):
            now_ms = int(time.time() * 1000)
            wait_ms = (offset_ms(str(self.rules), f"month-{number}", STEP_S * 1000) - now_ms) % (STEP_S * 1000)
            if 4_000 < wait_ms < 20_000:
                return f"month-{number}", (now_ms + wait_ms) / 1000
        raise AssertionError("no name of a group is due soon")

    def run(self):
        feed, begun = Feed(self.month, self.system), time.monotonic()
        before = self.month.rows(0)
        for first in range(1, HOURS + 1, CHUNK_H):
            last = first + CHUNK_H - 1
            for hour in range(first, last + 1):
                feed.send(hour)
            acknowledged = time.monotonic()
            oldest = max(1, (last - REACH_H) // STEP_H)
            right = self.month.rows(last, first=oldest)
            self.watch(right, {record: rows[:, oldest - 1 :] for record, rows in before.items()}, oldest, acknowledged)
            for record, rows in right.items():
                before[record][:, oldest - 1 :] = rows
            if last % 24 == 0:
                print(f"Latewood: day {last // 24} after {time.monotonic() - begun:.0f} s", flush=True)
        return time.monotonic() - begun

    def watch(self, right, before, oldest, acknowledged):
        """Until rows of some series that change are right."""
        changed = {record: differ(before[record], rows) for record, rows in right.items()}
        self.changed += int(sum(at.sum() for at in changed.values()))
        series = [(record, place) for record, at in changed.items() for place in np.nonzero(at.any(axis=1))[0]]
        by_rule = {record: [pair for pair in series if pair[0] == record] for record, _ in series}
        waiting = [self.random.choice(by_rule[record]) for record in self.random.sample(sorted(by_rule), min(WATCHED, len(by_rule)))]
        waiting = {pair: changed[pair[0]][pair[1]].copy() for pair in waiting}
        deadline = time.monotonic() + 300
        while waiting:
            for (record, place), open_ in list(waiting.items()):
                label = "device" if record.startswith("device") else "site"
                selector = f'{{__name__="{record}"' + (f',{label}="{place}"}}' if not record.startswith("all") else "}")
                span = {"start": self.system.start_s + oldest * STEP_S, "end": self.system.start_s + HOURS * 3600, "step": STEP_S}
                found = json.loads(self.system.ask("/api/v1/query_range", query=selector, nocache=1, **span))["data"]["result"]
                stored = np.full(STEPS + 1 - oldest, np.nan)
                for at, text in found[0]["values"] if found else []:
                    stored[round((at - self.system.start_s) / STEP_S) - oldest] = float(text)
                good = open_ & ~differ(stored, right[record][place])
                self.waits += [time.monotonic() - acknowledged] * int(good.sum())
                waiting[record, place] = open_ & ~good
                if not waiting[record, place].any():
                    del waiting[record, place]
            if time.monotonic() > deadline:
                self.unseen += int(sum(at.sum() for at in waiting.values()))
                print(f"not right after 300 s: {list(waiting)}", flush=True)
                break
            time.sleep(0.05)


def latewood(month, directory, binary):
    plain = Latewood(directory / "plain", int(time.time()) - HOURS * 3600, None, binary)
    feed, begun = Feed(month, plain), time.monotonic()
    for hour in range(1, HOURS + 1):
        feed.send(hour)
    fed_s, fed_cpu = time.monotonic() - begun, plain.cpu()
    plain.end()
    mended = Mended(month, directory, binary)
    system = mended.system
    lived_s = mended.run()
    deadline = time.monotonic() + 300
    while any(one["pendingSteps"] for one in system.corrections()) and time.monotonic() < deadline:
        time.sleep(0.2)
    cpu = system.cpu()
    wrong, rows = judged(system, month)
    verify = subprocess.run([str(word) for word in system.command_of_rules("verify", system.start_s, system.start_s + HOURS * 3600)], capture_output=True, text=True)
    told = system.corrections()
    written = sum(one["rowsWritten"] + one["rowsDeleted"] for one in told)
    waits = np.array(mended.waits)
    report = {
        "version": system.version(),
        "rows": rows,
        "fed_without_rules": {"seconds": round(fed_s, 1), "cpu_s": round(fed_cpu, 1)},
        "lived": {"seconds": round(lived_s, 1), "cpu_s": round(cpu, 1)},
        "wrong_rows": int(sum(at.sum() for at in wrong.values())) + mended.unseen,
        "by_rule": {record: int(at.sum()) for record, at in wrong.items()},
        "verify_finds_nothing": verify.returncode == 0,
        "rows_that_changed": mended.changed,
        "rows_written_by_corrections": written,
        "seconds_until_right": spans(waits) | {"watched_rows": int(waits.size)},
        "wrong_row_hours": round(float(waits.mean()) / 3600 * mended.changed, 1),
        "cpu_us_a_written_row": round(1e6 * (cpu - fed_cpu) / max(written, 1), 1),
    }
    system.end()
    return report


def main():
    of = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    of.add_argument("--binary", default=ROOT / "target/release/latewood", type=pathlib.Path)
    of.add_argument("--out", default=ROOT / "docs/benchmarks", type=pathlib.Path)
    of.add_argument("--only", default="latewood,prometheus,victoriametrics")
    of.add_argument("--build", default="--release", help="how the binary was built, for the page")
    of.add_argument("--seed", default=1, type=int)
    of.add_argument("--quick", action="store_true", help="peers live a tenth of the month: to see whether it runs")
    read = of.parse_args()
    month = Month(read.seed)
    print(month.describe(), flush=True)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="latewood-derived-"))
    kinds = {
        "latewood": lambda: latewood(month, directory, read.binary),
        "prometheus": lambda: peer(Prometheus, month, directory, read.quick),
        "victoriametrics": lambda: peer(VictoriaMetrics, month, directory, read.quick),
    }
    out = read.out / "derived.json"
    report = json.loads(out.read_text()) if out.exists() else {"systems": {}}
    report |= {"month": month.describe(), "machine": derived.machine(), "seed": read.seed, "build": read.build}
    for name in read.only.split(","):
        report["systems"][name] = kinds[name]()
        print(name, json.dumps(report["systems"][name]), flush=True)
        out.write_text(json.dumps(report, indent=1) + "\n")
    (read.out / "derived.md").write_text(derived.drawn(report))
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
