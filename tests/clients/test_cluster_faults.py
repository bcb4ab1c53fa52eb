"""Three nodes of one log, with faults of real processes, networks, stores and disks, alone and in pairs:
everything acknowledged is there and counts once, at every node; no answer of any node is older than it
may be or shows what vanishes later; one node owns the log at a time.

LATEWOOD_ROUNDS rounds are tried, every other one with two faults at once; a few by default.
LATEWOOD_SEED replays their order; LATEWOOD_FAULTS names the kinds, if not all.
"""

import os
import random
import shutil
import signal
import time

import pytest
import redis

import network
from nodes import CLOSED, NODES, Cluster, agree, write
from world import wait_for

pytestmark = pytest.mark.needs("kafka")
BROKERS = [1, 2, 3]


class Round:
    """The faults of one round. Each kind is a generator: it begins the fault up to its `yield`, and ends
    it behind that. No two of them have the same node or the same broker."""

    def __init__(self, cluster):
        self.cluster, self.random, self.network = cluster, cluster.random, cluster.network
        self.owner, self.free, self.brokers = cluster.settle(), list(cluster.nodes), list(BROKERS)
        # Whether nothing is done to the owner: then it stays the owner.
        self.spares_owner = True
        # Whether no other fault goes on.
        self.is_alone = True

    def victims(self, count):
        """The owner first, half of the time."""
        self.random.shuffle(self.free)
        if self.random.random() < 0.5:
            self.free.sort(key=lambda node: node is not self.owner)
        taken, self.free = self.free[:count], self.free[count:]
        self.spares_owner &= self.owner not in taken
        return taken

    def victim(self):
        (node,) = self.victims(1)
        return node

    def without(self, broker):
        """Once it is silent for as long as a session of brokers lasts, the partition of the owner may have
        another leader, and the owner can be slower than others to find it."""
        self.brokers = [other for other in self.brokers if other != broker]
        self.spares_owner = False

    def hang(self, count):
        """Lets brokers hang; which."""
        hanging = self.random.sample(self.brokers, min(count, len(self.brokers)))
        for broker in hanging:
            self.without(broker)
            self.cluster.script("pause", str(broker))
        return hanging

    def resume(self, hanging):
        for broker in hanging:
            self.cluster.script("resume", str(broker))

    def save(self):
        """Begins a checkpoint, if there is an owner."""
        for node in self.cluster.nodes:
            try:
                node.ask_soon("BGSAVE")
            except (*CLOSED, redis.ResponseError):
                pass


def killed(round):
    node = round.victim()
    node.kill()
    yield
    round.cluster.again(node)


def killed_without_its_disk(round):
    node = round.victim()
    node.kill()
    shutil.rmtree(node.directory)
    yield
    round.cluster.again(node)


def stopped(round):
    node = round.victim()
    node.process.send_signal(signal.SIGTERM)
    yield
    node.end(0)
    round.cluster.again(node)


def suspended(round):
    node = round.victim()
    node.process.send_signal(signal.SIGSTOP)
    round.cluster.pause(6)
    yield
    node.process.send_signal(signal.SIGCONT)


def two_suspended(round):
    pair = round.victims(2)
    for node in pair:
        node.process.send_signal(signal.SIGSTOP)
        round.cluster.pause(2)
    yield
    for node in pair:
        node.process.send_signal(signal.SIGCONT)


def killed_while_it_saves(round):
    node = round.victim()
    round.save()
    time.sleep(round.random.uniform(0, 0.2))
    node.kill()
    yield
    round.cluster.again(node)


def all_killed(round):
    nodes = round.victims(NODES)
    for node in nodes:
        node.kill()
    yield
    for node in nodes:
        round.cluster.again(node)


def brokers_hang(round):
    hanging = round.hang(round.random.choice([1, 1, 3]))
    yield
    round.resume(hanging)


def two_brokers_hang_for_long(round):
    """Kafka takes nothing then."""
    hanging = round.hang(2)
    time.sleep(30)
    yield
    round.resume(hanging)


def a_broker_killed(round):
    broker = round.random.choice(round.brokers or BROKERS)
    round.without(broker)
    round.cluster.script("kill", str(broker))
    yield
    round.cluster.script("start")


def store_has_faults(round):
    """For one node, or for all."""
    wires = [wire for wire, _ in round.cluster.wires]
    wires = round.random.choice([wires, [round.random.choice(wires[:NODES])]])
    mode = round.random.choice(["cut", "slow", "wrong"])
    for wire in wires:
        wire.mode = mode
    round.save()
    yield
    for wire in wires:
        wire.mode = "whole"


def cut_from(*places):
    """A kind of fault that cuts a node from these; for longer than it takes to be deposed, mostly."""

    def cut(round):
        node = round.victim()
        for place in places:
            round.network.cut(node.number, place)
        round.cluster.pause(8)
        yield
        for place in places:
            round.network.mend(node.number, place)

    cut.__name__ = f"cut_from_{'_'.join(places)}"
    return cut


