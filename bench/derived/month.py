"""A month of devices that go offline and send all later, the rules over it, and what each row has to be.

Rows are computed here with numpy and by no server that is measured. All times are hours since the start;
`arrived` is the hour after which a sample is there.
"""

import dataclasses
import warnings

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

SITES, PER_SITE, HOURS = 20, 50, 720
# Hours between the steps of rules. promtool replays nothing of groups that are slower than its blocks of 2 hours.
STEP_H = 2
STEPS = HOURS // STEP_H
DEVICES = SITES * PER_SITE
SLOT_S, SLOTS = 1_800, 2 * HOURS
# After the half hour, so that no sample lies at a step.
AFTER_S = 3
LATE_SHARE = 0.3
OFFLINE_H = (2, 72)


@dataclasses.dataclass(frozen=True)
class Over:
    """`outer by (by) (inner_over_time(reading[hours]))`."""

    record: str
    outer: str
    inner: str
    hours: int
    by: str

    def expr(self):
        by = {"device": " by (site, device)", "site": " by (site)", "all": ""}[self.by]
        return f"{self.outer}{by} ({self.inner}_over_time(reading[{self.hours}h]))"


@dataclasses.dataclass(frozen=True)
class Chained:
    """Over rows of other rules: `kind` says what it does."""

    record: str
    kind: str
    sources: tuple
    by: str
    hours: int = 0

    def expr(self):
        first = self.sources[0]
        if self.kind == "ratio":
            return f"{first} / {self.sources[1]}"
        return f"{self.kind}_over_time({first}[{self.hours}h])" if self.hours else f"{self.kind}({first})"


LEVEL_1 = [
    Over("device:avg6h", "avg", "avg", 6, "device"),
    Over("device:max1d", "max", "max", 24, "device"),
    Over("site:avg6h", "avg", "avg", 6, "site"),
    Over("site:max1d", "max", "max", 24, "site"),
    Over("site:min1d", "min", "min", 24, "site"),
    Over("site:sum1d", "sum", "sum", 24, "site"),
    Over("site:count1d", "sum", "count", 24, "site"),
    Over("site:avgmax12h", "avg", "max", 12, "site"),
    Over("site:avgmin12h", "avg", "min", 12, "site"),
    Over("site:maxavg6h", "max", "avg", 6, "site"),
    Over("site:minavg6h", "min", "avg", 6, "site"),
    Over("site:avg1d", "avg", "avg", 24, "site"),
    Over("site:count6h", "sum", "count", 6, "site"),
    Over("all:avg6h", "avg", "avg", 6, "all"),
    Over("all:max1d", "max", "max", 24, "all"),
    Over("all:count1d", "sum", "count", 24, "all"),
]
LEVEL_2 = [
    Chained("site:max1d_of_avg6h", "max", ("site:avg6h",), "site", 24),
    Chained("site:avg12h_of_avg6h", "avg", ("site:avg6h",), "site", 12),
    Chained("site:mean1d", "ratio", ("site:sum1d", "site:count1d"), "site"),
    Chained("all:max_of_avg1d", "max", ("site:avg1d",), "all"),
]
RULES = LEVEL_1 + LEVEL_2


def rule_file(group, rules):
    lines = ["groups:", f"- name: {group}", f"  interval: {STEP_H}h", "  rules:"]
    lines += [line for rule in rules for line in (f"  - record: {rule.record}", f"    expr: {rule.expr()}")]
    return "\n".join(lines) + "\n"


