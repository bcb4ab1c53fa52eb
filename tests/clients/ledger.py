"""What was written, and what an answer may show of it.

An answer was asked for at one time and came at another. It has everything that was acknowledged before the
first, nothing that was sent after the second, and everything that an answer showed before. A follower may
answer as of `STALENESS_S` earlier: ask then what was there that long before.

Each series has one writer. A write whose reply never came stays possible for ever.
"""

import bisect
import threading
import time

# The default of --max-staleness.
STALENESS_S = 5
NEVER = float("inf")


class Counter:
    """Something that each write makes larger by one."""

    def __init__(self):
        self.sent, self.known = [], []
        self.seen, self.lock = [(-NEVER, 0)], threading.Lock()

    def begin(self):
        self.sent.append(time.monotonic())

    def refused(self):
        self.sent.pop()

    def done(self):
        self.known.append(time.monotonic())

    def least(self, at):
        before = bisect.bisect_left(self.seen, (at, 0)) - 1
        return max(bisect.bisect_left(self.known, at), self.seen[max(before, 0)][1])

    def check(self, held, begun, ended):
        """Whether an answer may show `held`, which nothing that is asked for later falls short of."""
        most = bisect.bisect_right(self.sent, ended)
        if not self.least(begun) <= held <= most:
            return f"{held} is not between {self.least(begun)} and {most}"
        with self.lock:
            if held > self.seen[-1][1]:
                self.seen.append((time.monotonic(), held))
        return None


class Write:
    """A value of a row, or None that deletes it; `known` is when it was first known to be done."""

    def __init__(self, value):
        self.value, self.sent, self.known = value, time.monotonic(), NEVER

    def done(self):
        self.known = min(self.known, time.monotonic())


class Rows:
    """Rows that are written, written again and deleted. No two writes of a row have the same value."""

    def __init__(self):
        self.writes = {}

    def begin(self, ats, value):
        write = Write(value)
        for at in ats:
            self.writes.setdefault(at, []).append(write)
        return write

    def refused(self, ats):
        for at in ats:
            self.writes[at].pop()

    def possible(self, at, begun, ended):
        """The values that an answer may show for a row."""
        nothing = Write(None)
        nothing.sent = nothing.known = -NEVER
        writes = [nothing, *self.writes.get(at, [])]

        def is_over(place):
            return any(later.known < begun and writes[place].known < later.sent for later in writes[place + 1 :])

        return [write for place, write in enumerate(writes) if write.sent <= ended and not is_over(place)]

    def check(self, held, first, last, begun, ended):
        """What is wrong with an answer of the rows from `first` to `last`."""
        for at in {at for at in list(self.writes) if first <= at <= last} | set(held):
            possible = self.possible(at, begun, ended)
            shown = [write for write in possible if write.value == held.get(at)]
            if not shown:
                return f"row {at} is {held.get(at)}, not one of {[write.value for write in possible]}"
            if held.get(at) is not None:
                shown[0].done()
        return None
