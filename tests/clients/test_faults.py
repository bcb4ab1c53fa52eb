"""A log in Kafka and objects in S3, with faults of real processes: everything acknowledged is
there, and every increment counts once.

LATEWOOD_ROUNDS faults are tried, also those that take minutes; each other kind once by default.
LATEWOOD_SEED replays their order.
"""

import os
import random
import shutil
import signal
import subprocess
import threading
import time

import pytest
import redis

import brokers
from conftest import BINARY, NO_RETRY, ROOT
from peer import free_port
from s3 import S3, Wire

SCRIPT = ROOT / "tests/cluster/kafka.sh"
WRITERS = 4
# How long anything may take to go on after a fault, on a machine that does much else.
PATIENCE_S = 120


def wait_for(what, is_there):
    deadline = time.monotonic() + PATIENCE_S
    while not (found := is_there()):
        assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {what}"
        time.sleep(0.05)
    return found


class Node:
    """A server with this world's log, on a port of its own."""

    def __init__(self, world, name):
        self.directory, self.port = world.directory / name, free_port()
        self.said = world.directory / f"{name}-{self.port}.log"
        words = ["serve", "--dir", self.directory, "--listen", f"127.0.0.1:{self.port}"]
        environment = S3.environment(world.settings) | {"LATEWOOD_HTTP": "off"}
        with open(self.said, "wb") as said:
            command = [BINARY, *words, *world.place()]
            self.process = subprocess.Popen(command, stderr=said, env=environment)

    def ask(self, *words):
        options = {"retry": NO_RETRY, "decode_responses": True, "socket_timeout": PATIENCE_S}
        with redis.Redis(port=self.port, **options) as client:
            return client.execute_command(*words)

    def read(self, *words):
        """As `ask`, again where a block is not on the machine yet."""

        def attempt():
            try:
                return self.ask(*words)
            except redis.ResponseError as error:
                if "not on this machine" not in str(error):
                    raise
                return None

        return wait_for("a block", attempt)

    def answers(self):
        assert self.process.poll() is None, self.said.read_text()
        try:
            return self.ask("PING")
        except (redis.ConnectionError, redis.TimeoutError):
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self, status, signal_number=None):
        """Waits for its end with this status."""
        if signal_number is not None:
            self.process.send_signal(signal_number)
        assert self.process.wait(PATIENCE_S) == status, self.said.read_text()


class Writer(threading.Thread):
    """Increments one series and adds to another, and keeps what was acknowledged, and what may
    have been written."""

    def __init__(self, world, number):
        super().__init__(daemon=True)
        self.world, self.keys = world, (f"sum:{number}", f"rows:{number}")
        self.increments, self.sent, self.rows, self.at = 0, 0, [], 0
        self.done = threading.Event()
        self.start()

    def run(self):
        while not self.done.is_set():
            connection = redis.Connection(port=self.world.node.port, socket_timeout=PATIENCE_S)
            try:
                connection.connect()
                while not self.done.is_set():
                    self.step(connection)
            except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError):
                time.sleep(0.02)
            finally:
                connection.disconnect()

    def step(self, connection):
        connection.send_command("PING")
        connection.read_response()
        # From here on it may be written.
        self.sent += 1
        connection.send_command("TS.INCRBY", self.keys[0], 1, "TIMESTAMP", 1)
        connection.read_response()
        self.increments += 1
        self.at += 1
        row = (self.at, float(self.at * 3))
        connection.send_command("TS.ADD", self.keys[1], *row, "ON_DUPLICATE", "BLOCK")
        connection.read_response()
        self.rows.append(row)

    def check(self, node):
        """What `node` has lies between what was acknowledged and what was sent."""
        increments, rows = self.increments, list(self.rows)
        held = node.read("TS.GET", self.keys[0])[1]
        assert increments <= float(held) <= self.sent, (self.keys, increments, held, self.sent)
        there = [(at, float(value)) for at, value in node.read("TS.RANGE", self.keys[1], "-", "+")]
        assert set(rows) <= set(there), (self.keys, sorted(set(rows) - set(there))[:10])
        assert all(value == at * 3 and at <= self.at for at, value in there)


