"""tests/setup.sh on a machine whose Go is too old, with no package of a newer one."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def install(tmp_path, go, **more):
    """Runs `setup.sh install go` where `go version` says this; what it did, and its list."""
    for name, said in (("go", f"go version {go} linux/amd64"), ("apt-get", ""), ("apt-cache", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{said}'\n")
        (tmp_path / name).chmod(0o755)
    left_out = tmp_path / "left-out"
    environment = {name: value for name, value in os.environ.items() if name not in ("STRICT", "LEFT_OUT")}
    environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LEFT_OUT_LIST": str(left_out), **more}
    ran = subprocess.run(
        [ROOT / "tests/setup.sh", "install", "go"], env=environment, capture_output=True, text=True
    )
    return ran, left_out.read_text()


def test_an_old_go_is_reported(tmp_path):
    ran, left_out = install(tmp_path, "go1.19.8")
    assert (ran.returncode, left_out) == (0, "go\n"), ran.stderr
    assert "the comparison of PromQL with Prometheus" in ran.stdout


def test_an_old_go_fails_where_nothing_may_be_left_out(tmp_path):
    ran, left_out = install(tmp_path, "go1.19.8", STRICT="1")
    assert (ran.returncode, left_out) == (1, "go\n"), ran.stderr


def test_a_new_go_is_accepted(tmp_path):
    ran, left_out = install(tmp_path, "go1.99.0", STRICT="1")
    assert (ran.returncode, left_out) == (0, ""), ran.stderr
