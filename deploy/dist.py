#!/usr/bin/env python3
"""Packs the stripped static binary of `make dist`, with the standard library and without a daemon.

  dist.py archive BINARY ARCH OUT  writes OUT/latewood-VERSION-ARCH-linux.tar.gz
  dist.py image BINARY ARCH OUT    writes OUT/latewood-VERSION-ARCH-image.tar, an OCI layout
  dist.py sums OUT                 writes OUT/SHA256SUMS

The same files and the same SOURCE_DATE_EPOCH give the same bytes. Tested by
tests/clients/test_dist.py.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
# User, folder and ports are those of docker/Dockerfile.
USER, FOLDER = 10001, "/var/lib/latewood"
# What TLS connections to object stores and Alertmanagers are checked with.
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")


def pack(entries):
    """A tar of these (name, bytes or None for a folder, mode, owner)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content, mode, owner in entries:
            entry = tarfile.TarInfo(name)
            entry.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            entry.size, entry.mode, entry.mtime = len(content or b""), mode, EPOCH
            entry.uid = entry.gid = owner
            tar.addfile(entry, io.BytesIO(content or b""))
    return out.getvalue()


def archive(binary, arch):
    top = f"latewood-{VERSION}-{arch}-linux"
    files = ["README.md", "LICENSE", "deploy/latewood.toml", "deploy/systemd/latewood.service"]
    entries = [(top, None, 0o755, 0), (f"{top}/latewood", binary, 0o755, 0)]
    entries += [(f"{top}/{Path(file).name}", (ROOT / file).read_bytes(), 0o644, 0) for file in files]
    return f"{top}.tar.gz", gzip.compress(pack(entries), mtime=0)


def image(binary, arch):
    blobs = {}

    def blob(content, kind):
        """Keeps it; its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    folders = ["usr", "usr/bin", "var", "var/lib", "etc", "etc/ssl", "etc/ssl/certs"]
    entries = [(name, None, 0o755, 0) for name in folders]
    # A new volume takes over owner and mode.
    entries += [(FOLDER[1:], None, 0o750, USER), ("usr/bin/latewood", binary, 0o755, 0)]
    if AUTHORITIES.exists():
        entries.append((str(AUTHORITIES)[1:], AUTHORITIES.read_bytes(), 0o644, 0))
    else:
        print(f"The image has no CA certificates: {AUTHORITIES} is missing here", file=sys.stderr)
    content = pack(entries)
    layer = blob(gzip.compress(content, mtime=0), "layer.v1.tar+gzip")
    config = {
        "created": datetime.datetime.fromtimestamp(EPOCH, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[arch],
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": [
                "PATH=/usr/bin",
                f"LATEWOOD_DIR={FOLDER}",
                "LATEWOOD_LISTEN=0.0.0.0:6379",
                "LATEWOOD_HTTP=0.0.0.0:8086",
            ],
            "Entrypoint": ["latewood"],
            "Cmd": ["serve"],
            "ExposedPorts": {"6379/tcp": {}, "8086/tcp": {}},
            "Volumes": {FOLDER: {}},
            "StopSignal": "SIGTERM",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]},
    }
    config = blob(json.dumps(config).encode(), "config.v1+json")
    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]}
    manifest = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    names = {"io.containerd.image.name": f"docker.io/library/latewood:{VERSION}"}
    manifest["annotations"] = {**names, "org.opencontainers.image.ref.name": VERSION}
    index = {"schemaVersion": 2, "manifests": [manifest]}
    path = {one["digest"]: one["digest"].replace("sha256:", "blobs/sha256/") for one in (config, layer)}
    # `docker load` reads this one, unless it keeps images in containerd.
    docker = {"Config": path[config["digest"]], "RepoTags": [f"latewood:{VERSION}"], "Layers": [path[layer["digest"]]]}
    files = {"oci-layout": {"imageLayoutVersion": "1.0.0"}, "index.json": index, "manifest.json": [docker]}
    files = {name: json.dumps(value).encode() for name, value in files.items()} | blobs
    return f"latewood-{VERSION}-{arch}-image.tar", pack((name, files[name], 0o644, 0) for name in files)


def sums(out):
    files = sorted(file for file in out.iterdir() if file.name != "SHA256SUMS")
    return "SHA256SUMS", "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files).encode()


if __name__ == "__main__":
    make, *rest, out = sys.argv[1:]
    out = Path(out)
    if make == "sums":
        name, content = sums(out)
    else:
        binary, arch = rest
        name, content = {"archive": archive, "image": image}[make](Path(binary).read_bytes(), arch)
    (out / name).write_bytes(content)
