"""Rows of recording rules are right in the end, whatever came late, was changed or removed, and whenever the
server was killed.

Random rules in chains, and a client that writes all it can. When nothing waits any more, `latewood rules
verify` finds nothing, and neither does a path of its own: a server without rules, which has the final samples
in the order of time, is asked for each step of each rule, and all rows must be equal bit by bit.

LATEWOOD_ROUNDS kills are made; LATEWOOD_SEED replays rules and writes.
"""

import os
import random
import subprocess
import threading
import time

import pytest

from conftest import BINARY, Server
from peer import free_port
from rules_expected import Expected, Group, Rule, ask, milliseconds, rows_of
from rules_written import PATIENCE_S, STALE, Ledger, Series, key_of

OPTIONS = ["--promql-lookback", "3s"]
# Correcting is what is tested, and the rules are slow here.
RULED = ["--rules-correction-cpu", "90"]
RETENTION_MS = 6_000
SITES, DEVICES = ["north", "south", ""], ["d0", "d1", "d2", "d3"]
INTERVALS_MS = [250, 500, 1000, 2000]

# What one rule of the first level may be. `sum by` and the like of one selector are corrected for the groups
# that changed, the rest as a whole.
FIRST = [
    "sum by (site) (a)",
    "avg by (dev) (avg_over_time(b[2s]))",
    "max by (site, dev) (max_over_time(a[4s]))",
    "sum by (site) (rate(c[3s]))",
    "sum by (dev) (increase(c[5s] offset 1s))",
    "count by (site) (a > 20)",
    "stddev by (site) (quantile_over_time(0.5, b[3s]))",
    "min by (dev) (a offset 2s)",
    "a - on (dev) b",
    "topk(2, a)",
    "sum(a) / count(a)",
    'absent(a{dev="d1"})',
    'count_values("is", round(b / 50))',
    "max_over_time(sum by (site) (a)[4s:500ms])",
    "a > 50",
    "b and on (site) a",
    "sum without (dev) (deriv(a[4s]))",
    'label_replace(b, "part", "$1", "dev", "d(.*)")',
    "last_over_time(a[1s]) or b",
    "time() - timestamp(b)",
    "scalar(sum(a)) * 2",
    "quantile(0.3, changes(a[3s]))",
    "avg by (site) (avg_over_time(a[3s] @ end()))",
]
AHEAD = [("max by (site) (a offset -1s)", 1_000), ("sum(increase(b[2s] offset -1500ms))", 1_500)]
KEPT_SHORT = [("sum by (site) (r)", 3_000), ("max by (dev) (max_over_time(r[2s]))", 2_000), ("count(rate(r[4s]))", 4_000)]
# Over what another rule gives.
NEXT = [
    "avg_over_time({0}[3s])",
    "max by (site) ({0})",
    "sum({0})",
    "{0} - {0} offset 1s",
    "count by (dev) (changes({0}[4s]) > 1)",
    "sum by (site) (sum_over_time({0}[2s]))",
    "sum({0}) + sum({1})",
    "absent({0})",
    "{0} > 10 or {1}",
]
# Both are one rule in two halves: the same metric, told apart by a label.
HALVES = ["sum by (site) (a)", "sum by (site) (b)"]


def random_groups(random):
    """Some of each kind, in groups of several intervals, levels in any order over them."""
    rules = [Rule(f"l1:{at}", expr, 1) for at, expr in enumerate(random.sample(FIRST, 8))]
    rules += [Rule("l1:ahead", expr, 1, ahead_ms=ahead) for expr, ahead in random.sample(AHEAD, 1)]
    rules += [Rule("l1:kept", expr, 1, back_ms=back) for expr, back in random.sample(KEPT_SHORT, 1)]
    rules += [Rule("l1:half", expr, 1, {"half": str(at)}) for at, expr in enumerate(HALVES)]
    for level, count in [(2, 4), (3, 2)]:
        below = [rule.record for rule in rules if rule.level == level - 1]
        for at in range(count):
            rules.append(Rule(f"l{level}:{at}", random.choice(NEXT).format(*random.sample(below, 2)), level))
    groups = [
        Group(f"g{at}", random.choice(INTERVALS_MS), random.choice([0, 0, 0, 300, 1000]), random.choice([0, 0, 3]), [])
        for at in range(6)
    ]
    for rule in rules:
        random.choice(groups).rules.append(rule)
    for group in groups:
        random.shuffle(group.rules)
    return [group for group in groups if group.rules]


class Ruled(Server):
    def __init__(self, directory, *options):
        self.http = free_port()
        super().__init__(directory, "--http", f"127.0.0.1:{self.http}", *OPTIONS, *options)


