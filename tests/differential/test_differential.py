"""The same random commands to Latewood and to RedisTimeSeries 1.12.

Starts both on free ports. LATEWOOD_SEED replays a run, LATEWOOD_COMMANDS sets its
length. Features that 1.12 lacks (NaN, later aggregators and commands) have their
own tests.
"""

import os
import pathlib
import re

import pytest

from differences import KNOWN, NEWEST, RULED, explain
from resp import Status
from run import Run, related
from servers import latewood, redistimeseries

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = int(os.environ.get("LATEWOOD_COMMANDS", 60_000))

# Every option and every error text must occur, so that a gap in the generator is
# noticed. The rarest occur about fifteen times in COMMANDS; a run without one is
# extended up to LONGEST times, so that no run fails by chance.
LONGEST = 5
WORDS = """TS.CREATE TS.ALTER TS.ADD TS.MADD TS.INCRBY TS.DECRBY TS.DEL TS.GET TS.RANGE TS.REVRANGE TS.MGET TS.MRANGE
TS.MREVRANGE TS.QUERYINDEX TS.INFO TS.CREATERULE TS.DELETERULE DEL EXISTS TYPE RENAME RENAMENX EXPIRE PERSIST TTL COPY
RETENTION ENCODING COMPRESSED UNCOMPRESSED CHUNK_SIZE DUPLICATE_POLICY ON_DUPLICATE IGNORE LABELS TIMESTAMP LATEST
FILTER_BY_TS FILTER_BY_VALUE COUNT ALIGN AGGREGATION BUCKETTIMESTAMP EMPTY WITHLABELS SELECTED_LABELS FILTER GROUPBY
REDUCE BLOCK FIRST LAST MIN MAX SUM AVG RANGE STD.P STD.S VAR.P VAR.S TWA""".split()

ERRORS = """key already exists
the key does not exist
the key is not a TSDB key
invalid value
invalid timestamp
invalid timestamp, must be a nonnegative integer
Timestamp is older than retention
Error at upsert, update is not supported when DUPLICATE_POLICY is set to BLOCK mode
Couldn't parse LABELS
Couldn't parse RETENTION
Couldn't parse CHUNK_SIZE
Couldn't parse DUPLICATE_POLICY
Couldn't parse COUNT
Couldn't parse AGGREGATION
CHUNK_SIZE value must be a multiple of 8 in the range [48 .. 1048576]
Unknown DUPLICATE_POLICY
unknown ENCODING parameter
wrong fromTimestamp
wrong toTimestamp
Unknown aggregation type
bucketDuration must be greater than zero
unknown BUCKETTIMESTAMP parameter
unknown ALIGN parameter
start alignment can only be used with explicit start timestamp
end alignment can only be used with explicit end timestamp
FILTER_BY_TS one or more arguments are missing
missing FILTER argument
failed parsing labels
please provide at least one matcher
cannot accept WITHLABELS and SELECT_LABELS together
Invalid reducer type
wrong 3rd argument
invalid increase/decrease value
the source key and destination key should be different
the source key already has a source rule
the destination key already has a src rule
the destination key already has a dst rule
compaction rule does not exist
timestamp must be equal to or higher than the maximum existing timestamp""".splitlines()


@pytest.fixture(params=["BLOCK", "LAST"])
def run(request, tmp_path):
    seed = int(os.environ.get("LATEWOOD_SEED", 1))
    print(f"LATEWOOD_SEED={seed}")
    with redistimeseries(tmp_path / "real", request.param) as real, latewood(tmp_path / "ours", request.param) as ours:
        yield Run(seed, real, ours, policy=request.param)


def not_met(run):
    """The options and error texts that have not occurred yet."""
    met = {re.sub(r"^ERR |TSDB: ", "", text) for text in run.errors}
    texts = [text for text in ERRORS if not any(m.startswith(text) for m in met)]
    # Duplicates are rarely refused unless the policy is BLOCK.
    texts = [text for text in texts if not (text.startswith("Error at upsert") and run.policy == "LAST")]
    return [word for word in WORDS if not run.words[word]] + texts


def test_replies_are_the_same(run):
    run.until(COMMANDS)
    while not_met(run) and not run.failures and run.commands < LONGEST * COMMANDS:
        run.until(run.commands + COMMANDS // 10)
    for history, real, ours in run.failures:
        print("\n".join(" ".join(map(repr, words)) for words in related(history)))
        print(f"  real {real!r}\n  ours {ours!r}\n")
    assert not run.failures, f"{len(run.failures)} replies differ; LATEWOOD_SEED={run.seed} shows them again"
    assert run.commands >= COMMANDS
    assert not not_met(run)


@pytest.mark.parametrize("real, ours, is_allowed", [
    ([[30, "3"], [20, "2"]], [[30, "3"], [20, "2"], [10, "1"]], True),
    ([], [[30, "3"], [20, "2"]], True),
    ([[30, "3"], [20, "2"]], [[999, "-7"]], False),
    ([[30, "3"], [20, "2"]], [], False),
    ([[30, "3"]], [[20, "2"], [30, "3"]], False),
    ([[30, "3"]], [[30, "4"], [20, "2"]], False),
])
def test_only_rows_that_the_real_one_lost_may_differ(real, ours, is_allowed):
    real, ours = ([[at, Status(value)] for at, value in rows] for rows in (real, ours))
    words = ["TS.REVRANGE", "k5", "-", "+", "LATEST"]
    assert explain(words, real, ours, True) == ("latest buckets" if is_allowed else None)
    labelled = [[["k5", [], rows]] for rows in (real, ours)]
    words = ["TS.MREVRANGE", "-", "+", "LATEST", "FILTER", "a=1"]
    assert explain(words, *labelled, True) == ("latest buckets" if is_allowed else None)


def test_only_what_rules_computed_may_be_rounded_otherwise():
    real, ours = [1, Status("1.5")], [1, Status("1.50001")]
    assert explain(["TS.GET", "k5"], real, ours, True) == ""
    assert explain(["TS.GET", "k0"], real, ours, True) is None
    assert explain(["TS.GET", "k5"], real, ours) is None


def test_every_difference_is_documented():
    page = re.sub(r"\s+", " ", (ROOT / "docs/compatibility.md").read_text())
    assert [d.name for d in KNOWN + RULED + NEWEST if d.documented not in page] == []
