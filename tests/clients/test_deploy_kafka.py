"""Checks the files of deploy/ for a node whose log is in Kafka and whose files are in an object store.

The topic in deploy/kubernetes/kafka.yaml is compared with `cluster init` by crates/cluster/tests/topic.rs.
"""

import copy
import json
import os
import pathlib
import re
import subprocess
import urllib.request

import compose_spec
import kubernetes_validate
import pytest
import yaml

from conftest import BINARY, ROOT, Server, make_certificate
from peer import free_port
from test_deploy import DEPLOY, instructions, run

COMPOSE = DEPLOY / "docker/compose.yaml"
# The oldest and the newest that the manifests must fit.
KUBERNETES = ["1.28", "1.37"]
BROKER = re.compile(r"[\w-]+:909\d")


def image():
    """User and variables of the container."""
    found = dict(instructions((DEPLOY / "docker/Dockerfile").read_text()))
    return found["USER"].split(":")[0], dict(re.findall(r"(LATEWOOD_\w+)=(\S+)", found["ENV"]))


def check_variables(variables):
    """Each must be one that the program reads, or one of an object store in the manual."""
    known = set(re.findall(r"\[env: (\w+)=", " ".join(run(BINARY, "serve", "--help").split())))
    known |= set(re.findall(r"`(AWS_\w+)", (ROOT / "docs/operations.md").read_text()))
    assert set(variables) - known == set()


def start_without_brokers(directory, variables):
    """What a node with these variables says while no broker answers, and how a stop then ends it."""
    url = BROKER.sub(lambda _: f"127.0.0.1:{free_port()}", variables["LATEWOOD_LOG"])
    listen = {"LATEWOOD_LISTEN": f"127.0.0.1:{free_port()}", "LATEWOOD_HTTP": "off"}
    given = {**os.environ, **variables, **listen, "LATEWOOD_DIR": str(directory), "LATEWOOD_LOG": url}
    node = subprocess.Popen([BINARY, "serve"], env=given, stderr=subprocess.PIPE, text=True)
    said = ""
    for line in node.stderr:
        said += line
        if " yet" in line:
            node.terminate()
    return said, node.wait(timeout=60)


@pytest.fixture
def compose():
    return yaml.safe_load(COMPOSE.read_text())


def test_the_compose_file_is_one():
    text = COMPOSE.read_text()
    # Given what PyYAML made of merges, which compose_spec does not follow.
    compose_spec.PyCompose.from_json(json.dumps(yaml.safe_load(text))).validate()
    if subprocess.run(["sh", "-c", "docker compose version"], capture_output=True).returncode == 0:
        passwords = {"LATEWOOD_REQUIREPASS": "a", "MINIO_ROOT_PASSWORD": "b"}
        run("docker", "compose", "-f", COMPOSE, "config", "--quiet", env={**os.environ, **passwords})


