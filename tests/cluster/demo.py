#!/usr/bin/env python3
"""Three brokers, three nodes of one log, a load of which 30 % comes late; the owner is killed with
kill -9, another node takes over, and every acknowledged sample is compared at every node.

    demo.py PROGRAM [--seconds N] [--keep]

All of it on loopback, in target/cluster-demo. Needs only Python and what kafka.sh needs.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIR = ROOT / "target/cluster-demo"
PORTS = {"PORT": "19392", "KAFKA_DIR": str(DIR / "kafka")}
LOG = "kafka://127.0.0.1:19392,127.0.0.1:19395,127.0.0.1:19398/demo"
NODES, WRITERS, SERIES, BATCH = 3, 4, 50, 100
LATE = 0.3
STEP_MS = 1_000
PATIENCE_S = 120


class Refused(Exception):
    """An error that the server answered."""


class Client:
    """One connection that speaks RESP2."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.lines = self.socket.makefile("rb")

    def ask(self, *words):
        parts = [f"*{len(words)}\r\n".encode()]
        for word in words:
            text = str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(text), text))
        self.socket.sendall(b"".join(parts))
        return self.reply()

    def reply(self):
        line = self.lines.readline()
        if not line:
            raise ConnectionError("the server closed the connection")
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            raise Refused(text.decode())
        if kind == b":":
            return int(text)
        if kind == b"$":
            return None if text == b"-1" else self.lines.read(int(text) + 2)[:-2].decode()
        if kind == b"*":
            # An error in an array is that of one item.
            return [self.item() for _ in range(int(text))]
        return text.decode()

    def item(self):
        try:
            return self.reply()
        except Refused as refused:
            return refused

    def close(self):
        self.lines.close()
        self.socket.close()


class Node:
    def __init__(self, program, number):
        self.number, self.port, self.reads = number, 7501 + number, 7511 + number
        command = [program, "serve", "--cluster", "on", "--log", LOG, "--objects", f"file://{DIR}/objects"]
        command += ["--dir", f"{DIR}/node-{number}", "--listen", f"127.0.0.1:{self.port}"]
        command += ["--ts-duplicate-policy", "last"]
        command += ["--read-listen", f"127.0.0.1:{self.reads}", "--http", f"127.0.0.1:{7521 + number}"]
        with open(DIR / f"node-{number}.log", "ab") as said:
            self.process = subprocess.Popen(command, stderr=said)

    def role(self):
        if self.process.poll() is not None:
            sys.exit(f"node {self.number} ended: see {DIR}/node-{self.number}.log")
        try:
            client = Client(self.port)
        except OSError:
            return None
        try:
            return client.ask("ROLE")[0]
        except (OSError, Refused):
            return None
        finally:
            client.close()


class Writer(threading.Thread):
    """Adds samples to series of its own at whoever owns the log, and keeps what was acknowledged."""

    def __init__(self, nodes, number):
        super().__init__(daemon=True)
        self.nodes, self.number, self.random = nodes, number, random.Random(number)
        self.acknowledged, self.newest = {}, 0
        self.late = 0
        self.longest_s, self.done = 0.0, threading.Event()

    def run(self):
        client, heard = None, time.monotonic()
        while not self.done.is_set():
            batch = self.batch()
            while not self.done.is_set():
                try:
                    client = client or Client(self.random.choice(self.nodes).port)
                    if not self.acknowledged:
                        self.create(client)
                    words = [word for sample in batch for word in sample]
                    for (key, at, value), reply in zip(batch, client.ask("TS.MADD", *words)):
                        if reply != at:
                            raise Refused(str(reply))
                        self.acknowledged.setdefault(key, {})[at] = value
                    break
                except (OSError, Refused) as error:
                    # The same samples once more: under LAST that changes nothing.
                    port = port_of(error)
                    client = client and client.close()
                    try:
                        client = Client(port) if port else None
                    except OSError:
                        client = None
                    time.sleep(0.02)
            now = time.monotonic()
            self.longest_s, heard = max(self.longest_s, now - heard), now

    def create(self, client):
        for series in range(SERIES):
            try:
                client.ask("TS.CREATE", f"demo:{self.number}:{series}", "LABELS", "writer", self.number)
            except Refused as refused:
                if "already exists" not in str(refused):
                    raise

    def batch(self):
        batch = []
        for _ in range(BATCH):
            series = self.random.randrange(SERIES)
            self.newest += STEP_MS
            at = self.newest
            if self.random.random() < LATE:
                at -= self.random.randrange(1, 600) * STEP_MS
                at = max(at, 1)
                self.late += 1
            batch.append((f"demo:{self.number}:{series}", at, at * 7 % 1000 + series))
        return batch


