"""node-redis and go-redis: programs that run under RESP2 and RESP3, against Latewood and against
RedisTimeSeries, so that they expect the replies of the original."""

import os
import pathlib
import subprocess

import pytest

from conftest import needs

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="session", params=[needs("node-redis", "node"), needs("go-redis", "go")])
def program(request, tmp_path_factory):
    """The command that runs the program; built once."""
    if request.param == "node-redis":
        return ["node", HERE / "node" / "main.js"]
    built = tmp_path_factory.mktemp("go") / "client"
    subprocess.run(["go", "build", "-o", built, "."], cwd=HERE / "go", check=True)
    return [built]


@pytest.mark.parametrize("protocol", ["2", "3"], ids=["resp2", "resp3"])
def test_program(program, protocol, either):
    check(program, {**os.environ, "REDIS_PORT": str(either.port), "RESP": protocol})


def check(program, environment):
    """Every part of the program runs and finds the replies right."""
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 5, "every part of the program ran"
