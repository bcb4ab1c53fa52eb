"""node-redis and go-redis: programs that run under RESP2 and RESP3, against Latewood and against
RedisTimeSeries, so that they expect the replies of the original."""

import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The commands that run each program; built once."""
    built = tmp_path_factory.mktemp("go") / "client"
    subprocess.run(["go", "build", "-o", built, "."], cwd=HERE / "go", check=True)
    return {"node-redis": ["node", HERE / "node" / "main.js"], "go-redis": [built]}


@pytest.mark.parametrize("protocol", ["2", "3"], ids=["resp2", "resp3"])
@pytest.mark.parametrize("program", ["node-redis", "go-redis"])
def test_program(programs, program, protocol, either):
    environment = {**os.environ, "REDIS_PORT": str(either.port), "RESP": protocol}
    done = subprocess.run(programs[program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 5, "every part of the program ran"
