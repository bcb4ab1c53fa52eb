"""The allowed differences between the replies of Latewood and RedisTimeSeries 1.12.

Every entry quotes the sentence of docs/compatibility.md that documents it; a test
checks that the page contains it. An entry decides by the command and both
replies, as narrowly as possible.
"""

import math
from dataclasses import dataclass
from typing import Callable

from commands import SOURCES
from resp import Double, Error, Map, Set, Status

SUMS = {"avg", "sum", "twa"}
# 1.12 subtracts squares: for values in the hundreds, four decimals remain.
SQUARES = {"std.p", "std.s", "var.p", "var.s"}


@dataclass
class Difference:
    name: str
    documented: str
    """A quotation from docs/compatibility.md."""
    allows: Callable


def same(real, ours, close):
    """Equal in type and text; numbers may differ by `close`, unless it is 0."""
    if type(real) is not type(ours):
        return False
    if isinstance(real, (list, tuple)):
        return len(real) == len(ours) and all(same(a, b, close) for a, b in zip(real, ours))
    if real == ours:
        return True
    if isinstance(real, (Double, Status)):
        return same_number(real, ours, close)
    return False


def same_number(real, ours, close):
    try:
        a, b = float(real), float(ours)
    except ValueError:
        return False
    if a == b or (math.isnan(a) and math.isnan(b)):
        return isinstance(real, Double) or bool(close)
    return bool(close) and abs(a - b) <= close * max(1.0, abs(a), abs(b))


RANGES = ("TS.RANGE", "TS.REVRANGE", "TS.MRANGE", "TS.MREVRANGE")


def may_read_destinations(words):
    """Whether the command reads series that rules may write to."""
    if words[0].upper() in ("TS.GET", "TS.RANGE", "TS.REVRANGE"):
        return len(words) < 2 or words[1] not in SOURCES
    return words[0].upper() in ("TS.MGET", "TS.MRANGE", "TS.MREVRANGE")


def closeness(words, is_ruled):
    """How far numbers computed by a query or a rule may differ."""
    lower = {part for word in words for part in word.lower().split(",")}
    is_range = words[0].upper() in (*RANGES, "TS.NRANGE", "TS.NREVRANGE")
    if (is_ruled and may_read_destinations(words)) or (is_range and SQUARES & lower):
        return 1e-4
    return 1e-6 if is_range and SUMS & lower else 0


def unordered(words, reply):
    """Sets have no order; nor have KEYS and QUERYINDEX in RESP2."""
    if isinstance(reply, Set):
        return Set(sorted(reply))
    if words[0].upper() in ("TS.QUERYINDEX", "KEYS") and isinstance(reply, list):
        return sorted(reply)
    return reply


def fields(reply):
    if isinstance(reply, Map):
        return dict(reply)
    return dict(zip(reply[::2], reply[1::2]))


STRUCTURE = ("memoryUsage", "chunkCount", "Chunks")


def info_of_structures(words, real, ours):
    if words[0].upper() != "TS.INFO" or isinstance(real, Error) or isinstance(ours, Error):
        return False
    a, b = fields(real), fields(ours)
    return list(a) == list(b) and all(same(a[name], b[name], 0) for name in a if name not in STRUCTURE)


def block_text(words, real, ours):
    short = "ERR TSDB: Error at upsert, update is not supported when DUPLICATE_POLICY is set to BLOCK mode"
    long = short + ", or either current or new value is NaN and DUPLICATE_POLICY is MAX/MIN/SUM"
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        return all(same(a, b, 0) or (a, b) == (short, long) for a, b in zip(real, ours))
    return (real, ours) == (short, long)


def rows_without_values(reply):
    """The reply without the values of its rows."""
    if isinstance(reply, (list, tuple)):
        if len(reply) >= 2 and isinstance(reply[0], int) and isinstance(reply[1], (Double, Status, list)):
            return reply[0]
        return [rows_without_values(item) for item in reply]
    return reply


def filtered_twa(words, real, ours):
    upper = [word.upper() for word in words]
    filtered = {"FILTER_BY_VALUE", "FILTER_BY_TS"} & set(upper)
    return "TWA" in upper and bool(filtered) and rows_without_values(real) == rows_without_values(ours)


def newest_bucket(words, real, ours):
    """1.12 still returns an older bucket as the newest of a destination after a
    late sample made a new one."""
    name = words[0].upper()
    if name == "TS.GET" and isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours) == 2:
        return real[0] < ours[0]
    if name == "TS.INFO" and not isinstance(real, Error) and not isinstance(ours, Error):
        a, b = fields(real), fields(ours)
        rest = [field for field in a if field not in (*STRUCTURE, "lastTimestamp")]
        older = a.get("lastTimestamp", 0) < b.get("lastTimestamp", 0)
        return list(a) == list(b) and older and all(same(a[field], b[field], 0) for field in rest)
    if name == "TS.MGET" and isinstance(real, (list, tuple)) and len(real) == len(ours):
        a, b = [[stamps(entry) for entry in reply] for reply in (real, ours)]
        return all(x[:-1] == y[:-1] and x[-1] <= y[-1] for x, y in zip(a, b))
    return False


