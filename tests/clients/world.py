"""Brokers, an S3 server behind a wire, and servers with their log and files there, for tests of faults."""

import os
import random
import subprocess
import threading
import time

import redis

from conftest import BINARY, NO_RETRY, ROOT
from network import Loopback
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

    def __init__(self, world, name, *options, port=None):
        self.directory, self.host, self.port = world.directory / name, "127.0.0.1", port or free_port()
        self.said = world.directory / f"{name}-{self.port}.log"
        self.begin(world, [*options], [], world.settings)

    def begin(self, world, options, within, store):
        """Starts the process with the command `within` before it; `store` are its settings of S3."""
        words = ["serve", "--dir", self.directory, "--listen", f"{self.host}:{self.port}", *options]
        environment = {"LATEWOOD_HTTP": "off"} | S3.environment(store)
        with open(self.said, "ab") as said:
            command = [*within, BINARY, *words, *world.place()]
            self.process = subprocess.Popen(command, stderr=said, env=environment)

    def ask(self, *words):
        return self.ask_at(self.port, *words)

    def ask_at(self, port, *words, patience_s=PATIENCE_S):
        options = {"retry": NO_RETRY, "decode_responses": True, "socket_timeout": patience_s}
        with redis.Redis(host=self.host, port=port, **options) as client:
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

    def __init__(self, directory, seed, network=None):
        self.directory, self.random, self.network = directory, random.Random(seed), network or Loopback()
        port = 20_000 + random.randrange(1_000) * 9
        self.kafka = {"HOST": self.network.place("kafka"), "PORT": str(port), "KAFKA_DIR": str(directory / "kafka")}
        self.store = self.node = None
        self.names, self.logs, self.writers = 0, 0, []

    def prepare(self):
        self.script("start")
        self.store = S3("objects")
        self.wire, self.settings = self.wire_to_store()
        self.tool("init", self.place()[:2])

    def wire_to_store(self):
        """A wire, and the settings of who uses it."""
        place = self.network.place("store")
        wire = Wire(self.store.port, place)
        return wire, S3.settings_at(wire.port, place)

    def begin(self):
        self.prepare()
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
        brokers = ",".join(f"{self.kafka['HOST']}:{port}" for port in self.ports())
        return ["--log", f"kafka://{brokers}/{self.log()}", "--objects", "s3://objects/latewood"]

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
