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
import time

import pytest
import redis

import brokers
from conftest import BINARY
from world import Node, World, wait_for


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
    saved = world.node.ask("LASTSAVE")
    objects = world.store.take_away(part)
    world.pause(2)
    try:
        world.node.ask("SAVE")
        # What this node has was uploaded again.
        assert part, "a checkpoint in an emptied store"
    except redis.ResponseError as error:
        assert "is gone" in str(error) or "not on this machine" in str(error), error
        assert world.node.ask("LASTSAVE") == saved
        assert world.node.ask("INFO", "persistence")["rdb_last_bgsave_status"] == "err"
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


def topic_made_unsafe(world):
    """The node saves what the topic may lose before it ends."""
    brokers.set_retention(world.ports(), world.topic(), 3_600_000)
    world.node.end(1)
    said = world.node.said.read_text()
    assert "retention.ms is 3600000" in said and "checkpoint saved" in said.splitlines()[-2], said
    brokers.delete_records(world.ports(), world.topic())
    copy = world.directory / f"copy-{world.logs}"
    world.tool("restore", ["--without-log", *world.place()[2:], "--log", world.place()[1], "--dir", copy])
    world.logs += 1
    world.tool("init", [*world.place(), "--from", copy])
    world.start()


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
    refused = Node(world, world.node.directory.name)
    refused.end(1)
    assert "a local database of all that a log held" in refused.said.read_text(), refused.said.read_text()
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
    topic_made_unsafe,
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
