"""What a client wrote, so that the same can be written again in the order of time.

A `Ledger` has one writer, which repeats a command until it is answered. Every command may be repeated: it
says what is to be there afterwards. So what is written is known exactly, whatever is killed meanwhile.
"""

import struct
import time
import urllib.request

import redis

from prometheus_read import field, snappy

STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
PATIENCE_S = 120


def bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def is_stale(value):
    return bits(value) == bits(STALE)


def same(one, other):
    """Bit by bit; numbers that are none are equal, but for stale marks."""
    if one != one and other != other:
        return is_stale(one) == is_stale(other)
    return bits(one) == bits(other)


def key_of(labels):
    """The key that remote write gives a series."""
    rest = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()) if name != "__name__")
    return labels["__name__"] + (f"{{{rest}}}" if rest else "")


def remote_write(http, rows):
    """Rows of (labels, time, value)."""
    series = b""
    for labels, at, value in rows:
        pairs = (field(1, field(1, name.encode()) + field(2, text.encode())) for name, text in sorted(labels.items()))
        sample = b"\x09" + struct.pack("<d", value) + field(2, at)
        series += field(1, b"".join(pairs) + field(2, sample))
    head = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
    request = urllib.request.Request(f"http://127.0.0.1:{http}/api/v1/write", snappy(series), head)
    urllib.request.urlopen(request, timeout=PATIENCE_S).close()


class Series:
    """One that is there. `is_remote`: written by remote write, so the key follows from the labels."""

    def __init__(self, labels, is_remote=False, retention=0):
        self.labels, self.is_remote, self.retention = dict(labels), is_remote, retention
        self.samples, self.floor = {}, 0

    def put(self, at, value):
        if at < self.floor:
            return
        self.samples[at] = value
        if self.retention:
            self.floor = max(self.floor, at - self.retention)
            self.samples = {at: value for at, value in self.samples.items() if at >= self.floor}

    def options(self):
        words = [word for pair in sorted(self.labels.items()) for word in pair]
        return ["RETENTION", self.retention, "DUPLICATE_POLICY", "LAST", "LABELS", *words]


class Ledger:
    """Writes to a server that may be gone for a while."""

    def __init__(self, server):
        self.server, self.series, self.floors = server, {}, {}
        self.answered = 0

    def repeat(self, what):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                done = what()
                self.answered += 1
                return done
            except (redis.ConnectionError, redis.TimeoutError, redis.exceptions.BusyLoadingError, OSError):
                assert time.monotonic() < deadline, "the server does not come back"
                time.sleep(0.02)

    def ask(self, *words, but=()):
        """The answer; None where the error is one of `but`, as of a command that is repeated."""

        def ask():
            with self.server.client() as client:
                try:
                    return client.execute_command(*words)
                except redis.ResponseError as error:
                    if not any(text in str(error) for text in but):
                        raise
                    return None

        return self.repeat(ask)

    def create(self, key, series):
        self.ask("TS.CREATE", key, *series.options(), but=["already exists"])
        self.series[key] = series

    def add(self, key, at, value):
        series = self.series[key]
        if series.is_remote:
            self.repeat(lambda: remote_write(self.server.http, [(series.labels, at, value)]))
        else:
            self.ask("TS.ADD", key, at, repr(value), "ON_DUPLICATE", "LAST", but=["older than retention"])
        series.put(at, value)
        self.note_floor(series)

    def note_floor(self, series):
        """The highest time that retention took something below, for each metric."""
        metric = series.labels["__name__"]
        self.floors[metric] = max(self.floors.get(metric, 0), series.floor)

    def delete(self, key, first, last):
        self.ask("TS.DEL", key, first, last)
        series = self.series[key]
        series.samples = {at: value for at, value in series.samples.items() if not first <= at <= last}

    def alter(self, key, labels):
        words = [word for pair in sorted(labels.items()) for word in pair]
        self.ask("TS.ALTER", key, "LABELS", *words)
        self.series[key].labels = dict(labels)

    def remove(self, key):
        self.ask("DEL", key)
        del self.series[key]

    def rename(self, key, new):
        self.ask("RENAME", key, new, but=["no such key", "does not exist"])
        self.series[new] = self.series.pop(key)

    def copy(self, key, new):
        self.ask("COPY", key, new, "REPLACE")
        copied = self.series[key]
        made = Series(copied.labels, retention=copied.retention)
        made.samples, made.floor = dict(copied.samples), copied.floor
        self.series[new] = made

    def check(self):
        """Everything that was acknowledged is there, and nothing else."""
        for key, series in self.series.items():
            held = {at: float(value) for at, value in self.ask("TS.RANGE", key, "-", "+")}
            wrong = [at for at in held.keys() | series.samples.keys() if not self.is_right(held, series.samples, at)]
            assert not wrong, (key, [(at, held.get(at), series.samples.get(at)) for at in sorted(wrong)[:10]])

    @staticmethod
    def is_right(held, written, at):
        if at not in held or at not in written:
            return False
        # TS.RANGE shows a stale mark as NaN.
        return held[at] == written[at] or (held[at] != held[at] and written[at] != written[at])

    def write_in_order(self, server):
        """The same to a server that has nothing, the oldest sample of all first."""
        with server.client() as client:
            for key, series in self.series.items():
                if not series.is_remote:
                    client.execute_command("TS.CREATE", key, *series.options())
            rows = [(at, key, value) for key, series in self.series.items() for at, value in series.samples.items()]
            rows.sort(key=lambda row: row[:2])
            for place in range(0, len(rows), 500):
                some = rows[place : place + 500]
                remote = [(self.series[key].labels, at, value) for at, key, value in some if self.series[key].is_remote]
                local = [word for at, key, value in some if not self.series[key].is_remote for word in (key, at, repr(value))]
                if remote:
                    remote_write(server.http, remote)
                if local:
                    client.execute_command("TS.MADD", *local)
