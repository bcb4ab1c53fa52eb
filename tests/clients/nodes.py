"""Three nodes of one log, with brokers and an S3 server, and writers that keep what was acknowledged."""

import random
import signal
import threading
import time
import urllib.request

import redis

from conftest import NO_RETRY
from world import PATIENCE_S, Node, World, wait_for

NODES = 3


class Member(Node):
    """A node of the cluster."""

    def __init__(self, world, number):
        # The same after a restart, and none that a connection of another node may have.
        port = world.first_port + 3 * number
        self.number, self.http, self.reads = number, port + 1, port + 2
        options = ["--cluster", "on", "--http", f"127.0.0.1:{self.http}", "--read-listen", f"127.0.0.1:{self.reads}"]
        super().__init__(world, f"node-{number}", *options, port=port)

    def role(self):
        """None while it does not answer, or follows nobody yet."""
        try:
            role, *rest = self.ask("ROLE")
            return role if role == "master" or rest[2] == "connected" else None
        except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError):
            return None

    def reading(self, *words):
        """Asks at the port for reads."""
        options = {"retry": NO_RETRY, "decode_responses": True, "socket_timeout": PATIENCE_S}
        with redis.Redis(port=self.reads, **options) as client:
            return client.execute_command(*words)

    def shows(self, key):
        """The rows of a key, if it answers."""
        try:
            return self.reading("TS.RANGE", key, "-", "+")
        except (redis.ConnectionError, redis.ResponseError):
            return None

    def fetch(self, path, body=None, headers=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", body, headers or {})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.read()


class Cluster(World):
    def __init__(self, directory, seed):
        super().__init__(directory, seed)
        self.nodes, self.first_port = [], 10_000 + random.randrange(1_000) * 9

    def begin(self):
        self.prepare()
        self.nodes = [Member(self, number) for number in range(NODES)]
        self.settle()

    def owner(self):
        """None while nobody owns the log, or one that was deposed does not know it yet."""
        owners = [node for node in self.nodes if node.role() == "master"]
        return owners[0] if len(owners) == 1 else None

    def followers(self):
        return [node for node in self.nodes if node.role() == "slave"]

    def settle(self):
        """Waits until one owns the log and all others follow it."""
        wait_for("an owner and its followers", lambda: self.owner() and len(self.followers()) == NODES - 1)
        return self.owner()

    def again(self, node):
        """Starts a node that ended."""
        self.nodes[node.number] = Member(self, node.number)

    def close(self):
        for node in self.nodes:
            node.process.send_signal(signal.SIGCONT)
            node.kill()
        super().close()


class Writer(threading.Thread):
    """Increments one series and adds to another at whoever owns the log; keeps what was
    acknowledged and what may have been written."""

    def __init__(self, cluster, number):
        super().__init__(daemon=True)
        self.cluster, self.keys = cluster, (f"sum:{number}", f"rows:{number}")
        self.increments, self.sent, self.rows, self.at = 0, 0, {}, 0
        self.longest_s, self.done = 0.0, threading.Event()
        self.start()

    def run(self):
        port, newest = self.cluster.nodes[0].port, time.monotonic()
        while not self.done.is_set():
            try:
                connection = redis.Connection(port=port, socket_timeout=3)
                connection.connect()
                while not self.done.is_set():
                    self.step(connection)
                    now = time.monotonic()
                    self.longest_s, newest = max(self.longest_s, now - newest), now
            except redis.ResponseError as error:
                moved = getattr(error, "args", ("",))[0]
                port = self.elsewhere(error)
                assert port, moved
            except (redis.ConnectionError, redis.TimeoutError):
                port = random.choice(self.cluster.nodes).port
                time.sleep(0.02)
            finally:
                connection.disconnect()

    def elsewhere(self, error):
        if isinstance(error, redis.exceptions.MovedError):
            return error.port
        time.sleep(0.05)
        return random.choice(self.cluster.nodes).port

    def step(self, connection):
        self.ask(connection, "TS.INCRBY", self.keys[0], 1, "TIMESTAMP", 1)
        self.increments += 1
        self.at += 1
        # One in three is late.
        at = self.at * 10 if self.at % 3 else self.at * 10 - 25
        self.ask(connection, "TS.ADD", self.keys[1], at, self.at, "ON_DUPLICATE", "LAST")
        self.rows[at] = float(self.at)

    def ask(self, connection, *words):
        self.sent += words[0] == "TS.INCRBY"
        try:
            connection.send_command(*words)
            connection.read_response()
        except redis.ResponseError:
            # Refused: it was not done.
            self.sent -= words[0] == "TS.INCRBY"
            raise

    def check(self, ask):
        """What `ask` finds lies between what was acknowledged and what was sent."""
        increments, rows = self.increments, dict(self.rows)
        held = float(ask("TS.GET", self.keys[0])[1])
        assert increments <= held <= self.sent, (self.keys, increments, held, self.sent)
        there = {at: float(value) for at, value in ask("TS.RANGE", self.keys[1], "-", "+")}
        lost = {at: value for at, value in rows.items() if there.get(at) != value}
        assert not lost or max(lost) >= (self.at - 3) * 10, (self.keys, sorted(lost.items())[:10])

    def goes_on(self):
        before = self.increments
        wait_for("a writer to go on", lambda: self.increments > before + 5)


def agree(cluster):
    """Writers stop; then all nodes have the same, which is what was acknowledged."""
    for writer in cluster.writers:
        writer.done.set()
    for writer in cluster.writers:
        writer.join()
    owner = cluster.settle()
    keys = sorted(key for writer in cluster.writers for key in writer.keys)
    held = {key: owner.read("TS.RANGE", key, "-", "+") for key in keys}
    for follower in cluster.followers():
        for key in keys:
            wait_for(f"{key} at a follower", lambda: follower.shows(key) == held[key])
    for writer in cluster.writers:
        for node in cluster.nodes:
            writer.check(node.reading)
    cluster.writers = []


def write(cluster, count=2):
    cluster.writers = [Writer(cluster, f"{time.monotonic_ns()}-{number}") for number in range(count)]
    for writer in cluster.writers:
        writer.goes_on()
