"""Checks the files of deploy/ for one node with its data in a volume."""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request

import compose_spec
import kubernetes_validate
import pytest
import redis
import yaml

from conftest import BINARY
from peer import free_port
from test_deploy import DEPLOY
from test_deploy_kafka import KUBERNETES, check_variables, image

COMPOSE = DEPLOY / "docker/single-node.yaml"
MANIFEST = DEPLOY / "kubernetes/single-node.yaml"
SIZES = {"1gb": 1 << 30, "2g": 2 << 30, "2Gi": 2 << 30}


def compose():
    return yaml.safe_load(COMPOSE.read_text())


def resources(name):
    """Resources of a file by kind."""
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text())}


def variables():
    """What each file sets, with the memory that the node may have."""
    service = compose()["services"]["latewood"]
    container = resources(MANIFEST.name)["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
    return {
        "compose": (service["environment"], service["mem_limit"]),
        "kubernetes": (resources(MANIFEST.name)["ConfigMap"]["data"], container["resources"]["limits"]["memory"]),
    }


def test_the_compose_file_closes_the_container_and_keeps_the_data():
    file = compose()
    compose_spec.PyCompose.from_json(json.dumps(file)).validate()
    (service,) = file["services"].values()
    # Two files of one project name would end the services of each other.
    assert file["name"] != yaml.safe_load((DEPLOY / "docker/compose.yaml").read_text())["name"]
    assert service["volumes"] == [f"data:{image()[1]['LATEWOOD_DIR']}"] and list(file["volumes"]) == ["data"]
    assert service["ports"] == ["127.0.0.1:6379:6379", "127.0.0.1:8086:8086"]
    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["environment"]["LATEWOOD_REQUIREPASS"].startswith("${LATEWOOD_REQUIREPASS:?")
    # The health check is that of the image.
    assert "healthcheck" not in service and service["build"]["dockerfile"] == "deploy/docker/Dockerfile"


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_manifest_fits_the_schemas_of_kubernetes(version):
    found = resources(MANIFEST.name)
    assert sorted(found) == ["ConfigMap", "Service", "StatefulSet"]
    for one in found.values():
        kubernetes_validate.validate(one, version, strict=True)


def test_the_manifest_differs_from_a_node_of_kafka_in_what_it_needs():
    here, other = resources(MANIFEST.name), resources("latewood.yaml")
    assert here["Service"] == other["Service"]
    node, same = here["StatefulSet"]["spec"], other["StatefulSet"]["spec"]
    for name in ("replicas", "serviceName", "selector"):
        assert node[name] == same[name]
    pod, same = node["template"]["spec"], same["template"]["spec"]
    assert "volumes" not in pod
    assert {name: pod[name] for name in pod if name != "containers"} == {
        name: same[name] for name in same if name not in ("containers", "volumes")
    }
    (container,), (same,) = pod["containers"], same["containers"]
    assert {**container, "volumeMounts": None} == {**same, "volumeMounts": None}
    (claim,) = node["volumeClaimTemplates"]
    assert container["volumeMounts"] == [{"name": claim["metadata"]["name"], "mountPath": image()[1]["LATEWOOD_DIR"]}]


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=3) as answer:
            return answer.status == 200
    except urllib.error.URLError:
        return False


@pytest.mark.parametrize("file", ["compose", "kubernetes"])
def test_a_node_starts_answers_its_probes_and_stops(file, tmp_path):
    given, limit = variables()[file]
    check_variables(given)
    # Room for what goes over it for a moment.
    assert SIZES[given["LATEWOOD_MEMORY"]] * 4 / 3 < SIZES[limit]
    port, http = free_port(), free_port()
    listen = {"LATEWOOD_LISTEN": f"127.0.0.1:{port}", "LATEWOOD_HTTP": f"127.0.0.1:{http}"}
    given = {**image()[1], **given, **listen, "LATEWOOD_DIR": str(tmp_path), "LATEWOOD_REQUIREPASS": "secret"}
    with subprocess.Popen([BINARY, "serve"], env={**os.environ, **given}) as node:
        try:
            deadline = time.monotonic() + 30
            while not all(answers(f"http://127.0.0.1:{http}/-/{what}") for what in ("healthy", "ready")):
                assert node.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            client = redis.Redis(port=port, password="secret", decode_responses=True)
            assert client.config_get("maxmemory") == {"maxmemory": str(SIZES["1gb"])}
            client.ts().add("k", 1, 1)
            while not client.ts().queryindex(["__self__=true"]):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            node.send_signal(signal.SIGTERM)
            assert node.wait(timeout=30) == 0
        finally:
            node.kill()