class Writer(threading.Thread):
    """Writes until `done`; 30 % of its samples are late."""

    def __init__(self, ledger, seed):
        super().__init__(daemon=True)
        self.ledger, self.random = ledger, random.Random(seed)
        self.done, self.failure, self.names = threading.Event(), None, 0
        # Whoever holds it sees what is written stand still.
        self.turn = threading.Lock()
        self.late = self.written = 0

    def run(self):
        try:
            for metric in "abcr":
                for device in DEVICES[:3]:
                    self.begin(metric, device)
            while not self.done.is_set():
                with self.turn:
                    self.step()
                time.sleep(0.004)
        except Exception as error:
            self.failure = error

    def labels(self, metric, device):
        return {"__name__": metric, "dev": device, "site": self.random.choice(SITES)}

    def begin(self, metric, device, is_remote=None):
        labels = {name: text for name, text in self.labels(metric, device).items() if text}
        if is_remote if is_remote is not None else metric != "r" and self.random.random() < 0.4:
            key = key_of(labels)
            if key not in self.ledger.series:
                self.ledger.series[key] = Series(labels, is_remote=True)
                self.ledger.add(key, self.now(), self.value(metric))
            return key
        key = f"{metric}:{self.names}"
        self.names += 1
        self.ledger.create(key, Series(labels, retention=RETENTION_MS if metric == "r" else 0))
        return key

    def now(self):
        return int(time.time() * 1000)

    def value(self, metric):
        if metric == "c":
            return float(int(time.time() * 50) % 700)
        return self.random.choice([self.random.gauss(30, 25), float(self.random.randrange(100)), self.random.random() * 1e-3])

    def key(self, but=None):
        keys = [key for key, series in self.ledger.series.items() if but is None or not but(series)]
        return self.random.choice(keys)

    def step(self):
        kinds = {self.sample: 600, self.correct: 40, self.delete: 20, self.alter: 6, self.remove: 3, self.anew: 5}
        kinds |= {self.rename: 3, self.twin: 1, self.stale: 8}
        self.random.choices(list(kinds), list(kinds.values()))[0]()

    def sample(self):
        key = self.key()
        series, at = self.ledger.series[key], self.now()
        self.written += 1
        if self.random.random() < 0.3:
            self.late += 1
            at -= self.random.choice([self.random.randrange(50, 1_500), self.random.randrange(12_000)])
        self.ledger.add(key, at, self.value(series.labels["__name__"]))

    def some_time(self, series):
        return self.random.choice(list(series.samples)) if series.samples else self.now()

    def correct(self):
        key = self.key()
        self.ledger.add(key, self.some_time(self.ledger.series[key]), self.value("a"))

    def delete(self):
        key = self.key()
        first = self.some_time(self.ledger.series[key])
        self.ledger.delete(key, first, first + self.random.choice([0, 300, 2_000]))

    def alter(self):
        key = self.key(but=lambda series: series.is_remote)
        metric = self.ledger.series[key].labels["__name__"]
        labels = self.labels(metric, self.random.choice(DEVICES))
        self.ledger.alter(key, {name: text for name, text in labels.items() if text})

    def remove(self):
        if len(self.ledger.series) > 8:
            self.ledger.remove(self.key())

    def anew(self):
        """A series that begins with old samples."""
        if len(self.ledger.series) > 24:
            return self.remove()
        metric = self.random.choice("abc")
        key = self.begin(metric, self.random.choice(DEVICES))
        for _ in range(5):
            self.ledger.add(key, self.now() - self.random.randrange(8_000), self.value(metric))

    def rename(self):
        key = self.key(but=lambda series: series.is_remote)
        self.names += 1
        self.ledger.rename(key, f"renamed:{self.names}")

    def twin(self):
        """Two that look the same get a label that tells them apart, until one goes."""
        key = self.key(but=lambda series: series.is_remote or series.retention)
        self.names += 1
        twin = f"twin:{self.names}"
        self.ledger.copy(key, twin)
        if self.random.random() < 0.7:
            self.ledger.remove(twin)

    def stale(self):
        keys = [key for key, series in self.ledger.series.items() if series.is_remote]
        if keys:
            key, at = self.random.choice(keys), self.now() - self.random.randrange(3_000)
            # NaN does not replace a number, whatever the policy.
            if at not in self.ledger.series[key].samples:
                self.ledger.add(key, at, STALE)