def port_of(error):
    """Of the owner, if a node named it."""
    words = str(error).split()
    return int(words[2].rsplit(":", 1)[1]) if words[:1] == ["MOVED"] else None


def wait_for(what, is_there):
    deadline = time.monotonic() + PATIENCE_S
    while not (found := is_there()):
        if time.monotonic() > deadline:
            sys.exit(f"waited {PATIENCE_S} s for {what}; the logs are in {DIR}")
        time.sleep(0.02)
    return found


def brokers(verb):
    subprocess.run([ROOT / "tests/cluster/kafka.sh", verb], env={**os.environ, **PORTS}, check=True)


def settle(nodes):
    """The owner, once all others follow it."""

    def settled():
        roles = [node.role() for node in nodes]
        is_settled = roles.count("master") == 1 and roles.count("slave") == len(nodes) - 1
        return is_settled and nodes[roles.index("master")]

    return wait_for("an owner and its followers", settled)


def compare(nodes, writers):
    """How many samples were compared at each node; ends the demo if one differs."""
    compared = 0
    for node in nodes:
        client = Client(node.reads)
        for writer in writers:
            for key, expected in writer.acknowledged.items():

                def held(key=key):
                    rows = client.ask("TS.RANGE", key, "-", "+")
                    return {at: float(value) for at, value in rows}

                def has_all(expected=expected):
                    found = held()
                    return all(found.get(at) == value for at, value in expected.items())

                wait_for(f"all samples of {key} at node {node.number}", has_all)
                compared += len(expected)
        client.close()
    return compared


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=20, help="how long the load takes")
    parser.add_argument("--keep", action="store_true", help="leave nodes and brokers running")
    options = parser.parse_args()
    if DIR.exists():
        brokers("stop")
        shutil.rmtree(DIR)
    (DIR / "objects").mkdir(parents=True)
    nodes = []
    try:
        print("starting three brokers")
        brokers("start")
        subprocess.run([options.program, "cluster", "init", "--log", LOG], check=True)
        nodes = [Node(options.program, number) for number in range(NODES)]
        owner = settle(nodes)
        print(f"node {owner.number} owns the log, the others follow")
        writers = [Writer(nodes, number) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        time.sleep(options.seconds / 3)
        owner.process.kill()
        owner.process.wait()
        killed = time.monotonic()
        print(f"node {owner.number} is killed with kill -9 under load")
        others = [node for node in nodes if node is not owner]
        heir = wait_for("another owner", lambda: next((node for node in others if node.role() == "master"), None))
        print(f"node {heir.number} owns the log {time.monotonic() - killed:.1f} s later")
        time.sleep(options.seconds / 3)
        nodes[owner.number] = Node(options.program, owner.number)
        settle(nodes)
        print(f"node {owner.number} is started again and follows")
        time.sleep(options.seconds / 3)
        for writer in writers:
            writer.done.set()
        for writer in writers:
            writer.join()
        samples = sum(len(rows) for writer in writers for rows in writer.acknowledged.values())
        late = sum(writer.late for writer in writers)
        longest_s = max(writer.longest_s for writer in writers)
        compared = compare(nodes, writers)
        print(f"{samples} samples acknowledged, {late} came late; the longest wait of a writer was {longest_s:.1f} s")
        print(f"{compared} samples compared at {NODES} nodes: none is missing, none differs")
    finally:
        if options.keep and nodes:
            print(f"nodes listen on ports {', '.join(str(node.port) for node in nodes)}; brokers on 19392 and behind")
        else:
            for node in nodes:
                node.process.kill()
                node.process.wait()
            brokers("stop")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
