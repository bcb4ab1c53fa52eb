"""Three nodes of one log, with brokers and an S3 server; writers and readers that compare every answer."""

import random
import shutil
import signal
import threading
import time
import urllib.request

import redis

import ledger
from world import PATIENCE_S, Node, World, wait_for

NODES = 3
# Of the destination of a rule, in milliseconds.
BUCKET = 1000
CLOSED = (redis.ConnectionError, redis.TimeoutError)


class Member(Node):
    """A node of the cluster."""

    def __init__(self, world, number):
        # The same after a restart, and none that a connection of another node may have.
        port = world.first_port + 3 * number
        self.number, self.http, self.reads = number, port + 1, port + 2
        self.host, self.port = world.network.host(number), port
        self.directory = world.network.disk(number, world.directory / f"node-{number}")
        self.said = world.directory / f"node-{number}.log"
        options = ["--cluster", "on", "--http", f"{self.host}:{self.http}", "--read-listen", f"{self.host}:{self.reads}"]
        if self.host != "127.0.0.1":
            options += ["--protected-mode", "off"]
        self.begin(world, options, world.network.command(number), world.wires[number][1])

    def role(self):
        """None while it does not answer, or follows nobody yet."""
        try:
            role, *rest = self.ask("ROLE")
            return role if role == "master" or rest[2] == "connected" else None
        except (*CLOSED, redis.ResponseError):
            return None

    def reading(self, *words):
        """Asks at the port for reads."""
        return self.ask_at(self.reads, *words)

    def ask_soon(self, *words):
        """As `ask`, of a node that may be suspended or cut off."""
        return self.ask_at(self.port, *words, patience_s=1)

    def shows(self, key):
        """The rows of a key, if it answers."""
        try:
            return self.reading("TS.RANGE", key, "-", "+")
        except (redis.ConnectionError, redis.ResponseError):
            return None

    def fetch(self, path, body=None, headers=None):
        request = urllib.request.Request(f"http://{self.host}:{self.http}{path}", body, headers or {})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.read()


class Cluster(World):
    def __init__(self, directory, seed, network=None):
        super().__init__(directory, seed, network)
        self.nodes, self.first_port = [], 10_000 + random.randrange(800) * 12
        self.readers, self.wrong = [], []

    def begin(self):
        self.prepare()
        # Each node has one of its own, also a fresh one that joins for a while.
        self.wires = [self.wire_to_store() for _ in range(NODES + 1)]
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

    def taken(self):
        """How often a node became the owner."""
        return sum(path.read_text().count("this node owns the log") for path in self.directory.glob("node-*.log"))

    def read(self):
        """Begins to compare what every node answers."""
        self.readers = [Reader(self, node, owner) for node in self.nodes for owner in (True, False)]

    def is_right(self):
        """Fails with the first answer that was wrong."""
        assert not self.wrong, self.wrong[:3]

    def again(self, node):
        """Starts a node that ended."""
        self.nodes[node.number] = Member(self, node.number)

    def close(self):
        for thread in self.writers + self.readers:
            thread.done.set()
        for node in self.nodes:
            node.process.send_signal(signal.SIGCONT)
            node.kill()
        super().close()


