"""Three nodes of one log, with brokers and an S3 server: who answers what, and what becomes of
clients and samples when the owner goes.

The tests of this file are one story, in order: each begins where the one before ended.
"""

import json
import os
import signal
import subprocess
import time
import urllib.parse

import pytest
import redis
from redis.cluster import ClusterNode, LoadBalancingStrategy, RedisCluster

from conftest import BINARY
from nodes import Cluster, agree, write
from world import Node, wait_for

pytestmark = pytest.mark.needs("kafka")
@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), int(os.environ.get("LATEWOOD_SEED", 1)))
    try:
        cluster.begin()
        yield cluster
    finally:
        for writer in cluster.writers:
            writer.done.set()
        cluster.close()


def test_one_node_owns_the_log_and_the_others_follow(cluster):
    owner = cluster.owner()
    owner.ask("TS.ADD", "a", 1, 2)
    follower = cluster.followers()[0]
    for words in [("TS.ADD", "a", 2, 3), ("TS.GET", "a"), ("DEL", "a")]:
        with pytest.raises(redis.exceptions.MovedError) as refused:
            follower.ask(*words)
        assert refused.value.port == owner.port
    for node in cluster.nodes:
        wait_for("the sample", lambda: node.reading("TS.GET", "a") == [1, 2.0])
    with pytest.raises(redis.exceptions.MovedError):
        follower.reading("TS.ADD", "a", 2, 3)


def test_nodes_describe_the_same_cluster(cluster):
    owner = cluster.owner()
    ports = sorted(node.port for node in cluster.nodes)
    for node in cluster.nodes:

        def sees_all():
            ((first, last, *found),) = node.ask("CLUSTER", "SLOTS")
            there = [port for _, port, *_ in found]
            return (first, last, there[0]) == (0, 16383, owner.port) and sorted(there) == ports

        wait_for("a node to see all", sees_all)


def test_a_client_of_clusters_goes_on_when_the_owner_is_killed(cluster):
    write(cluster)
    start = [ClusterNode("127.0.0.1", node.port) for node in cluster.nodes]
    spread = LoadBalancingStrategy.ROUND_ROBIN
    client = RedisCluster(startup_nodes=start, decode_responses=True, load_balancing_strategy=spread)
    client.execute_command("TS.ADD", "of-client", 1, 1)
    before = cluster.owner()
    before.kill()
    killed = time.monotonic()

    def adds():
        try:
            return client.execute_command("TS.ADD", "of-client", 2, 2, "ON_DUPLICATE", "LAST") == 2
        except (redis.RedisError, redis.exceptions.RedisClusterException):
            return False

    wait_for("the client to write", adds)
    print(f"writes again {time.monotonic() - killed:.2f} s after kill -9")
    after = wait_for("another owner", cluster.owner)
    assert after.number != before.number
    assert after.ask("TS.RANGE", "of-client", "-", "+") == [[1, 1.0], [2, 2.0]]
    for writer in cluster.writers:
        writer.goes_on()
    cluster.again(before)
    agree(cluster)
    client.close()


def test_a_node_that_is_stopped_hands_over(cluster):
    write(cluster)
    before = cluster.owner()
    begun = time.monotonic()
    before.end(0, signal.SIGTERM)
    print(f"ended {time.monotonic() - begun:.2f} s after SIGTERM")
    wait_for("another owner", cluster.owner)
    print(f"another owner {time.monotonic() - begun:.2f} s after SIGTERM")
    cluster.again(before)
    agree(cluster)


def test_a_node_that_was_suspended_comes_back_as_a_follower(cluster):
    write(cluster)
    before = cluster.owner()
    before.process.send_signal(signal.SIGSTOP)
    others = [node for node in cluster.nodes if node is not before]
    wait_for("another owner", lambda: any(node.role() == "master" for node in others))
    for writer in cluster.writers:
        writer.goes_on()
    before.process.send_signal(signal.SIGCONT)
    wait_for("it to follow", lambda: before.role() == "slave")
    agree(cluster)


def test_a_server_without_others_spares_the_log_of_nodes(cluster):
    owner = cluster.owner()
    epoch = owner.ask("INFO", "cluster")["cluster_epoch"]
    plain = Node(cluster, "plain")
    plain.end(1)
    said = plain.said.read_text()
    assert "lives on this log" in said and "--cluster on" in said, said
    assert owner.role() == "master" and owner.ask("INFO", "cluster")["cluster_epoch"] == epoch


def test_a_second_process_at_an_address_does_not_start(cluster):
    first = cluster.followers()[0]
    address = f"{first.host}:{first.port}"
    double = Node(cluster, "double", "--cluster", "on", "--advertise", address)
    double.end(1)
    said = double.said.read_text()
    assert f"another living process tells others that it is reached at {address}" in said, said

    def shared():
        return first.ask("INFO", "cluster")["cluster_address_shared_with"]

    # It left, as it says itself, perhaps before the first one looked.
    wait_for("the address to be free", lambda: not shared())
    # A restart at an address is none.
    first.kill()
    cluster.again(first)
    cluster.settle()
    assert all(node.process.poll() is None for node in cluster.nodes)


def test_http_is_answered_at_every_node(cluster):
    owner, follower = cluster.owner(), cluster.followers()[0]
    body = b"cpu,host=a usage=5 1000000000"
    follower.fetch("/write?db=x", body)
    assert owner.ask("TS.QUERYINDEX", "host=a")
    query = urllib.parse.urlencode({"query": '{host="a"}', "time": 1})
    for node in cluster.nodes:

        def finds():
            return json.loads(node.fetch(f"/api/v1/query?{query}"))["data"]["result"]

        assert wait_for("the sample", finds)[0]["value"] == [1, "5"]


def test_the_log_and_the_objects_are_whole(cluster):
    cluster.owner().ask("SAVE")
    wait_for("a log without damage", cluster.is_sound)
    copy = cluster.directory / "copy"
    cluster.tool("restore", [*cluster.place(), "--dir", copy])
    checked = subprocess.run([BINARY, "check", copy], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
