"""Cluster clients as they are in other languages: they write on when the owner is killed, and when
it hands over.

For each client there is a program with the same contract. It connects to one node, at PORT, and
then, until its input ends, over and over:

- writes five rows at once to `rows:NAME`, again and again until all are acknowledged; row i has
  the timestamp i and the value 3 i
- tries once to add 1 to `sum:NAME`
- reads the newest row at a follower, and ends with an error if no such row was sent
- prints the rows that were acknowledged, the increments that it sent, those that were
  acknowledged, and the reads that were answered

The tests of this file are one story, in order: each begins where the one before ended.
"""

import os
import pathlib
import signal
import subprocess
import threading

import pytest

from conftest import needs
from nodes import Cluster, same
from world import PATIENCE_S, wait_for

HERE = pathlib.Path(__file__).resolve().parent
# The tool of tests/setup.sh that each needs.
TOOLS = {"go-redis": "go", "node-redis": "node", "ioredis": "node", "jedis": "jedis"}

pytestmark = pytest.mark.needs("kafka")


class Program(threading.Thread):
    """A client that runs, and what it said last. A writer, as `same` knows them."""

    def __init__(self, name, port, built):
        super().__init__(daemon=True)
        self.name, self.keys = name, (f"sum:{name}", f"rows:{name}")
        self.rows = self.sent = self.sum = self.reads = 0
        self.done = threading.Event()
        commands = {
            "go-redis": [built],
            "node-redis": ["node", HERE / "node/cluster.js", "node-redis"],
            "ioredis": ["node", HERE / "node/cluster.js", "ioredis"],
            "jedis": [HERE / "jedis/jedis.sh", "run"],
        }
        environment = {**os.environ, "PORT": str(port), "NAME": name}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(commands[name], env=environment, **pipes)
        self.start()

    def run(self):
        for line in self.process.stdout:
            self.rows, self.sent, self.sum, self.reads = map(int, line.split())
            if self.done.is_set() and not self.process.stdin.closed:
                self.process.stdin.close()

    def join(self, timeout=PATIENCE_S):
        super().join(timeout)
        assert not self.is_alive(), f"{self.name} does not end"
        assert self.process.wait(timeout) == 0, self.name

    def goes_on(self):
        rows, total, reads = self.rows, self.sum, self.reads

        def went_on():
            assert self.process.poll() is None, f"{self.name} ended"
            return self.rows > rows + 50 and self.sum > total + 10 and self.reads > reads + 10

        wait_for(f"{self.name} to go on", went_on)

    def check(self, ask):
        """All that was acknowledged is there, and nothing twice."""
        assert ask("TS.RANGE", self.keys[1], "-", "+") == [[at, 3.0 * at] for at in range(1, self.rows + 1)]
        held = ask("TS.GET", self.keys[0])[1]
        assert self.sum <= held <= self.sent, (self.name, self.sum, held, self.sent)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three nodes, and all clients that this machine has."""
    left_out = os.environ.get("LEFT_OUT", "").split()
    names = [name for name, tool in TOOLS.items() if tool not in left_out]
    built = tmp_path_factory.mktemp("go") / "client"
    if "go-redis" in names:
        subprocess.run(["go", "build", "-o", built, "./cluster"], cwd=HERE / "go", check=True)
    cluster, programs = Cluster(tmp_path_factory.mktemp("cluster"), int(os.environ.get("LATEWOOD_SEED", 1))), []
    try:
        cluster.begin()
        seed = cluster.followers()[0].port
        programs += [Program(name, seed, built) for name in names]
        cluster.writers = list(programs)
        yield cluster
    finally:
        for program in programs:
            program.process.kill()
        cluster.close()


@pytest.mark.parametrize("name", [needs(name, tool) for name, tool in TOOLS.items()])
def test_it_writes_and_reads_at_followers(cluster, name):
    (program,) = [program for program in cluster.writers if program.name == name]
    program.goes_on()

    def reads():
        clients = [line for node in cluster.followers() for line in node.ask("CLIENT", "LIST").splitlines()]
        return any(name in line and "cmd=ts.get" in line for line in clients)

    wait_for("a read at a follower", reads)


def test_they_go_on_when_the_owner_is_killed(cluster):
    before = cluster.settle()
    before.kill()
    for program in cluster.writers:
        program.goes_on()
    cluster.again(before)
    cluster.settle()


def test_they_go_on_when_the_owner_is_stopped(cluster):
    before = cluster.settle()
    before.end(0, signal.SIGTERM)
    cluster.again(before)
    for program in cluster.writers:
        program.goes_on()


def test_all_that_was_acknowledged_is_there(cluster):
    programs = list(cluster.writers)
    owner, _ = same(cluster, [key for program in programs for key in program.keys])
    for program in programs:
        program.check(owner.ask)
    cluster.writers = []
    for one in programs:
        print(f"{one.name}: {one.rows} rows, {one.sum} of {one.sent} increments, {one.reads} reads")