def quietly(function, *arguments, **options):
    """Of nothing there is no number, and no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return function(*arguments, **options)


class Month:
    def __init__(self, seed):
        random = np.random.default_rng(seed)
        slots = np.arange(SLOTS)
        day = 5 * np.sin(slots * (2 * np.pi / 48))
        self.values = np.round(20 + day + random.normal(0, 2, (DEVICES, SLOTS)), 2)
        # In the hour that a sample is of.
        self.due = np.floor((slots * SLOT_S + AFTER_S) / 3600) + 1
        self.arrived = np.tile(self.due, (DEVICES, 1))
        mean_offline = (OFFLINE_H[1] - OFFLINE_H[0]) / np.log(OFFLINE_H[1] / OFFLINE_H[0])
        mean_online = mean_offline * (1 - LATE_SHARE) / LATE_SHARE
        for device in range(DEVICES):
            # Any part of an online time has passed.
            at = random.exponential(mean_online)
            while at < HOURS:
                back = at + np.exp(random.uniform(*np.log(OFFLINE_H)))
                offline = (self.due > at) & (self.due <= back)
                self.arrived[device, offline] = np.maximum(min(np.ceil(back), HOURS), self.due[offline])
                at = back + random.exponential(mean_online)
        self.delays = (self.arrived - self.due)[self.arrived > self.due]

    def of_hour(self, hour):
        """Devices and slots of the samples that come in an hour, in the order of time."""
        slots, devices = np.nonzero(self.arrived.T == hour)
        return devices, slots

    def describe(self):
        percent = lambda share: round(float(np.percentile(self.delays, share)), 1)
        return {
            "devices": DEVICES,
            "samples": self.values.size,
            "late_percent": round(100 * self.delays.size / self.values.size, 1),
            "delay_hours_p50": percent(50),
            "delay_hours_p99": percent(99),
            "rules": len(RULES),
        }

    # What rows have to be: arrays of [series, step], NaN where there is none. Step k is k * STEP_H hours
    # and `phase_s` after the start.

    def rows(self, now, phase_s=0, first=1):
        """Of all rules, with what is there after hour `now`, from step `first` on."""
        values = np.where(self.arrived <= now, self.values, np.nan)
        # Rules over others look back at rows before the first one.
        begin = max(1, first - max(rule.hours for rule in LEVEL_2) // STEP_H)
        over = lambda rule: self.grouped(rule, values, phase_s, begin)
        rows = {rule.record: over(rule) for rule in LEVEL_1}
        for rule in LEVEL_2:
            source = rows[rule.sources[0]]
            if rule.kind == "ratio":
                rows[rule.record] = source / rows[rule.sources[1]]
            elif rule.hours:
                function = {"max": np.nanmax, "avg": np.nanmean}[rule.kind]
                rows[rule.record] = quietly(function, windows(source, rule.hours // STEP_H), axis=2)
            else:
                rows[rule.record] = quietly(np.nanmax, source, axis=0, keepdims=True)
        return {record: all_[:, first - begin :] for record, all_ in rows.items()}

    def windows(self, slots, hours, phase_s, first):
        """[device, step, slot] of what a window of each step has."""
        ends_s = np.arange(first, STEPS + 1) * STEP_H * 3600 + phase_s
        last = np.floor((ends_s - AFTER_S) / SLOT_S).astype(int)
        padded = np.pad(slots, ((0, 0), (2 * hours, 2 * STEP_H)), constant_values=np.nan)
        return sliding_window_view(padded, 2 * hours, axis=1)[:, last + 1]

    def grouped(self, rule, values, phase_s, first):
        inner = {"avg": np.nanmean, "max": np.nanmax, "min": np.nanmin, "sum": np.nansum}
        seen = self.windows(values, rule.hours, phase_s, first)
        if rule.inner == "count":
            made = np.sum(~np.isnan(seen), axis=2).astype(float)
        else:
            made = quietly(inner[rule.inner], seen, axis=2)
        made[np.all(np.isnan(seen), axis=2)] = np.nan
        return by_group(made, rule.by, inner[rule.outer])

    def first_late(self, phase_s=0):
        """The hour in which the first sample came that each row did not have; infinite where none did."""
        steps = np.arange(1, STEPS + 1)[None, :, None] * STEP_H
        found = {}
        for hours in {rule.hours for rule in LEVEL_1}:
            seen = self.windows(self.arrived, hours, phase_s, 1)
            missed = np.where(seen > steps + np.ceil(phase_s / 3600), seen, np.inf)
            found[hours] = np.min(missed, axis=2)
        late = {rule.record: by_group(found[rule.hours], rule.by, np.min) for rule in LEVEL_1}
        for rule in LEVEL_2:
            sources = [late[source] for source in rule.sources]
            each = np.minimum.reduce(sources)
            if rule.hours:
                each = np.nanmin(windows(each, rule.hours // STEP_H), axis=2)
            late[rule.record] = np.min(each, axis=0, keepdims=True) if rule.by == "all" else each
        return late


def windows(rows, steps):
    """[series, step, step of the window]."""
    padded = np.pad(rows, ((0, 0), (steps - 1, 0)), constant_values=np.nan)
    return sliding_window_view(padded, steps, axis=1)


def by_group(of_device, by, function):
    if by == "device":
        return of_device
    sites = of_device.reshape(SITES, PER_SITE, -1)
    grouped = sites if by == "site" else of_device[None]
    made = quietly(function, grouped, axis=1)
    if function is np.nansum:
        made[np.all(np.isnan(grouped), axis=1)] = np.nan
    return made


def differ(stored, right):
    """Where rows are not the same: 1e-9 of the value is the order of additions."""
    both = ~np.isnan(stored) & ~np.isnan(right)
    far = np.abs(stored - right) > 1e-9 * np.maximum(1, np.abs(right))
    return np.where(both, far, np.isnan(stored) != np.isnan(right))
