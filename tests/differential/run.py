"""Sends the same random commands to two servers and compares the replies.

    python run.py --seed 7 --commands 20000 --real 7399 --ours 6379
    python run.py --newest --real 7410 --ours 6379

The same seed sends the same commands. Prints every reply that no entry of
differences.py allows, with the commands that led to it. --newest: the real one has the commands
of 8.10, and ours answers as such.
"""

import argparse
import collections
import random
import sys

from commands import Commands, Newest
from differences import closeness, explain, forwards, same, turned
from resp import Connection, Error

EPOCH = 300
BATCH = 20


def kills_the_real_one(words):
    """RedisTimeSeries 1.12 crashes on some empty buckets, reversed or time-weighted,
    and on some misplaced words."""
    upper = [word.upper() for word in words]
    if upper[-1] in ("TIMESTAMP", "REDUCE") or (upper[0] == "TS.CREATERULE" and upper[3:4] != ["AGGREGATION"]):
        return True
    reversed_span = len(words) > 3 and words[2].isdigit() and words[3].isdigit() and int(words[2]) > int(words[3])
    return "EMPTY" in upper and ("REV" in upper[0] or "TWA" in upper or reversed_span)


OPTION_WORDS = {"RETENTION", "LABELS", "ENCODING", "CHUNK_SIZE", "DUPLICATE_POLICY", "IGNORE", "ON_DUPLICATE", "LATEST",
                "UNCOMPRESSED", "COMPRESSED", "TIMESTAMP", "AGGREGATION", "COUNT", "ALIGN", "FILTER", "GROUPBY", "REDUCE",
                "WITHLABELS", "EMPTY"}


def key_is_an_option(words):
    """1.12 takes a key, or the number of an increment, for the option of that name."""
    fixed = words[1:3] if words[0] in ("TS.INCRBY", "TS.DECRBY", "TS.CREATERULE") else words[1:2]
    return any(word.upper() in OPTION_WORDS for word in fixed)


def writes_far_ahead(words):
    """A spoilt timestamp: ranges with EMPTY would have billions of rows."""
    places = range(2, len(words), 3) if words[0] == "TS.MADD" else [2, *(i + 1 for i, w in enumerate(words) if w == "TIMESTAMP")]
    far = [words[i] for i in places if i < len(words) and words[i].isdigit() and len(words[i]) > 6]
    return words[0] in ("TS.ADD", "TS.MADD", "TS.INCRBY", "TS.DECRBY") and bool(far)


def writes_a_large_value(words):
    """A spoilt value: it would cancel everything summed with it."""
    return words[0] in ("TS.ADD", "TS.MADD", "TS.INCRBY", "TS.DECRBY") and "9223372036854775808" in words


def asks_the_clock(words):
    """The servers read the clock at different times."""
    return words[0] in ("TS.INCRBY", "TS.DECRBY") and "TIMESTAMP" not in words


def counts_from_before_time(words):
    """1.12 accepts a negative TIMESTAMP in TS.INCRBY."""
    return words[0] in ("TS.INCRBY", "TS.DECRBY") and any(word.startswith("-") for word in words[4:])


def is_sent(words):
    reasons = (kills_the_real_one, key_is_an_option, writes_far_ahead, writes_a_large_value, asks_the_clock)
    return not any(reason(words) for reason in (*reasons, counts_from_before_time))


def increments(words):
    return words[0] in ("TS.INCRBY", "TS.DECRBY") and len(words) > 1


def with_both_directions(batch):
    """Sends reverse queries with LATEST in ascending order first."""
    for words in batch:
        if forwards(words):
            yield forwards(words)
        yield words


def parts(batch):
    """Sends increments alone, so that the effect of a refused one can be undone."""
    part = []
    for words in batch:
        if increments(words):
            yield part
            yield [words]
            part = []
        else:
            part.append(words)
    yield part


class Run:
    def __init__(self, seed, real, ours, show=20, policy="BLOCK", newest=False):
        self.random = random.Random(seed)
        self.seed, self.show, self.policy = seed, show, policy
        self.is_newest, self.world = newest, Newest if newest else Commands
        self.pairs = [(Connection(real, protocol), Connection(ours, protocol)) for protocol in (2, 3)]
        self.failures, self.commands, self.is_ruled = [], 0, False
        self.allowed, self.words, self.errors = collections.Counter(), collections.Counter(), collections.Counter()

    def epoch(self):
        """One small world from the start; ends early if replies differ."""
        real, ours = self.random.choice(self.pairs)
        for server in (real, ours):
            server("FLUSHALL")
        source, history = self.world(self.random), []
        self.is_ruled = source.is_ruled
        if not self.compare(source.first(), real, ours, history):
            return
        for _ in range(EPOCH // BATCH):
            batch = [words for words in (source.draw() for _ in range(BATCH)) if is_sent(words)]
            for part in parts(with_both_directions(batch) if self.is_ruled else batch):
                if not self.compare(part, real, ours, history):
                    return

    def compare(self, batch, real, ours, history):
        """Whether all replies are equal, and ours in both directions."""
        before = (None, None)
        for words, a, b in zip(batch, real.pipeline(batch), ours.pipeline(batch)):
            history.append(words)
            self.note(words, a)
            name = explain(words, a, b, self.is_ruled, self.is_newest)
            if before[0] and before[0] == forwards(words) and not isinstance(b, Error):
                turned_b = turned(before[1])
                if not same(turned_b, b, closeness(words, False)):
                    name, a = None, ("ours forwards, turned", turned_b)
            before = words, b
            if name is None:
                self.failures.append((history, a, b))
                return False
            self.allowed[name] += bool(name)
            if increments(words) and isinstance(a, Error):
                # 1.12 leaves a new empty series.
                if not ours("EXISTS", words[1]):
                    real("DEL", words[1])
        return True

    def note(self, words, reply):
        self.commands += 1
        self.words.update({word.upper() for word in words})
        stack = [reply]
        while stack:
            item = stack.pop()
            if isinstance(item, Error):
                self.errors[str(item)] += 1
            elif isinstance(item, (list, tuple)):
                stack.extend(item)

    def until(self, commands):
        while self.commands < commands and len(self.failures) < self.show:
            self.epoch()
        return self


def related(history):
    """The last command and the earlier ones that share a key with it."""
    last = set(history[-1][1:])
    keys = {word for word in last if word.startswith("k") and len(word) == 2}
    if not keys:
        return history[-40:]
    return [words for words in history if keys & set(words)][-40:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--commands", type=int, default=20_000)
    parser.add_argument("--real", type=int, required=True)
    parser.add_argument("--ours", type=int, required=True)
    parser.add_argument("--newest", action="store_true")
    parser.add_argument("--show", type=int, default=10)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    run = Run(options.seed, options.real, options.ours, options.show, newest=options.newest).until(options.commands)
    for history, real, ours in run.failures:
        print("\n".join(" ".join(map(repr, words)) for words in related(history)))
        print(f"  real {real!r}\n  ours {ours!r}\n")
    print(f"{run.commands} commands, {len(run.failures)} differences, allowed: {dict(run.allowed)}")
    print(f"{len(run.errors)} error texts")
    return bool(run.failures)


if __name__ == "__main__":
    sys.exit(main())
