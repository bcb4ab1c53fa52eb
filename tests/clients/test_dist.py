"""deploy/dist.py, on a small program in the place of the server."""

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import tomllib

import pytest

from test_deploy import DEPLOY, ROOT, instructions, run

VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
PROGRAM = b"#!/bin/sh\necho it runs\n"


@pytest.fixture
def made(tmp_path):
    """The files of `make dist` for this program, by name."""

    def make(epoch="1700000000", program=PROGRAM):
        (tmp_path / "program").write_bytes(program)
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
        for kind in ("archive", "image"):
            for arch in ("x86_64", "aarch64"):
                run(DEPLOY / "dist.py", kind, tmp_path / "program", arch, out, env=environment)
        run(DEPLOY / "dist.py", "sums", out)
        return {file.name: file.read_bytes() for file in out.iterdir()}

    return make


def entries(content):
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        found = {one.name: (one, tar.extractfile(one).read() if one.isfile() else None) for one in tar}
    assert {one.mtime for one, _ in found.values()} == {1_700_000_000}
    return found


def test_the_same_files_give_the_same_bytes(made, tmp_path):
    first = made()
    os.utime(tmp_path / "program", (1, 1))
    assert made() == first
    other = made(program=PROGRAM + b"#\n")
    assert all(other[name] != first[name] for name in first)


def test_the_sums_are_those_of_all_files(made, tmp_path):
    names = [f"latewood-{VERSION}-{arch}-{what}" for arch in ("aarch64", "x86_64") for what in ("image.tar", "linux.tar.gz")]
    assert sorted(made()) == ["SHA256SUMS", *names]
    assert run("sha256sum", "--check", "SHA256SUMS", cwd=tmp_path / "out").count(": OK") == len(names)


def test_the_archive_holds_the_program_and_what_a_machine_needs(made, tmp_path):
    top = f"latewood-{VERSION}-x86_64-linux"
    content = made()[f"{top}.tar.gz"]
    found = entries(content)
    names = ["LICENSE", "README.md", "latewood", "latewood.service", "latewood.toml"]
    assert sorted(found) == [top, *(f"{top}/{name}" for name in names)]
    assert {(one.uid, one.gid, one.uname) for one, _ in found.values()} == {(0, 0, "")}
    assert found[f"{top}/latewood.toml"][1] == (DEPLOY / "latewood.toml").read_bytes()
    run("tar", "xzf", tmp_path / "out" / f"{top}.tar.gz", "-C", tmp_path)
    assert run(tmp_path / top / "latewood") == "it runs\n"


@pytest.mark.parametrize(("arch", "name"), [("x86_64", "amd64"), ("aarch64", "arm64")])
def test_the_image_is_a_layout_whose_digests_hold(made, arch, name):
    files = {key: content for key, (_, content) in entries(made()[f"latewood-{VERSION}-{arch}-image.tar"]).items()}
    blobs = {key.removeprefix("blobs/sha256/"): content for key, content in files.items() if key.startswith("blobs/")}
    assert all(hashlib.sha256(content).hexdigest() == digest for digest, content in blobs.items())

    def follow(descriptor):
        content = blobs.pop(descriptor["digest"].removeprefix("sha256:"))
        assert len(content) == descriptor["size"]
        return content

    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (descriptor,) = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(follow(descriptor))
    (packed,) = manifest["layers"]
    config, layer = json.loads(follow(manifest["config"])), gzip.decompress(follow(packed))
    assert blobs == {}
    assert config["architecture"] == name
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert json.loads(files["manifest.json"]) == [
        {
            "Config": f"blobs/{manifest['config']['digest'].replace(':', '/')}",
            "RepoTags": [f"latewood:{VERSION}"],
            "Layers": [f"blobs/{packed['digest'].replace(':', '/')}"],
        }
    ]
    # It is started as the image of the Dockerfile is.
    docker = dict(instructions((DEPLOY / "docker/Dockerfile").read_text()))
    settings = config["config"]
    assert settings["User"] == docker["USER"] and settings["StopSignal"] == docker["STOPSIGNAL"]
    assert settings["Env"] == ["PATH=/usr/bin", *docker["ENV"].split()]
    assert (settings["Entrypoint"], settings["Cmd"]) == (json.loads(docker["ENTRYPOINT"]), json.loads(docker["CMD"]))
    assert list(settings["Volumes"]) == [docker["VOLUME"]]
    assert list(settings["ExposedPorts"]) == [f"{port}/tcp" for port in docker["EXPOSE"].split()]
    inside = entries(layer)
    assert inside["usr/bin/latewood"][1] == PROGRAM and inside["usr/bin/latewood"][0].mode == 0o755
    folder = inside[docker["VOLUME"][1:]][0]
    assert f"{folder.uid}:{folder.gid}" == docker["USER"] and folder.mode == 0o750


# In the place of cargo: leaves what a build would leave.
CARGO = f"""#!/bin/sh
case $* in
*--version) echo cargo 99.0.0 ;;
build*)
    while [ "$1" != --target ]; do shift; done
    mkdir -p target/$2/release && cp /bin/true target/$2/release/latewood ;;
deb*) mkdir -p target/debian && echo package >target/debian/latewood_{VERSION}-1_amd64.deb ;;
cyclonedx*) for member in crates/server xtask; do echo '{{"a": "file://'$PWD/$member'"}}' >$member/sbom.json; done ;;
esac
"""
TOOLS = {
    "cargo": CARGO,
    "aarch64-linux-gnu-gcc": "#!/bin/sh\n",
    "aarch64-linux-gnu-strip": '#!/bin/sh\ncp "$3" "$2"\n',
}


@pytest.mark.parametrize("cross", [True, False])
def test_make_dist_packs_the_same_twice(cross, tmp_path):
    machine = os.uname().machine
    tools = tmp_path / "tools"
    tools.mkdir()
    library = tmp_path if cross else tmp_path / "missing"
    for name, text in {**TOOLS, "rustc": f"#!/bin/sh\necho {library}\n"}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    tree = tmp_path / "tree"
    for name in ("Makefile", "Cargo.toml", "README.md", "LICENSE", "rust-toolchain.toml", "tests/setup.sh"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    shutil.copytree(DEPLOY, tree / "deploy")
    for member in ("crates/server", "xtask"):
        (tree / member).mkdir(parents=True)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CARGO": "cargo", "SOURCE_DATE_EPOCH": "1700000000"}
    made = []
    for _ in range(2):
        said = run("make", "dist", cwd=tree, env=environment)
        made.append({file.name: file.read_bytes() for file in (tree / "target/dist").iterdir()})
    assert made[0] == made[1]
    machines = {machine, "aarch64"} if cross else {machine}
    kinds = [f"latewood-{VERSION}-{one}-{what}" for one in machines for what in ("image.tar", "linux.tar.gz")]
    package, bill = f"latewood_{VERSION}-1_amd64.deb", f"latewood-{VERSION}.cdx.json"
    assert set(made[0]) == {"SHA256SUMS", package, bill, *kinds}
    assert all(f"  {name}\n" in made[0]["SHA256SUMS"].decode() for name in [package, bill, *kinds])
    # No path of the machine, and nothing left beside the sources.
    assert str(tmp_path).encode() not in made[0][bill]
    assert not list(tree.glob("**/sbom.json"))
    assert ("Nothing is made for aarch64" in said) == (not cross and machine != "aarch64")
