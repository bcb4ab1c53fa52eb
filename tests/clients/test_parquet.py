"""Files of `latewood export parquet` as pyarrow and DuckDB read them."""

import math
import subprocess
import urllib.request

import duckdb
import pyarrow.parquet
import pytest

from conftest import BINARY, Server
from peer import free_port

HOSTS, ROWS = 30, 5_000
LONG_ROWS = 140_000


@pytest.fixture
def file(tmp_path):
    http = free_port()
    server = Server(tmp_path / "data", "--http", f"127.0.0.1:{http}")
    # Values and times of no pattern, some late, and a label that not all have.
    lines = [f"cpu,host=h{host},az=z{host % 3} v={host * row % 977 / 7} {row * 1000 + host}" for row in range(ROWS) for host in range(HOSTS)]
    lines += [f"long,host=a v={row * 7919 % 1_000_003 / 3} {row * 13 % LONG_ROWS}" for row in range(LONG_ROWS)]
    for at in range(0, len(lines), 50_000):
        body = "\n".join(lines[at : at + 50_000]).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/write?precision=ms", body) as answer:
            assert answer.status == 204
    with server.client() as client:
        client.execute_command("TS.CREATE", "odd")
        client.execute_command("TS.MADD", "odd", 1, "nan", "odd", 2, "-0.5", "odd", 3, "2")
    path = tmp_path / "all.parquet"
    subprocess.run([BINARY, "export", "parquet", path, "--from", f"127.0.0.1:{http}"], check=True, capture_output=True)
    yield path
    server.kill()


def test_every_sample_is_there_for_pyarrow(file):
    read = pyarrow.parquet.ParquetFile(file)
    schema = read.schema_arrow
    assert schema.names == ["__name__", "az", "host", "__timestamp__", "__value__"]
    assert str(schema.field("__timestamp__").type) == "timestamp[ms, tz=UTC]"
    rows = read.read().to_pylist()
    assert len(rows) == HOSTS * ROWS + LONG_ROWS + 3
    found = {}
    for row in rows:
        at = row["__timestamp__"]
        series = found.setdefault((row["__name__"], row["az"], row["host"]), [])
        series.append((round(at.timestamp() * 1000), row["__value__"]))
    for host in range(HOSTS):
        wanted = [(row * 1000 + host, host * row % 977 / 7) for row in range(ROWS)]
        assert found.pop(("cpu_v", f"z{host % 3}", f"h{host}")) == wanted
    wanted = sorted((row * 13 % LONG_ROWS, row * 7919 % 1_000_003 / 3) for row in range(LONG_ROWS))
    assert found.pop(("long_v", None, "a")) == wanted
    (odd,) = found.values()
    assert list(found) == [("odd", None, None)]
    assert math.isnan(odd[0][1]) and odd[1:] == [(2, -0.5), (3, 2.0)]


def test_groups_of_rows_say_what_is_in_them(file):
    read = pyarrow.parquet.ParquetFile(file)
    groups = [read.metadata.row_group(at) for at in range(read.num_row_groups)]
    # Series lie together: the names of each group follow on those of the one before.
    names = [(group.column(0).statistics.min, group.column(0).statistics.max) for group in groups]
    assert len(names) > 2 and [name for pair in names for name in pair] == sorted(name for pair in names for name in pair)
    for at, group in enumerate(groups):
        times = read.read_row_group(at).column("__timestamp__").to_pylist()
        said = group.column(3).statistics
        assert (said.min, said.max) == (min(times), max(times))
        assert group.column(1).statistics.null_count == read.read_row_group(at).column("az").null_count


def test_duckdb_answers_from_it(file):
    with duckdb.connect() as connection:
        counts = connection.sql(f"SELECT az, count(*), count(DISTINCT host) FROM '{file}' WHERE __name__ = 'cpu_v' GROUP BY az ORDER BY az").fetchall()
        assert counts == [(f"z{zone}", HOSTS // 3 * ROWS, HOSTS // 3) for zone in range(3)]
        some = f"SELECT __value__ FROM '{file}' WHERE host = 'h7' AND epoch_ms(__timestamp__) BETWEEN 7 AND 2007 ORDER BY __timestamp__"
        assert connection.sql(some).fetchall() == [(7 * row % 977 / 7,) for row in range(3)]
        assert connection.sql(f"SELECT sum(__value__) FROM '{file}' WHERE __name__ = 'odd' AND NOT isnan(__value__)").fetchall() == [(1.5,)]
