"""Which reports `latewood-bench all` makes, and by which words."""

import shlex

import every
import pytest

PAGE = every.HERE.parents[2] / "docs/benchmarks.md"


def chosen(words):
    made, _ = every.chosen(every.options(shlex.split(words)))
    return {name: shlex.join(words) for name, words in made.items()}


@pytest.mark.parametrize("words", ["--repeats 7", "--repeats 7 --quick"])
def test_every_report_is_a_command_with_as_many_runs_as_asked_for(words):
    made = chosen(f"{words} --out 'a folder'")
    assert len(made) == len(every.CATALOG)
    for name, command in made.items():
        assert command.endswith(f"--json 'a folder/{name}.json' --out 'a folder'") and "{" not in command
        # What runs once by its nature.
        expected = 0 if name in ("size", "soak") else 1
        assert command.count("repeats 7") == command.count("repeats") == expected, command


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--only late", "--repeats 5"),
        ("--only late --quick", "--repeats 2"),
        ("--only recover", "--repeats 3"),
        ("--only late-history --quick", "--repeats 1"),
    ],
)
def test_reports_have_repeats_of_their_own(words, expected):
    assert expected in list(chosen(words).values())[0]


def test_reports_can_be_chosen_and_peers_left_out():
    some = chosen("--quick --only late,lines --alone")
    assert list(some) == ["late"] and some["late"].startswith("late --start latewood --series")
    assert list(chosen("--only late --only new")) == ["late", "new"]
    for command in chosen("--alone").values():
        assert "redistimeseries" not in command
        # These start peers unless told whom to start.
        starts = command.split()[0] in ("late", "lines", "query", "promql")
        assert "--start latewood" in command or not starts
    with pytest.raises(SystemExit):
        every.options(["--only", "none"])


def test_nothing_to_measure_is_said_and_nothing_written(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match="nothing is left"):
        every.main("no-program", "--only", "lines,lines-prometheus", "--alone", "--out", str(out))
    assert not out.exists()


def test_threads_double_up_to_the_cores():
    assert [every.up_to(cores) for cores in (1, 2, 6)] == ["1", "1,2", "1,2,4,6"]
    assert every.up_to(5_000).endswith(",512,1024")


def test_the_documentation_names_every_report():
    lines = PAGE.read_text().splitlines()
    table = lines[next(at for at, line in enumerate(lines) if line.startswith("| report |")) + 2 :]
    rows = table[: next(at for at, line in enumerate(table) if not line.startswith("| "))]
    assert sorted(row.split()[1] for row in rows) == sorted(one["name"] for one in every.CATALOG)
