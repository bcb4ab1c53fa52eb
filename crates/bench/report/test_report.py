"""The pages of `docs/benchmarks` follow from the committed runs, and say what is missing."""

import pathlib
import re
import shutil

import pytest
import report
import tables

PAGES = report.HERE.parents[2] / "docs/benchmarks"


@pytest.fixture(scope="module")
def made():
    return report.files(PAGES)


def test_the_committed_pages_follow_from_the_committed_runs(made):
    committed = {file.name for file in PAGES.iterdir() if file.suffix != ".json"}
    assert committed == set(made), "a page without runs, or runs without a page"
    for name, text in made.items():
        assert (PAGES / name).read_text() == text, f"{name}: run `latewood-bench report --all`"


def test_a_chart_names_its_axes_and_lines(made):
    shares = made["late-rate-c4096-p50-n8-last.svg"]
    panels = made["fleet-wire.svg"]
    for text in ("late samples, percent of all", "thousand samples per second", "RedisTimeSeries"):
        assert text in shares
    for text in ("seconds", "interval", "CPU, percent of a core", "anonymous memory, MiB"):
        assert text in panels


def test_the_page_of_all_needs_nothing_else(made):
    page = made["report.html"]
    assert "<script" not in page and not re.search(r"<(img|link)\b", page)
    assert page.count("<svg") > len([name for name in made if name.endswith(".svg")])
    assert 'href="#late"' in page and "is missing</p>" not in page


def test_what_was_not_measured_is_said_to_be_missing(tmp_path):
    page = report.files(tmp_path)["README.md"]
    known = report.read(report.HERE / "catalog.json")
    assert page.count("| not measured |") == len(known)
    assert page.count("| missing |") == len(report.read(report.HERE / "targets.json"))
    assert "*late is missing: it was not measured. `latewood-bench all --only late` does it.*" in page


def drawn(tmp_path, **changes):
    """The index over late and late-block, of which the latter has `changes` to its machine."""
    shutil.copy(PAGES / "late.json", tmp_path)
    raw = report.read(PAGES / "late-block.json")
    raw["machine"] |= changes
    raw["absent"] = [{"name": "QuestDB", "reason": "no java"}, {"name": "Latewood", "reason": "it ended"}]
    pathlib.Path(tmp_path / "late-block.json").write_text(report.json.dumps(raw))
    return report.files(tmp_path)


def test_pages_of_another_machine_or_commit_are_told_apart_from_the_newest(tmp_path):
    newest = report.read(PAGES / "late.json")["machine"]
    page = drawn(tmp_path, cpu="Theirs", began_unix_seconds=1)["README.md"]
    assert "another machine, not comparable: [late-block](late-block.md)." in page
    page = drawn(tmp_path, **newest | {"commit": "b", "kernel": newest["kernel"] + "-local"})["README.md"]
    assert "another machine" not in page and "at another commit: [late" in page


def test_peers_that_were_left_out_are_named(tmp_path):
    page = drawn(tmp_path)["late-block.md"]
    assert "- **QuestDB: not measured here: no java**\n" in page
    assert "- **Latewood: not measured to the end, it broke off: it ended**\n" in page


def late_runs(*of):
    return [
        {
            "target": "Latewood",
            "cell": {"late_percent": late},
            "measured": {"server_cpu_seconds_per_million": ns / 1e3, "samples_per_second": rate},
        }
        for late, ns, rate in of
    ]


@pytest.mark.parametrize(("ns", "reached"), [(274.25, 75), (299.0, 100)])
def test_a_target_is_a_rise_over_samples_in_order(ns, reached):
    raw = {"runs": late_runs((0.0, 200.0, 1.0), (99.0, ns, 1.0))}
    known = report.read(report.HERE / "targets.json")
    [target] = [one for one in known if one["what"] == "A late sample over the wire, LAST"]
    assert report.reached_by(raw, target) == pytest.approx(reached)


def test_the_worst_share_counts():
    raw = {"runs": late_runs((0.0, 1.0, 200.0), (10.0, 1.0, 161.0), (99.0, 1.0, 199.0))}
    known = report.read(report.HERE / "targets.json")
    [target] = [one for one in known if one["how"] == "worst-share"]
    assert report.reached_by(raw, target) == pytest.approx(80.5)


def test_groups_become_rows_beside_their_base():
    runs = [
        {"log": "on", "late": 50.0, "rate": 900.0, "peak": 3},
        {"log": "on", "late": 0.0, "rate": 1000.0},
        *({"log": "off", "late": 0.0, "rate": rate} for rate in (10.0, 4000.0, 20.0)),
    ]
    shows = tables.SHOWS
    columns = [
        ["log", shows["named"]({"off": "none", "on": "all"}), "log"],
        ["late %", shows["label"], "late"],
        ["rate", shows["spread"], "rate"],
        ["lost", shows["lost"], "rate"],
        ["extra", shows["extra"]("late"), "rate"],
        ["peak", shows["fixed"](1), "peak / 2"],
    ]
    text = tables.table(runs, ["log:off,on", "<late"], columns, base=["late", "0"], needs="rate")
    assert text.splitlines() == [
        "| log | late % | rate | lost | extra | peak |",
        "|---|--:|--:|--:|--:|--:|",
        "| none | 0 | 20 (10-4,000) |  |  |  |",
        "| all | 0 | 1,000 |  |  |  |",
        "| all | 50 | 900 | 10.0 % | -200 | 1.5 |",
    ]
    assert tables.table([], ["log"], columns) == ""


def test_one_wild_value_moves_nothing_and_a_cost_that_may_be_none_is_no_saving():
    assert report.confidence([9.0] + [1.0] * 20) == "1.00 % (1.00 to 1.00)"
    assert report.confidence([-0.4, -0.1, 0.3]) == "under 0.30 %"
    assert report.confidence([-0.9, -0.5, -0.2]) == "none seen"


def test_numbers_as_people_read_them():
    assert [tables.commas(of) for of in (0, 999, 1000, 1234567.8, -12345)] == [
        "0",
        "999",
        "1,000",
        "1,234,568",
        "-12,345",
    ]
    assert [tables.digits(of) for of in (0.1234, 1.234, 12.34, 123.4, 1234)] == [
        "0.123",
        "1.23",
        "12.3",
        "123",
        "1,234",
    ]
    run = {"name": "a", "samples": 2000, "seconds": 0.5, "at": {"files": [1, 2]}, "on": True}
    assert tables.filled("{name}: {samples} in {seconds} s{x}", run) == "a: 2,000 in 0.5 s"
    assert tables.number(run, "at.files") == 2 and tables.number(run, "on") == 1
    assert tables.number(run, "nothing / 2") is None and tables.number(run, "samples / 0") == float("inf")
