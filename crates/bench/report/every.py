#!/usr/bin/env python3
"""Makes the reports of `catalog.json` one after the other, and the page over all of them.

Called as `latewood-bench all`, with the path of that program first. A measurement that fails does not
keep the others from being made, nor does a peer that this machine cannot run: it is left out, and
named on its page. Reports whose peers not every machine can have come last in the catalog, and
Prometheus, which is left alone for over a minute after each load, on its own.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
CATALOG = json.loads((HERE / "catalog.json").read_text())
OUT, OUT_QUICK = "docs/benchmarks", "target/benchmarks-quick"
# How often every cell runs, where a report does not say another number.
REPEATS, REPEATS_QUICK = 5, 2
THREADS_MAX = 1024
PEERS = re.compile(r" --start (?!latewood)\S+")


def options(words):
    of = argparse.ArgumentParser(
        "latewood-bench all",
        description="Makes every report of docs/benchmarks again, in two to three hours, or the same from less data.",
    )
    of.add_argument("--out", metavar="DIR", help=f"folder for runs and pages [default: {OUT}; quick: {OUT_QUICK}]")
    of.add_argument(
        "--repeats",
        type=int,
        choices=range(1, 1001),
        metavar="N",
        help="runs of every cell, in all reports that repeat theirs [default: 5, fewer where one takes long;"
        " quick: 2 or 1]",
    )
    of.add_argument("--quick", action="store_true", help="less data: the same picture in minutes, to see whether it is true")
    of.add_argument("--only", metavar="NAME,..", action="append", default=[], help="only these reports")
    of.add_argument(
        "--alone",
        action="store_true",
        help="only Latewood, without the reports lines, lines-prometheus, remote and cluster: nothing is fetched",
    )
    read = of.parse_args(words)
    read.only = ",".join(read.only).split(",") if read.only else []
    names = [one["name"] for one in CATALOG]
    for name in read.only:
        if name not in names:
            of.error(f"--only {name}: must be one of {', '.join(names)}")
    read.out = pathlib.Path(read.out or (OUT_QUICK if read.quick else OUT))
    return read


def up_to(cores):
    """From one thread to as many as there are cores, doubling."""
    cores = min(cores, THREADS_MAX)
    counts = [1 << at for at in range(cores.bit_length()) if 1 << at < cores]
    return ",".join(map(str, [*counts, cores]))


def command(one, of):
    """The words of a report: how often each cell runs is filled in, and the threads."""
    usual = REPEATS_QUICK if of.quick else REPEATS
    words = one["quick" if of.quick else "full"].replace("{threads}", up_to(os.cpu_count() or 1))
    words = words.replace("{repeats}", str(of.repeats or usual))
    words = re.sub(r"{(\d)}", lambda found: str(of.repeats or found[1]), words)
    if of.alone:
        words = PEERS.sub("", words)
    return [*words.split(), "--json", str(of.out / f"{one['name']}.json"), "--out", str(of.out)]


def chosen(of):
    """Names and words of the reports that are made, and the names of those that `--alone` leaves out."""
    asked = [one for one in CATALOG if not of.only or one["name"] in of.only]
    skipped = [one["name"] for one in asked if of.alone and re.match("lines|remote|cluster", one["name"])]
    return {one["name"]: command(one, of) for one in asked if one["name"] not in skipped}, skipped


def main(program, *words):
    of = options(words)
    reports, skipped = chosen(of)
    for name in skipped:
        print(f"{name}: left out by --alone, since it needs others", file=sys.stderr)
    if not reports:
        sys.exit("nothing is left to measure")
    of.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for name, words in reports.items():
        print(f"latewood-bench {shlex.join(words)}", file=sys.stderr)
        began = time.monotonic()
        if subprocess.run([program, *words]).returncode:
            failed.append(name)
        else:
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    subprocess.run([sys.executable, HERE / "report.py", "--all", of.out], check=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