class Judge:
    """Waits until nothing is pending and compares."""

    def __init__(self, server, groups, ledger, directory):
        self.server, self.groups, self.ledger, self.directory = server, groups, ledger, directory
        self.final = {}

    def told(self):
        """What the server says of each rule."""
        found = {}
        for group in ask(self.server.http, "/api/v1/rules")["groups"]:
            for rule in group["rules"]:
                assert rule["type"] == "recording", rule
                own = tuple((name, rule["labels"][name]) for name in ["half"] if name in rule.get("labels", {}))
                found[group["name"], rule["name"], own] = rule
        return found

    def settle(self):
        """Until all that was written so far is worked in. Returns the last step that counts."""
        slowest = max(group.interval_ms + group.offset_ms for group in self.groups)
        ahead = max(rule.ahead_ms for group in self.groups for rule in group.rules)
        last = int(time.time() * 1000)
        # Live: the step after it is evaluated, and look-ahead has passed.
        time.sleep((2 * slowest + ahead) / 1000)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for rule in {rule.record for group in self.groups for rule in group.rules}:
                ask(self.server.http, "/api/v1/query", query=rule, fresh=1, timeout="60s")
            told = self.told()
            waits = {key: rule["corrections"] for key, rule in told.items() if self.waits(rule["corrections"], last)}
            if not waits:
                return last, told
            assert time.monotonic() < deadline, waits
            time.sleep(0.2)

    @staticmethod
    def waits(corrections, last):
        assert corrections["corrected"], corrections
        if not corrections["isPending"]:
            return False
        # Steps that look ahead wait, but only newer ones.
        return not corrections["pendingSteps"] or milliseconds(corrections["pendingFrom"]) <= last

    def check(self):
        self.ledger.check()
        last, told = self.settle()
        self.verify(last)
        spans, stored = {}, {}
        for group in self.groups:
            for rule in group.rules:
                own = tuple(rule.labels.items())
                stored[rule.record] = rows_of(self.server.http, rule.record, last)
                first = self.since(told[group.name, rule.record, own])
                if rule.back_ms:
                    first = max(first, self.ledger.floors.get("r", 0) + rule.back_ms)
                self.stay(rule, stored[rule.record], first)
                spans[group.name, rule.record, own] = (first, last)
        wrong = self.compare(spans, stored)
        assert not wrong, f"{len(wrong)} rows are wrong:\n" + "\n".join(wrong[:20])
        return spans, stored

    def since(self, rule):
        return milliseconds(rule["corrections"]["since"]) if "corrections" in rule else 0

    def verify(self, last):
        words = ["rules", "verify", "--url", f"http://127.0.0.1:{self.server.http}", "--from", "0", "--to", f"{last / 1000:.3f}"]
        done = subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]

    def stay(self, rule, stored, first):
        """What was final before is as it was."""
        for labels, at, value in self.final.get((rule.record, *rule.labels.items()), []):
            now = stored.get(labels, {}).get(at)
            assert now is not None and repr(now) == repr(value), (rule, labels, at, value, now)
        rows = [(labels, at, value) for labels, rows in stored.items() for at, value in rows.items() if at < first]
        self.final[(rule.record, *rule.labels.items())] = rows

    def compare(self, spans, stored, change=None):
        """With a server of its own, which `change` may make wrong."""
        reference = Ruled(self.directory / f"reference-{time.monotonic_ns()}")
        try:
            self.ledger.write_in_order(reference)
            if change:
                change(reference)
            expected = Expected(reference.http, self.groups, stored)
            wrong = expected.check(spans)
            print(f"{expected.steps} steps, {expected.rows} rows of {len(stored)} rules, {len(wrong)} wrong", flush=True)
            return wrong
        finally:
            reference.kill()


def other_values(ledger):
    """Changes all samples of a series that some rule reads."""
    read = [pair for pair in ledger.series.items() if pair[1].labels["__name__"] in "ab" and not pair[1].is_remote]
    key, series = max(read, key=lambda pair: len(pair[1].samples))

    def change(server):
        with server.client() as client:
            for at in series.samples:
                client.execute_command("TS.ADD", key, at, 1234.5, "ON_DUPLICATE", "LAST")

    return change


@pytest.fixture
def world(tmp_path):
    seed = int(os.environ.get("LATEWOOD_SEED", 1))
    print(f"LATEWOOD_SEED={seed}")
    groups = random_groups(random.Random(seed))
    file = tmp_path / "rules.yml"
    file.write_text("groups:\n" + "\n".join(group.text() for group in groups) + "\n")
    server = Ruled(tmp_path / "data", "--rules", file, *RULED)
    ledger = Ledger(server)
    writer = Writer(ledger, seed)
    writer.start()
    yield random.Random(seed), server, writer, Judge(server, groups, ledger, tmp_path)
    writer.done.set()
    if server.process.poll() is None:
        server.kill()


def test_rows_are_right_in_the_end(world):
    random, server, writer, judge = world
    rounds = int(os.environ.get("LATEWOOD_ROUNDS", 3))
    for number in range(rounds):
        time.sleep(random.uniform(1, 3))
        assert writer.failure is None, writer.failure
        server.kill()
        time.sleep(random.choice([0, 0, 1.5]))
        server.start()
        if number % 10 == 9 and number + 1 < rounds:
            with writer.turn:
                judge.check()
    time.sleep(1)
    writer.done.set()
    writer.join()
    assert writer.failure is None, writer.failure
    spans, stored = judge.check()
    print(f"{writer.written} samples, {writer.late} late, {judge.ledger.answered} answers")
    assert judge.compare(spans, stored, other_values(judge.ledger)), "wrong samples change nothing"