class Writer(threading.Thread):
    """Writes to series of its own at whoever owns the log, and keeps what is true of them."""

    def __init__(self, cluster, number):
        super().__init__(daemon=True)
        self.cluster, self.at, self.longest_s, self.done = cluster, 0, 0.0, threading.Event()
        self.random = random.Random(number)
        names = ("sum", "added", "rows", "once", "source", "counts")
        self.keys = {name: f"{name}:{number}" for name in names}
        self.counters = {"sum": ledger.Counter(), "added": ledger.Counter()}
        self.rows = {"rows": ledger.Rows(), "once": ledger.Rows()}
        # Of the rule's destination, by bucket.
        self.counts = {}
        self.start()

    @property
    def increments(self):
        return len(self.counters["sum"].known)

    def run(self):
        node, newest, made = self.cluster.nodes[0], time.monotonic(), False
        place = (node.host, node.port)
        while not self.done.is_set():
            connection = redis.Connection(*place, socket_timeout=3, decode_responses=True)
            try:
                connection.connect()
                if not made:
                    self.make(connection)
                    made = True
                while not self.done.is_set():
                    self.step(connection)
                    now = time.monotonic()
                    self.longest_s, newest = max(self.longest_s, now - newest), now
            except redis.exceptions.MovedError as error:
                place = (error.host, error.port)
            except (*CLOSED, redis.ResponseError):
                node = random.choice(self.cluster.nodes)
                place = (node.host, node.port)
                time.sleep(0.05)
            except AssertionError as wrong:
                self.cluster.wrong.append(f"{wrong}")
                return
            finally:
                connection.disconnect()

    def make(self, connection):
        for key in (self.keys["source"], self.keys["counts"]):
            self.unless_there(connection, "TS.CREATE", key)
        rule = ("TS.CREATERULE", self.keys["source"], self.keys["counts"], "AGGREGATION", "COUNT", BUCKET)
        self.unless_there(connection, *rule)

    def unless_there(self, connection, *words):
        try:
            self.ask(connection, *words)
        except redis.exceptions.MovedError:
            raise
        except redis.ResponseError as error:
            if "already" not in str(error):
                raise

    def ask(self, connection, *words):
        connection.send_command(*words)
        return connection.read_response()

    def count(self, connection, counter, *words):
        counter.begin()
        try:
            self.ask(connection, *words)
        except redis.ResponseError:
            # It was not done.
            counter.refused()
            raise
        counter.done()

    def put(self, connection, name, ats, value, *words):
        rows = self.rows[name]
        write = rows.begin(ats, value)
        try:
            self.ask(connection, *words)
        except redis.ResponseError:
            rows.refused(ats)
            raise
        write.done()

    def step(self, connection):
        self.at += 1
        keys, counters = self.keys, self.counters
        self.count(connection, counters["sum"], "TS.INCRBY", keys["sum"], 1, "TIMESTAMP", 1)
        self.count(connection, counters["added"], "TS.ADD", keys["added"], 1, 1, "ON_DUPLICATE", "SUM")
        # One in three is late. Two have never the same time.
        at = self.at * 100 if self.at % 3 or self.at < 30 else self.at * 100 - 2550
        count = self.counts.setdefault(at // BUCKET, ledger.Counter())
        self.count(connection, count, "TS.ADD", keys["source"], at, 1)
        self.write_rows(connection)

    def write_rows(self, connection):
        at = self.at * 10 if self.at % 3 else self.at * 10 - 25
        if self.at % 8 == 0:
            # Another value of a row that may be there.
            at = self.random.randrange(max(1, self.at - 50), self.at) * 10
        word = ("TS.ADD", self.keys["rows"], at, self.at, "ON_DUPLICATE", "LAST")
        self.put(connection, "rows", [at], float(self.at), *word)
        if self.at % 7 == 0:
            first = self.random.randrange(max(1, self.at - 60), self.at + 1) * 10
            gone = list(range(first, first + 100, 5))
            self.put(connection, "rows", gone, None, "TS.DEL", self.keys["rows"], gone[0], gone[-1])
        if self.at % 5 == 0:
            words = ("TS.ADD", self.keys["once"], self.at)
            self.put(connection, "once", [self.at], float(self.at), *words, self.at, "ON_DUPLICATE", "BLOCK")
            self.is_blocked(connection, *words, self.at + 0.5, "ON_DUPLICATE", "BLOCK")

    def is_blocked(self, connection, *words):
        try:
            self.ask(connection, *words)
        except redis.ResponseError as error:
            if "BLOCK" not in str(error):
                raise
        else:
            raise AssertionError(f"{words} replaced a row that was acknowledged")

    def goes_on(self):
        before = self.increments
        wait_for("a writer to go on", lambda: self.cluster.is_right() or self.increments > before + 5)

    def check(self, ask, name, first, begun=None):
        """What is wrong with what `ask` finds in the series of this name, from a row on: at an owner, or at
        a follower whose answer may be as of `begun` seconds before."""
        asked = time.monotonic() - (begun or 0)
        # A new row of a rule is there once one of the next bucket is.
        whole = [bucket for bucket, count in list(self.counts.items()) if count.least(asked)]
        try:
            found = ask("TS.RANGE", self.keys[name], first, "+")
        except redis.ResponseError as error:
            if "does not exist" not in str(error):
                raise
            found = []
        held, ended = {at: float(value) for at, value in found}, time.monotonic()
        if name in self.counters:
            return self.counters[name].check(held.get(1, 0), asked, ended)
        if name in self.rows:
            return self.rows[name].check(held, first, ledger.NEVER, asked, ended)
        if name == "counts":
            return self.check_counts(held, first, max(whole, default=0), asked, ended)
        return None

    def check_counts(self, held, first, open_bucket, asked, ended):
        for bucket, count in list(self.counts.items()):
            at = bucket * BUCKET
            if at >= first and (at in held or bucket < open_bucket):
                if wrong := count.check(held.get(at, 0), asked, ended):
                    return f"bucket {at}: {wrong}"
        return None


class Reader(threading.Thread):
    """Asks one node over and over, at its port for reads or as its owner, and compares each answer."""

    def __init__(self, cluster, node, owner):
        super().__init__(daemon=True)
        self.cluster, self.owner, self.name = cluster, owner, f"node {node.number}"
        self.place = (node.host, node.port if owner else node.reads)
        self.random, self.answers, self.done = random.Random(node.port), 0, threading.Event()
        self.start()

    def run(self):
        while not self.done.is_set():
            # Longer than anything is suspended: what it answers then is compared too.
            connection = redis.Connection(*self.place, socket_timeout=20, decode_responses=True)
            try:
                connection.connect()
                newest = {}
                while not self.done.wait(0.03):
                    self.look(connection, newest)
            except CLOSED + (redis.ResponseError,):
                self.done.wait(0.3)
            finally:
                connection.disconnect()

    def look(self, connection, newest):
        writers = list(self.cluster.writers)
        if not writers:
            return
        writer = self.random.choice(writers)
        name = self.random.choice(list(writer.keys))
        shown = []

        def ask(*words):
            connection.send_command(*words)
            shown.append(connection.read_response())
            return shown[0]

        first = max(0, writer.at * 10 - 2000) if name == "rows" else 0
        wrong = writer.check(ask, name, first, None if self.owner else ledger.STALENESS_S)
        if name in writer.counters and shown and shown[0]:
            held, before = float(shown[0][0][1]), newest.get((writer, name), 0)
            newest[writer, name] = held
            if held < before and not wrong:
                wrong = f"{held} after {before} on one connection"
        self.answers += 1
        if wrong:
            role = "as owner" if self.owner else "for reads"
            self.cluster.wrong.append(f"{time.time():.3f} {self.name} {role}: {writer.keys[name]}: {wrong}")


def contents(node, keys):
    """All that a node has under these keys, if it answers."""
    try:
        return {key: node.reading("TS.RANGE", key, "-", "+") for key in keys}
    except (*CLOSED, redis.ResponseError):
        return None


def same(cluster, keys):
    """Writers stop; then all nodes, and one with nothing on its disk, have the same: what is returned,
    and the owner."""
    for writer in cluster.writers:
        writer.done.set()
    for writer in cluster.writers:
        writer.join()
    owner = cluster.settle()
    held = {key: owner.read("TS.RANGE", key, "-", "+") for key in keys}
    fresh = Member(cluster, NODES)
    try:
        for node in [*cluster.followers(), fresh]:
            wait_for(f"node {node.number} to have the same", lambda: contents(node, keys) == held)
    finally:
        fresh.kill()
        shutil.rmtree(fresh.directory)
    return owner, held


def agree(cluster):
    """All nodes have the same, which is what was acknowledged."""
    keys = sorted(key for writer in cluster.writers for key in writer.keys.values())
    owner, held = same(cluster, keys)
    for writer in cluster.writers:
        for name in writer.keys:
            assert not (wrong := writer.check(owner.read, name, 0)), (writer.keys[name], wrong)
        rule = ("AGGREGATION", "COUNT", BUCKET)
        made = owner.read("TS.RANGE", writer.keys["source"], "-", "+", *rule)
        # The newest bucket is not over.
        assert held[writer.keys["counts"]] == made[:-1], writer.keys["counts"]
    cluster.is_right()
    cluster.writers = []


def write(cluster, count=2):
    cluster.writers = [Writer(cluster, f"{time.monotonic_ns()}-{number}") for number in range(count)]
    for writer in cluster.writers:
        writer.goes_on()