class World:
    """Three brokers, an S3 server behind a wire, and the node of now."""

    def __init__(self, directory, seed):
        self.directory, self.random = directory, random.Random(seed)
        self.kafka = {"PORT": str(20_000 + random.randrange(1_000) * 9), "KAFKA_DIR": str(directory / "kafka")}
        self.store = self.node = None
        self.names, self.logs, self.writers = 0, 0, []

    def begin(self):
        self.script("start")
        self.store = S3("objects")
        self.wire = Wire(self.store.port)
        self.settings = S3.settings_at(self.wire.port)
        self.tool("init", self.place()[:2])
        self.node = Node(self, "node-0")
        wait_for("the first node", self.node.answers)
        self.writers = [Writer(self, number) for number in range(WRITERS)]

    def script(self, *words):
        subprocess.run([SCRIPT, *words], env={**os.environ, **self.kafka}, check=True)

    def ports(self):
        return [int(self.kafka["PORT"]) + 3 * broker for broker in range(3)]

    def log(self):
        return f"main-{self.logs}"

    def topic(self):
        return f"{self.log()}-log"

    def place(self):
        url = f"kafka://127.0.0.1:{self.kafka['PORT']}/{self.log()}"
        return ["--log", url, "--objects", "s3://objects/latewood"]

    def tool(self, verb, words):
        command = [BINARY, "cluster", verb, *words]
        done = subprocess.run(command, env=S3.environment(self.settings), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def is_sound(self):
        """Whether the log and what its checkpoint names have no damage."""
        command = [BINARY, "cluster", "check", *self.place()]
        return subprocess.run(command, env=S3.environment(self.settings), capture_output=True, timeout=300).returncode == 0

    def start(self, name=None):
        """Makes another node the one of now."""
        self.names += name is None
        self.node = Node(self, name or f"node-{self.names}")

    def pause(self, longest_s):
        time.sleep(self.random.uniform(0.2, longest_s))

    def check(self):
        """All of it, once every writer went on."""
        before = [writer.increments for writer in self.writers]
        for writer, increments in zip(self.writers, before):
            wait_for("a writer to go on", lambda: writer.increments > increments + 5)
        for writer in self.writers:
            writer.check(self.node)

    def close(self):
        for writer in self.writers:
            writer.done.set()
        if self.node:
            self.node.kill()
        if self.store:
            self.store.close()
        self.script("stop")


def killed(world):
    world.node.kill()
    world.start(world.node.directory.name)


def killed_while_it_saves(world):
    world.node.ask("BGSAVE")
    time.sleep(world.random.uniform(0, 0.2))
    killed(world)


def without_its_disk(world):
    world.node.kill()
    shutil.rmtree(world.node.directory)
    world.start(world.node.directory.name)


def with_a_damaged_disk(world):
    world.node.ask("SAVE")
    world.node.kill()
    files = sorted(path for path in world.node.directory.rglob("*") if path.is_file() and path.stat().st_size)
    file = world.random.choice(files)
    bytes_ = bytearray(file.read_bytes())
    bytes_[world.random.randrange(len(bytes_))] ^= 1 << world.random.randrange(8)
    file.write_bytes(bytes_)
    world.start(world.node.directory.name)


def deposed(world):
    before = world.node
    world.start()
    wait_for("the new owner", world.node.answers)
    before.end(4)


def stopped(world):
    world.node.end(0, signal.SIGTERM)
    world.start(world.node.directory.name)


def a_broker_killed(world):
    broker = str(world.random.randrange(1, 4))
    world.script("kill", broker)
    world.pause(5)
    world.script("start")


def brokers_hang(world):
    brokers = world.random.choice([[1], [2], [3], [1, 2, 3]])
    for broker in brokers:
        world.script("pause", str(broker))
    world.pause(6)
    for broker in brokers:
        world.script("resume", str(broker))


def killed_while_brokers_hang(world):
    for broker in range(1, 4):
        world.script("pause", str(broker))
    world.pause(2)
    world.node.kill()
    world.start()
    world.pause(2)
    for broker in range(1, 4):
        world.script("resume", str(broker))


def store_away(world):
    world.wire.mode = world.random.choice(["cut", "slow"])
    world.node.ask("BGSAVE")
    world.pause(5)
    if world.random.random() < 0.5:
        killed(world)
        world.pause(3)
    world.wire.mode = "whole"


def suspended_over_a_checkpoint(world):
    """The successor trims the log: who was suspended cannot see any more that it was deposed."""
    before = world.node
    before.process.send_signal(signal.SIGSTOP)
    world.start()
    wait_for("the new owner", world.node.answers)
    for _ in range(2):
        world.node.ask("TS.INCRBY", "other", 1)
        world.node.ask("SAVE")
    before.end(4, signal.SIGCONT)


def store_emptied(world):
    """Objects go, all or blocks alone, and come back. Until then no checkpoint counts that lacks one."""
    part = world.random.choice(["", "/blocks/"])
    # None is under way meanwhile.
    world.node.ask("SAVE")
    objects = world.store.take_away(part)
    world.pause(2)
    try:
        world.node.ask("SAVE")
        # What this node has was uploaded again.
        assert part, "a checkpoint in an emptied store"
    except redis.ResponseError as error:
        assert "is gone" in str(error) or "not on this machine" in str(error), error
    world.store.bring_back(objects)
    world.node.ask("SAVE")


def a_batch_that_cannot_be_read(world):
    brokers.append_bomb(world.ports(), world.topic(), 100)
    if world.random.random() < 0.5:
        killed(world)


def records_deleted_by_hand(world):
    """The node notices it and saves a checkpoint: only a kill before that would lose them."""
    said = "records that are needed were deleted"
    begun = world.node.said.read_text().count(said)
    brokers.delete_records(world.ports(), world.topic())
    wait_for("the node to notice it", lambda: world.node.said.read_text().count(said) > begun)
    world.node.ask("SAVE")
    killed(world)


def topic_deleted(world):
    brokers.delete_topic(world.ports(), world.topic())
    goes_on_in_a_new_log(world)


def newest_records_lost(world):
    """By all brokers: more than one batch is proven then, as one is in flight at a time."""
    world.node.process.send_signal(signal.SIGSTOP)
    for broker in range(1, 4):
        world.script("kill", str(broker))
    brokers.lose_tail(world.kafka["KAFKA_DIR"], world.topic(), world.random.randrange(3, 9))
    world.script("start")
    world.node.process.send_signal(signal.SIGCONT)
    goes_on_in_a_new_log(world)


def goes_on_in_a_new_log(world):
    """What a node saved of a lost log before it ended, which is everything."""
    world.node.end(1)
    (rescued,) = world.node.directory.glob("rescued-*")
    world.logs += 1
    world.tool("init", [*world.place(), "--from", rescued])
    world.start()


FAULTS = [
    killed,
    killed_while_it_saves,
    without_its_disk,
    with_a_damaged_disk,
    deposed,
    stopped,
    a_broker_killed,
    brokers_hang,
    killed_while_brokers_hang,
    store_away,
    suspended_over_a_checkpoint,
    store_emptied,
    a_batch_that_cannot_be_read,
]
# Noticed within a minute or so.
SLOW_FAULTS = [
    records_deleted_by_hand,
    topic_deleted,
    newest_records_lost,
]


def plan(seed):
    """Each kind once, in any order, and so on."""
    rounds, kinds = os.environ.get("LATEWOOD_ROUNDS"), FAULTS
    if rounds:
        kinds = FAULTS + SLOW_FAULTS
    rounds = int(rounds or len(FAULTS))
    order = random.Random(seed)
    faults = []
    while len(faults) < rounds:
        faults += order.sample(kinds, len(kinds))
    return faults[:rounds]


@pytest.mark.needs("kafka")
def test_faults_lose_nothing_and_count_nothing_twice(tmp_path):
    seed = int(os.environ.get("LATEWOOD_SEED", 1))
    world = World(tmp_path, seed)
    try:
        world.begin()
        for number, fault in enumerate(plan(seed)):
            print(f"LATEWOOD_SEED={seed} round {number}: {fault.__name__}", flush=True)
            fault(world)
            wait_for("the node", world.node.answers)
            world.check()
        for writer in world.writers:
            writer.done.set()
            writer.join()
        world.node.kill()
        # A node that has nothing, and a local database.
        world.start()
        wait_for("the last node", world.node.answers)
        for writer in world.writers:
            writer.check(world.node)
        # A batch that cannot be read is damage until a checkpoint has the log trimmed.
        world.node.ask("SAVE")
        wait_for("a log without damage", world.is_sound)
        copy = tmp_path / "copy"
        world.tool("restore", [*world.place(), "--dir", copy])
        checked = subprocess.run([BINARY, "check", copy], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout
        print(sum(writer.increments for writer in world.writers), "increments acknowledged")
    finally:
        world.close()
