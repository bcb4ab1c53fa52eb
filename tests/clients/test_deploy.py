"""Checks deploy/ and the packaging against the program and the tools that read them."""

import collections
import re
import subprocess
import tomllib
import urllib.request
from os import path
from pathlib import Path

import pytest

from conftest import BINARY, ROOT, Server, make_certificate
from peer import free_port

DEPLOY = ROOT / "deploy"
# A Markdown link to another page.
LINK = re.compile(r"\]\(([^)#:\s]+)[^):]*\)")


def run(*words, **options):
    """The output of a program that must succeed."""
    ended = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.needs("prometheus")
def test_prometheus_own_tool_takes_the_rules_and_the_metrics(tmp_path):
    assert "SUCCESS: " in run("promtool", "check", "rules", DEPLOY / "prometheus/alerts.yml")
    http = free_port()
    server = Server(tmp_path / "data", "--http", f"127.0.0.1:{http}")
    server.client().ts().add("k", 1, 1)
    with urllib.request.urlopen(f"http://127.0.0.1:{http}/metrics") as answer:
        metrics = answer.read().decode()
    assert "latewood_series 1\n" in metrics
    # It also lints names and prints its findings.
    assert run("promtool", "check", "metrics", input=metrics) == ""
    server.kill()


@pytest.mark.needs("prometheus")
def test_alerts_of_a_cluster_fire_when_they_should_and_only_then():
    assert "SUCCESS" in run("promtool", "test", "rules", ROOT / "tests/clients/alerts.yml")


def test_every_alert_is_explained():
    alerts = re.findall(r"- alert: (\w+)", (DEPLOY / "prometheus/alerts.yml").read_text())
    rows = re.findall(r"^\| (Latewood\w+) \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE)
    assert len(alerts) > 10 and sorted(alerts) == sorted(rows)


@pytest.mark.needs("systemd-analyze")
def test_systemd_takes_the_unit_and_finds_it_closed(tmp_path):
    unit = (DEPLOY / "systemd/latewood.service").read_text()
    assert "\nExecStart=/usr/bin/latewood serve --config /etc/latewood/latewood.toml\n" in unit
    here = tmp_path / "latewood.service"
    here.write_text(unit.replace("/usr/bin/latewood", str(BINARY)))
    assert run("systemd-analyze", "verify", here) == ""
    # 0 is closed, 100 is open.
    run("systemd-analyze", "security", "--offline=true", "--threshold=20", here)


@pytest.mark.needs("openssl")
def test_the_packaged_settings_start_a_server_with_their_comments_too(tmp_path):
    text = (DEPLOY / "latewood.toml").read_text()
    whole = re.sub(r'^#\s+(?=[a-z-]+ = ["\[])', "", text, flags=re.MULTILINE)
    # The two that summarise those above them.
    whole = whole.replace('listen = ["127.0.0.1:6379"]\n', "", 1)
    assert set(tomllib.loads(whole)) > {"requirepass", "listen-lines", "memory", "disk-budget"}
    flags = []
    for name in ("http", "https", "tls-listen"):
        flags += [f"--{name}", f"127.0.0.1:{free_port()}"]
    for name in ("opentsdb", "akumuli", "influx-tcp", "influx-udp"):
        flags += ["--listen-lines", f"{name}=127.0.0.1:{free_port()}"]
    certificate, key = make_certificate(tmp_path)
    flags += ["--tls-cert-file", certificate, "--tls-key-file", key]
    for number, settings in enumerate((text, whole.replace('requirepass = "..."\n', ""))):
        file = tmp_path / f"{number}.toml"
        file.write_text(settings)
        server = Server(tmp_path / f"data-{number}", "--config", file, *flags)
        assert server.client().config_get("dir")["dir"].endswith(f"data-{number}")
        server.kill()


def instructions(text):
    """The instructions of a Dockerfile as (name, arguments)."""
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return [line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#")]


def test_the_container_is_small_unprivileged_and_watched():
    found = instructions((DEPLOY / "docker/Dockerfile").read_text())
    bases = [rest.split()[0] for name, rest in found if name == "FROM"]
    toolchain = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    assert bases == [f"rust:{toolchain}-bookworm", "debian:bookworm-slim"]
    last = found[[name for name, _ in found].index("FROM", 1) :]
    rests = {name: rest for name, rest in last}
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", rests["USER"])
    assert [name for name, _ in last].index("USER") < [name for name, _ in last].index("ENTRYPOINT")
    assert '"http://127.0.0.1:8086/-/healthy"' in rests["HEALTHCHECK"]
    assert (rests["ENTRYPOINT"], rests["CMD"]) == ('["latewood"]', '["serve"]')
    # Its variables must be options of the program.
    known = " ".join(run(BINARY, "serve", "--help").split())
    for variable in re.findall(r"\b(LATEWOOD_[A-Z_]+)=", rests["ENV"]):
        assert f"[env: {variable}=" in known, variable
    copied = [rest for name, rest in last if name == "COPY"]
    assert copied == ["--from=build /src/target/release/latewood /usr/local/bin/latewood"]


def test_the_debian_package_holds_files_that_are_there():
    folder = ROOT / "crates/server"
    deb = tomllib.loads((folder / "Cargo.toml").read_text())["package"]["metadata"]["deb"]
    packed, pages = {}, collections.defaultdict(list)
    for source, target, mode in deb["assets"]:
        built = source.startswith("target/")
        files = [Path(source)] if built else sorted(folder.glob(source))
        assert files and all(built or file.is_file() for file in files), source
        for file in files:
            packed[f"/{target}{file.name}"] = mode
            if file.suffix == ".md":
                pages[f"/{target}"].append(file.read_text())
    links = {path.normpath(place + link) for place, texts in pages.items() for text in texts for link in LINK.findall(text)}
    assert links - set(packed) == set()
    assert packed["/usr/bin/latewood"] == "755"
    assert set(deb["conf-files"]) <= set(packed)
    unit = (DEPLOY / "systemd/latewood.service").read_text()
    for name in re.findall(r"(?<=[ /])/(?:usr|etc)/\S+", unit):
        assert name in packed, name
    scripts = sorted((folder / deb["maintainer-scripts"]).iterdir())
    assert [script.name for script in scripts] == ["postinst", "postrm"]
    for script in scripts:
        run("sh", "-n", script)
        assert "#DEBHELPER#" in script.read_text()