def stamps(entry):
    """An entry of TS.MGET without its value."""
    key, *labels, sample = entry if len(entry) == 3 else (entry[0], *entry[1])
    return key, *labels, sample[0] if sample else -1


def latest_buckets(words, real, ours):
    """1.12 loses rows in reverse or time-weighted queries with LATEST; lost rows
    have no weight in their neighbours."""
    upper = [word.upper() for word in words]
    odd = "REV" in upper[0] or "TWA" in upper
    close = math.inf if "TWA" in upper else closeness(words, is_ruled=True)
    return "LATEST" in upper and odd and loses_rows(real, ours, "REV" in upper[0], close)


def loses_rows(real, ours, is_backwards, close):
    """Whether the replies are equal except for rows that only ours has, and ours is
    in order."""
    if is_rows(real) and is_rows(ours):
        times = [row[0] for row in ours]
        rest = iter(ours)
        is_part = all(any(same(row, other, close) for other in rest) for row in real)
        return is_part and times == sorted(set(times), reverse=is_backwards)
    if isinstance(real, (list, tuple)) and type(real) is type(ours) and len(real) == len(ours):
        return all(loses_rows(a, b, is_backwards, close) for a, b in zip(real, ours))
    return real == ours


def is_rows(reply):
    return isinstance(reply, list) and all(isinstance(row, list) and row and isinstance(row[0], int) for row in reply)


def forwards(words):
    """The same query in ascending order, which 1.12 answers completely; None if the
    direction affects the result."""
    upper = [word.upper() for word in words]
    if "REV" not in upper[0] or "LATEST" not in upper or {"COUNT", "FIRST", "LAST"} & set(upper):
        return None
    return [upper[0].replace("REV", ""), *words[1:]]


def turned(reply):
    """The reply with the rows of each series reversed."""
    if is_rows(reply):
        return reply[::-1]
    return type(reply)(map(turned, reply)) if isinstance(reply, (list, tuple)) else reply


def count_named_twice(words, real, ours):
    """1.12 takes one of two COUNT, reducer and aggregator, for the option."""
    lower = [word.lower() for word in words]
    pairs = set(zip(lower, lower[1:]))
    both = {("reduce", "count"), ("aggregation", "count")} <= pairs
    return both and isinstance(real, Error) and "COUNT" in real and lower.index("reduce") < lower.index("aggregation")


# Differences in worlds with rules.
RULED = [
    Difference("latest buckets", "`LATEST` backwards", latest_buckets),
    Difference("newest bucket", "gives the newest bucket", newest_bucket),
]

KNOWN = [
    Difference("filtered twa", "`twa` with a filter", filtered_twa),
    Difference("structures", "describe Latewood's own structures", info_of_structures),
    Difference("count named twice", "never the option COUNT", count_named_twice),
    Difference("block text", "refuses a duplicate with the long text", block_text),
]


def twa_beside_nan(words, real, ours):
    """8.10 ends the line at a bucket of NaN, in some columns."""
    names = {part for word in words for part in word.upper().split(",")}
    return "TWA" in names and not isinstance(ours, Error) and rows_without_values(real) == rows_without_values(ours)


def last_of_nan(words, real, ours):
    """8.10 backwards gives LAST of a bucket of NaN as that of a newer one, and none at the start."""
    names = {part for word in words for part in word.upper().split(",")}
    return "LAST" in names and not isinstance(ours, Error) and rows_without_values(real) == rows_without_values(ours)


def bucket_before_time(words, real, ours):
    """8.10 makes no empty buckets after one that begins before time 0."""
    upper = [word.upper() for word in words]
    return {"ALIGN", "EMPTY"} <= set(upper) and loses_rows(real, ours, "REV" in upper[0], closeness(words, False))


# Differences from the newest version alone.
NEWEST = [
    Difference("bucket before time", "after one that begins before time 0", bucket_before_time),
    Difference("twa beside nan", "a bucket of nothing but NaN does not end the line", twa_beside_nan),
    Difference("last of nan", "the value of an older one in both directions", last_of_nan),
]


def explain(words, real, ours, is_ruled=False, is_newest=False):
    """The name of the difference that allows these replies, "" if they are equal,
    None if no difference allows them."""
    real, ours = unordered(words, real), unordered(words, ours)
    if same(real, ours, closeness(words, is_ruled)):
        return ""
    for difference in KNOWN + (RULED if is_ruled else []) + (NEWEST if is_newest else []):
        if difference.allows(words, real, ours):
            return difference.name
    return None
