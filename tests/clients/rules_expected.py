"""Rows of recording rules as they have to be: an instant query at each step over the final samples.

A rule is a `Rule` here and text in a rule file. `Expected` asks a server without rules, level by level of a
chain: what a rule gives is written there before the rules that read it are asked.
"""

import dataclasses
import datetime
import json
import urllib.error
import urllib.parse
import urllib.request

import prometheus_read
from rules_written import PATIENCE_S, STALE, is_stale, remote_write, same

FAR_MS = 10**14


@dataclasses.dataclass
class Rule:
    """`level` is 1 for what reads samples alone; `back_ms` is how far back it reads the metric with a retention."""

    record: str
    expr: str
    level: int
    labels: dict = dataclasses.field(default_factory=dict)
    back_ms: int = 0
    ahead_ms: int = 0


@dataclasses.dataclass
class Group:
    name: str
    interval_ms: int
    offset_ms: int
    limit: int
    rules: list

    def text(self):
        lines = [f"- name: {self.name}", f"  interval: {self.interval_ms}ms"]
        lines += [f"  query_offset: {self.offset_ms}ms"] * (self.offset_ms > 0)
        lines += [f"  limit: {self.limit}"] * (self.limit > 0)
        lines += ["  rules:"]
        for rule in self.rules:
            lines += [f"  - record: {rule.record}", f"    expr: {json.dumps(rule.expr)}"]
            lines += [f"    labels: {json.dumps(rule.labels)}"] * bool(rule.labels)
        return "\n".join(lines)


def ask(http, path, **parameters):
    url = f"http://127.0.0.1:{http}{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return json.load(answer)["data"]


def instant(http, expr, at_ms):
    """`{labels: value}`, or None where the expression has no result over these series."""
    try:
        answer = ask(http, "/api/v1/query", query=expr, time=f"{at_ms / 1000:.3f}", nocache=1)
    except urllib.error.HTTPError as error:
        told = json.load(error)
        assert told["errorType"] == "execution", told
        return None
    if answer["resultType"] == "scalar":
        return {(): float(answer["result"][1])}
    assert answer["resultType"] == "vector", answer["resultType"]
    return {tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in answer["result"]}


def rows_of(http, record, to_ms):
    """`{labels: {time: value}}` of what is stored."""
    matchers = [(prometheus_read.EQUAL, "__name__", record)]
    found = prometheus_read.samples(f"127.0.0.1:{http}", 0, to_ms, matchers)
    return {labels: dict(samples) for labels, samples in found.items()}


def milliseconds(text):
    """Of a time as JSON has it."""
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round(moment.timestamp() * 1000)


def apply_labels(rule, group, made):
    """The rows of a step as they are stored, `{labels: value}`."""
    if made is None or (group.limit and len(made) > group.limit):
        return {}
    rows = {}
    for labels, value in made.items():
        labels = {**dict(labels), "__name__": rule.record, **rule.labels}
        labels = tuple(sorted((name, text) for name, text in labels.items() if text))
        if labels in rows:
            return {}
        rows[labels] = value
    return rows


class Expected:
    """`http` is that of a server without rules that has the final samples; `stored` are the rows of the server
    that is judged, by record."""

    def __init__(self, http, groups, stored):
        self.http, self.groups, self.stored = http, groups, stored
        self.wrong, self.steps, self.rows = [], 0, 0

    def check(self, spans):
        """Compares all rules; `spans` are the first and the last step that count, by group and record."""
        rules = [(rule, group) for group in self.groups for rule in group.rules]
        for rule, group in sorted(rules, key=lambda pair: pair[0].level):
            first, last = spans[group.name, rule.record, tuple(rule.labels.items())]
            self.check_rule(rule, group, first, last)
        return self.wrong

    def phase(self, group, first):
        """Where in the interval the steps of a group are, from the rows that it has; `first` is one if it has none."""
        times = {at for rule in group.rules for rows in self.own(rule).values() for at in rows}
        phases = {at % group.interval_ms for at in times}
        phases = phases or {first % group.interval_ms}
        assert len(phases) == 1, f"rows of {group.name} are at {sorted(phases)} of {group.interval_ms} ms"
        return phases.pop()

    def own(self, rule):
        """Stored rows that are this rule's, by its labels."""
        own = rule.labels.items()
        return {labels: rows for labels, rows in self.stored[rule.record].items() if own <= dict(labels).items()}

    def check_rule(self, rule, group, first, last):
        stored, phase = self.own(rule), self.phase(group, first)
        first += (phase - first) % group.interval_ms
        # What is final has its last right value, and levels above read it.
        expected = {labels: {at: value for at, value in rows.items() if at < first} for labels, rows in stored.items()}
        before = {labels for labels, rows in stored.items() if not is_stale(rows.get(first - group.interval_ms, STALE))}
        for at in range(first, last + 1, group.interval_ms):
            made = apply_labels(rule, group, instant(self.http, rule.expr, at))
            for labels, value in made.items():
                expected.setdefault(labels, {})[at] = value
            for labels in before - made.keys():
                expected.setdefault(labels, {})[at] = STALE
            before = set(made)
            self.steps += 1
        self.compare(rule, group, stored, expected, first, last)
        rows = [(dict(labels), at, value) for labels, rows in expected.items() for at, value in rows.items()]
        rows.sort(key=lambda row: row[1])
        for place in range(0, len(rows), 500):
            remote_write(self.http, rows[place : place + 500])

    def compare(self, rule, group, stored, expected, first, last):
        within = lambda rows: {at for at in rows if first <= at <= last}
        for labels in stored.keys() | expected.keys():
            has, should = stored.get(labels, {}), expected.get(labels, {})
            self.rows += len(within(should))
            for at in sorted(within(has) | within(should)):
                if at not in has or at not in should or not same(has[at], should[at]):
                    self.wrong.append(
                        f"{group.name}: {rule.expr}: {dict(labels)} at {at}: {shown(has, at)} is stored,"
                        f" {shown(should, at)} is right"
                    )


def shown(rows, at):
    if at not in rows:
        return "nothing"
    return "a stale mark" if is_stale(rows[at]) else repr(rows[at])