def test_the_compose_file_has_three_brokers_that_find_each_other(compose):
    brokers = {name: one for name, one in compose["services"].items() if name.startswith("kafka")}
    assert len(brokers) == 3
    version = re.search(r"Kafka (\S+) brokers", (ROOT / "tests/cluster/kafka.sh").read_text())[1]
    voters = []
    for name, broker in brokers.items():
        settings = broker["environment"]
        assert broker["image"] == f"apache/kafka:{version}"
        assert settings["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{name}:9092"
        assert broker["volumes"] == [f"{name}:{settings['KAFKA_LOG_DIRS']}"]
        voters.append(f"{settings['KAFKA_NODE_ID']}@{name}:9093")
    assert {one["environment"]["KAFKA_CONTROLLER_QUORUM_VOTERS"] for one in brokers.values()} == {",".join(voters)}
    assert len({one["environment"]["CLUSTER_ID"] for one in brokers.values()}) == 1


def test_the_compose_file_starts_one_node_on_what_was_made(compose, tmp_path):
    services = compose["services"]
    node, topic = services["latewood"], services["topic"]["command"][0]
    variables = node["environment"]
    check_variables(variables)
    made = re.search(r"latewood cluster init (.*?) &&", topic)[1]
    assert made == f"--log {variables['LATEWOOD_LOG']}"
    assert BROKER.findall(made) == [f"{name}:9092" for name in services if name.startswith("kafka")]
    assert variables["LATEWOOD_OBJECTS"].startswith("s3://latewood/")
    assert " store/latewood" in services["bucket"]["command"][0]
    assert all(one["condition"] == "service_completed_successfully" for one in node["depends_on"].values())
    assert set(node["depends_on"]) == {"bucket", "topic"}
    assert f"cache:{image()[1]['LATEWOOD_DIR']}" in node["volumes"]
    mounted = {volume.split(":")[0] for one in services.values() for volume in one.get("volumes", [])}
    assert mounted == set(compose["volumes"])
    published = [port for one in services.values() for port in one.get("ports", [])]
    assert len(published) == 2 and all(port.startswith("127.0.0.1:") for port in published)
    assert not any(re.fullmatch(r"[^$]+", variables[name]) for name in variables if "PASS" in name or "SECRET" in name)
    words = made.split()
    words[1] = BROKER.sub(f"127.0.0.1:{free_port()}", words[1])
    refused = subprocess.run([BINARY, "cluster", "init", *words], capture_output=True, text=True)
    wanted = "latewood: cannot look at topic main-log: Kafka cannot do this now: no broker answers: "
    assert refused.stderr.startswith(wanted), refused.stderr
    said, status = start_without_brokers(tmp_path, variables)
    assert "cannot use topic main-log yet" in said and status == 0


@pytest.fixture
def manifests():
    """Resources by (kind, name)."""
    files = [DEPLOY / "kubernetes/kafka.yaml", DEPLOY / "kubernetes/latewood.yaml"]
    documents = [document for file in files for document in yaml.safe_load_all(file.read_text())]
    found = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    assert len(found) == len(documents)
    return found


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_manifests_fit_the_schemas_of_kubernetes(manifests, version):
    own = [one for one in manifests.values() if "strimzi" not in one["apiVersion"]]
    assert sorted(one["kind"] for one in own) == ["ConfigMap", "Service", "StatefulSet"]
    for one in own:
        kubernetes_validate.validate(one, version, strict=True)
    wrong = copy.deepcopy(manifests["StatefulSet", "latewood"])
    wrong["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_three_nodes_differ_from_one_in_what_they_need(manifests):
    found = list(yaml.safe_load_all((DEPLOY / "kubernetes/cluster.yaml").read_text()))
    for version in KUBERNETES:
        for one in found:
            kubernetes_validate.validate(one, version, strict=True)
    (node,) = [one["spec"] for one in found if one["kind"] == "StatefulSet"]
    (variables,) = [one["data"] for one in found if one["kind"] == "ConfigMap"]
    check_variables(variables)
    services = {one["metadata"]["name"]: one["spec"] for one in found if one["kind"] == "Service"}
    assert node["replicas"] == 3 and node["serviceName"] in services
    (container,) = node["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    listens = {**image()[1], **variables}
    names = {"redis": "LATEWOOD_LISTEN", "reads": "LATEWOOD_READ_LISTEN", "http": "LATEWOOD_HTTP"}
    assert ports == {name: int(listens[variable].split(":")[1]) for name, variable in names.items()}
    for service in services.values():
        assert service["selector"] == node["selector"]["matchLabels"] == node["template"]["metadata"]["labels"]
        assert {port["targetPort"] for port in service["ports"]} <= set(ports)
    # Others reach a pod by its name below the service of the set.
    advertised = {one["name"]: one.get("value") for one in container["env"]}
    assert advertised["LATEWOOD_ADVERTISE"] == f"$(POD).{node['serviceName']}:{ports['redis']}"
    alone = copy.deepcopy(manifests["StatefulSet", "latewood"]["spec"])
    for same in ("livenessProbe", "readinessProbe", "resources", "securityContext", "volumeMounts"):
        assert container[same] == alone["template"]["spec"]["containers"][0][same]
    assert node["volumeClaimTemplates"] == alone["volumeClaimTemplates"]


def test_the_stateful_set_runs_one_unprivileged_node(manifests):
    node = manifests["StatefulSet", "latewood"]["spec"]
    pod = node["template"]["spec"]
    (container,) = pod["containers"]
    user, variables = image()
    assert node["replicas"] == 1
    assert pod["enableServiceLinks"] is False and pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == int(user)
    # More than a stop waits for Kafka.
    assert pod["terminationGracePeriodSeconds"] >= 60
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    claims = [claim["metadata"]["name"] for claim in node["volumeClaimTemplates"]]
    assert [mounts[variables["LATEWOOD_DIR"]]] == claims
    assert set(mounts.values()) == {volume["name"] for volume in pod["volumes"]} | set(claims)
    service = manifests["Service", "latewood"]["spec"]
    assert service["selector"] == node["selector"]["matchLabels"] == node["template"]["metadata"]["labels"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == ports
    listens = [int(variables[name].split(":")[1]) for name in ("LATEWOOD_LISTEN", "LATEWOOD_HTTP")]
    assert [ports["redis"], ports["http"]] == listens


def test_the_probes_ask_what_a_node_answers(manifests, tmp_path):
    (container,) = manifests["StatefulSet", "latewood"]["spec"]["template"]["spec"]["containers"]
    http = free_port()
    server = Server(tmp_path / "data", "--http", f"127.0.0.1:{http}")
    for name, path in (("livenessProbe", "/-/healthy"), ("readinessProbe", "/-/ready")):
        probe = container[name]
        assert probe["httpGet"] == {"path": path, "port": "http"}
        with urllib.request.urlopen(f"http://127.0.0.1:{http}{path}", timeout=probe["timeoutSeconds"]) as answer:
            assert answer.status == 200
    server.kill()


@pytest.mark.needs("openssl")
def test_the_pod_finds_its_topic_user_and_certificates(manifests, tmp_path):
    cluster, user = manifests["Kafka", "log"], manifests["KafkaUser", "latewood-log"]
    variables = manifests["ConfigMap", "latewood"]["data"]
    check_variables(variables)
    pod = manifests["StatefulSet", "latewood"]["spec"]["template"]["spec"]
    (listener,) = cluster["spec"]["kafka"]["listeners"]
    assert listener["tls"] and listener["authentication"] == user["spec"]["authentication"] == {"type": "tls"}
    log = f"kafka://{cluster['metadata']['name']}-kafka-bootstrap:{listener['port']}/"
    assert variables["LATEWOOD_LOG"].startswith(log)
    topic = variables["LATEWOOD_LOG"].removeprefix(log) + "-log"
    assert ("KafkaTopic", topic) in manifests
    (allowed,) = user["spec"]["authorization"]["acls"]
    assert allowed["resource"] == {"type": "topic", "name": topic, "patternType": "literal"}
    for one in manifests.values():
        if "strimzi" in one["apiVersion"] and one is not cluster:
            assert one["metadata"]["labels"] == {"strimzi.io/cluster": cluster["metadata"]["name"]}
    secrets = {volume["name"]: volume["secret"] for volume in pod["volumes"]}
    assert secrets["kafka-user"]["secretName"] == user["metadata"]["name"]
    assert secrets["kafka-ca"]["secretName"] == f"{cluster['metadata']['name']}-cluster-ca-cert"
    # The files of the variables are among those that are mounted, and are used.
    (container,) = pod["containers"]
    places = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    files = {f"{places[name]}/{item['path']}" for name, secret in secrets.items() for item in secret["items"]}
    assert files == {value for name, value in variables.items() if name.endswith("_FILE")}
    certificate, key = make_certificate(tmp_path)
    here = {name: value for name, value in variables.items() if not name.endswith("_FILE")}
    for name in set(variables) - set(here):
        here[name] = str(key if pathlib.Path(variables[name]).suffix == ".key" else certificate)
    said, status = start_without_brokers(tmp_path / "data", here)
    assert f"cannot use topic {topic} yet" in said and status == 0
    key.unlink()
    said, status = start_without_brokers(tmp_path / "data", here)
    assert str(key) in said and status == 1