def disk_full(round):
    node = round.victim()
    filler = node.directory.parent / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 16)):
                pass
        except OSError:
            pass
    round.save()

    def is_handed_over():
        # It may win the claim once more, and notices nothing until it writes files.
        round.save()
        return round.cluster.owner() not in (None, node)

    if round.is_alone and node is round.owner:
        wait_for("another owner", is_handed_over)
    round.cluster.pause(4)
    yield
    filler.unlink()
    round.cluster.pause(1)
    if node.process.poll() is not None:
        # A start that finds no space ends, for a supervisor to start it again.
        assert "No space left on device" in node.said.read_text().splitlines()[-1]
        round.cluster.again(node)


OF_PROCESSES = [
    killed,
    killed_without_its_disk,
    stopped,
    suspended,
    two_suspended,
    killed_while_it_saves,
    all_killed,
    brokers_hang,
    two_brokers_hang_for_long,
    a_broker_killed,
    store_has_faults,
]
OF_NETWORKS = [
    cut_from("kafka"),
    cut_from("store"),
    cut_from("clients"),
    cut_from("kafka", "store"),
    cut_from("kafka", "clients"),
    cut_from("kafka", "store", "clients"),
    disk_full,
]
# Too long for `make test`.
SLOW = [two_brokers_hang_for_long]


def plan(seed, kinds, few):
    """The kinds of each round: each of them once, in any order, and so on."""
    rounds, order, flat = int(os.environ.get("LATEWOOD_ROUNDS") or few), random.Random(seed), []
    only = os.environ.get("LATEWOOD_FAULTS", "").split()
    if only:
        kinds = [kind for kind in kinds if kind.__name__ in only]
    elif "LATEWOOD_ROUNDS" not in os.environ:
        kinds = [kind for kind in kinds if kind not in SLOW]
    while len(flat) < 2 * rounds:
        flat += order.sample(kinds, len(kinds))
    return [[flat.pop() for _ in range(1 + number % 2)] for number in range(rounds)]


def run_round(cluster, kinds):
    round, before = Round(cluster), cluster.taken()
    # It leaves no node to others.
    kinds = sorted(kinds, key=lambda kind: kind is all_killed)
    faults = [kind(round) for kind in kinds]
    for fault in faults:
        next(fault)
        cluster.pause(3)
        round.is_alone = False
    ends = list(zip(kinds, faults))
    cluster.random.shuffle(ends)
    # A broker does not start beside one that hangs.
    ends.sort(key=lambda end: end[0] is a_broker_killed)
    for _, fault in ends:
        assert next(fault, None) is None
        cluster.pause(1)
    cluster.settle()
    taken = cluster.taken() - before
    for writer in cluster.writers:
        writer.goes_on()
    if round.spares_owner:
        assert taken == 0, f"{taken} take-overs from an owner that lived"
    return taken


def run_rounds(cluster, seed, rounds):
    """Begins the cluster, and ends it."""
    increments = taken = 0
    try:
        cluster.begin()
        cluster.read()
        for number, kinds in enumerate(rounds):
            names = ", ".join(kind.__name__ for kind in kinds)
            print(f"{time.strftime('%X')} LATEWOOD_SEED={seed} round {number}: {names}", flush=True)
            write(cluster)
            more = run_round(cluster, kinds)
            taken += more
            increments += sum(writer.increments for writer in cluster.writers)
            agree(cluster)
            print(f"{more} take-overs, {increments} increments", flush=True)
        for reader in cluster.readers:
            # Not every node was the owner.
            assert reader.answers or reader.owner, f"{reader.name} answered nothing"
        wait_for("a log without damage", lambda: cluster.owner().ask("SAVE") and cluster.is_sound())
        answers = sum(reader.answers for reader in cluster.readers)
        print(f"{increments} increments acknowledged, {answers} answers compared, {taken} take-overs")
    finally:
        cluster.close()


def seed_of_now():
    return int(os.environ.get("LATEWOOD_SEED", 1))


def test_faults_of_processes_lose_nothing_and_show_nothing_that_vanishes(tmp_path):
    seed = seed_of_now()
    run_rounds(Cluster(tmp_path, seed), seed, plan(seed, OF_PROCESSES, 4))


@pytest.mark.needs("networks")
def test_faults_of_networks_and_disks_lose_nothing_and_show_nothing_that_vanishes(tmp_path, request):
    if not network.is_inside():
        return network.run_inside(request.node, tmp_path / "inside")
    seed = seed_of_now()
    # A soak has all kinds in pairs with all others.
    kinds = OF_NETWORKS + OF_PROCESSES * ("LATEWOOD_ROUNDS" in os.environ)
    run_rounds(Cluster(tmp_path, seed, network.Networks(NODES + 1)), seed, plan(seed, kinds, 4))
