"""Where the nodes of a cluster under test are: on loopback, or in networks of their own that can be cut.

A process without privileges can have namespaces of users, networks and mounts that end with it. A test
begins itself again in such a place, with `run_inside`; there, each node has one link to the brokers, one
to the object store, and one to its clients and the other nodes, and a small disk.
"""

import os
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).parents[1] / "cluster/kafka.sh"
# What a node has a link to, and the address of it.
PLACES = {"kafka": "10.9.9.1", "store": "10.9.9.2", "clients": "10.9.9.3"}
DISK_MIB = 256


def run_inside(test, directory):
    """Runs this test of pytest in namespaces of its own."""
    # There is no way to the repository of its jars from there.
    subprocess.run([SCRIPT, "install"], check=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = ["unshare", "--user", "--map-root-user", "--mount", "--net", sys.executable, "-m", "pytest"]
    options = ["-q", "-s", "-p", "no:xdist", "-p", "no:cacheprovider", "--basetemp", directory]
    done = subprocess.run([*command, *options, f"{test.path}::{test.name}"], env=kept | {"LATEWOOD_INSIDE": "1"})
    assert done.returncode == 0, f"{test.name} failed in its namespaces; its output is above"


def is_inside():
    return "LATEWOOD_INSIDE" in os.environ


class Loopback:
    def place(self, _name):
        return "127.0.0.1"

    def host(self, _node):
        return "127.0.0.1"

    def command(self, _node):
        return []

    def disk(self, _node, directory):
        return directory


class Networks:
    def __init__(self, nodes):
        run("mount -t tmpfs latewood /run")
        run("ip link set lo up")
        pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        for address in PLACES.values():
            run(f"ip address add {address}/32 dev lo")
        for node in range(nodes):
            self.add(node)

    def add(self, node):
        inside = f"ip -n node-{node}"
        run(f"ip netns add node-{node}")
        run(f"{inside} link set lo up")
        for number, (name, address) in enumerate(PLACES.items()):
            run(f"ip link add {name}-{node} type veth peer name {name} netns node-{node}")
            run(f"ip address add 10.{number}.{node}.1/24 dev {name}-{node}")
            run(f"ip link set {name}-{node} up")
            run(f"{inside} address add 10.{number}.{node}.2/24 dev {name}")
            run(f"{inside} link set {name} up")
            run(f"{inside} route add {address} via 10.{number}.{node}.1")
        run(f"{inside} route add default via 10.{number}.{node}.1")

    def place(self, name):
        return PLACES[name]

    def host(self, node):
        return f"10.2.{node}.2"

    def command(self, node):
        return ["nsenter", f"--net=/run/netns/node-{node}"]

    def disk(self, _node, directory):
        """A directory on a file system of its own."""
        if not os.path.ismount(directory):
            directory.mkdir()
            run(f"mount -t tmpfs -o size={DISK_MIB}m latewood {directory}")
        return directory / "data"

    def cut(self, node, name):
        """Nothing comes and nothing goes: who sends notices nothing of it."""
        run(f"ip link set {name}-{node} down")

    def mend(self, node, name):
        run(f"ip link set {name}-{node} up")


def run(words):
    subprocess.run(words.split(), check=True)
