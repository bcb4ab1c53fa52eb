#!/bin/bash
# Prometheus out of Debian's package prometheus, on 127.0.0.1 only, taking remote writes.
#
#   prometheus.sh install                  fetch and unpack, once
#   prometheus.sh run PORT DIR [ARG...]    run in the foreground, data in DIR; ARGs go to it
#
# PEER_HOME   where everything is kept (default ~/.cache/latewood-peers)
# PROMETHEUS  another prometheus to run instead, perhaps a newer one
#
# It refuses samples that are older than the newest of their series unless a window for them is
# set: here 1000 days, more than any load spans. The retention is longer than any load too.
set -euo pipefail
package=prometheus
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

server() {
  local port=$1 dir=$2
  shift 2
  printf 'storage:\n  tsdb:\n    out_of_order_time_window: 1000d\n' >"$dir/prometheus.yml"
  exec "${PROMETHEUS:-$home/usr/bin/prometheus}" --config.file="$dir/prometheus.yml" \
    --storage.tsdb.path="$dir/data" --storage.tsdb.retention.time=100y \
    --web.listen-address="127.0.0.1:$port" --web.enable-remote-write-receiver \
    --query.max-samples=1000000000 --log.level=warn "$@"
}

main "$@"
