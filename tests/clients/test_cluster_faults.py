"""Three nodes of one log, with faults of real processes, alone and in pairs: everything acknowledged
is there and counts once, at every node, and one node owns the log at a time.

LATEWOOD_ROUNDS faults are tried; each kind once by default. LATEWOOD_SEED replays their order.
"""

import os
import random
import shutil
import signal
import time

import pytest

from nodes import Cluster, agree, write
from world import wait_for

pytestmark = pytest.mark.needs("kafka")


def victim(cluster):
    """The owner, half of the time."""
    owner = cluster.settle()
    followers = cluster.followers()
    return owner if cluster.random.random() < 0.5 else cluster.random.choice(followers)


def killed(cluster):
    node = victim(cluster)
    node.kill()
    cluster.pause(6)
    cluster.again(node)


def killed_without_its_disk(cluster):
    node = victim(cluster)
    node.kill()
    shutil.rmtree(node.directory)
    cluster.pause(6)
    cluster.again(node)


def stopped(cluster):
    node = victim(cluster)
    node.end(0, signal.SIGTERM)
    cluster.again(node)


def suspended(cluster):
    node = victim(cluster)
    node.process.send_signal(signal.SIGSTOP)
    cluster.pause(8)
    node.process.send_signal(signal.SIGCONT)


def two_suspended(cluster):
    pair = cluster.random.sample(cluster.nodes, 2)
    for node in pair:
        node.process.send_signal(signal.SIGSTOP)
        cluster.pause(2)
    cluster.pause(6)
    for node in pair:
        node.process.send_signal(signal.SIGCONT)


def killed_while_it_saves(cluster):
    owner = cluster.settle()
    owner.ask("BGSAVE")
    time.sleep(cluster.random.uniform(0, 0.2))
    owner.kill()
    cluster.again(owner)


def all_killed(cluster):
    for node in cluster.nodes:
        node.kill()
    for node in list(cluster.nodes):
        cluster.again(node)


def brokers_hang(cluster):
    """Nobody takes over from an owner that lives, however long Kafka stalls."""
    owner = cluster.settle()
    hanging = cluster.random.choice([[1], [2], [3], [1, 2, 3]])
    for broker in hanging:
        cluster.script("pause", str(broker))
    cluster.pause(6)
    for broker in hanging:
        cluster.script("resume", str(broker))
    for writer in cluster.writers:
        writer.goes_on()
    assert cluster.settle() is owner


def a_broker_killed(cluster):
    broker = str(cluster.random.randrange(1, 4))
    cluster.script("kill", broker)
    cluster.pause(5)
    cluster.script("start")


def store_away(cluster):
    cluster.wire.mode = cluster.random.choice(["cut", "slow"])
    cluster.settle().ask("BGSAVE")
    cluster.pause(4)
    if cluster.random.random() < 0.5:
        owner = cluster.settle()
        owner.kill()
        cluster.pause(4)
        cluster.wire.mode = "whole"
        cluster.again(owner)
    cluster.wire.mode = "whole"


FAULTS = [
    killed,
    killed_without_its_disk,
    stopped,
    suspended,
    two_suspended,
    killed_while_it_saves,
    all_killed,
    brokers_hang,
    a_broker_killed,
    store_away,
]


def plan(seed):
    rounds = int(os.environ.get("LATEWOOD_ROUNDS") or len(FAULTS))
    order, faults = random.Random(seed), []
    while len(faults) < rounds:
        faults += order.sample(FAULTS, len(FAULTS))
    return faults[:rounds]


def test_faults_of_three_nodes_lose_nothing_and_show_nothing_that_vanishes(tmp_path):
    seed = int(os.environ.get("LATEWOOD_SEED", 1))
    cluster, increments = Cluster(tmp_path, seed), 0
    try:
        cluster.begin()
        for number, fault in enumerate(plan(seed)):
            print(f"LATEWOOD_SEED={seed} round {number}: {fault.__name__}", flush=True)
            write(cluster)
            fault(cluster)
            cluster.settle()
            for writer in cluster.writers:
                writer.goes_on()
            increments += sum(writer.increments for writer in cluster.writers)
            agree(cluster)
        cluster.owner().ask("SAVE")
        wait_for("a log without damage", cluster.is_sound)
        print(increments, "increments acknowledged")
    finally:
        cluster.close()
