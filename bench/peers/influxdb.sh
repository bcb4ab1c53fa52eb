#!/bin/bash
# InfluxDB 1 out of Debian's package influxdb, on 127.0.0.1 only.
#
#   influxdb.sh install                  fetch and unpack, once
#   influxdb.sh run PORT DIR [ARG...]    run in the foreground, data in DIR; ARGs go to `influxd run`
#
# PEER_HOME  where everything is kept (default ~/.cache/latewood-peers)
#
# Its index is the one on disk (tsi1), which its makers recommend; monitoring of itself and the
# log of requests are off. It leaves its cache ten minutes after the last write: here ten
# seconds, so that what it keeps can be looked at after a load.
set -euo pipefail
package=influxdb
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

server() {
  local port=$1 dir=$2
  shift 2
  export INFLUXDB_REPORTING_DISABLED=true
  export INFLUXDB_BIND_ADDRESS=127.0.0.1:0
  export INFLUXDB_HTTP_BIND_ADDRESS=127.0.0.1:$port
  export INFLUXDB_HTTP_LOG_ENABLED=false
  export INFLUXDB_META_DIR=$dir/meta
  export INFLUXDB_DATA_DIR=$dir/data
  export INFLUXDB_DATA_WAL_DIR=$dir/wal
  export INFLUXDB_DATA_INDEX_VERSION=tsi1
  export INFLUXDB_DATA_QUERY_LOG_ENABLED=false
  export INFLUXDB_DATA_CACHE_SNAPSHOT_WRITE_COLD_DURATION=10s
  export INFLUXDB_MONITOR_STORE_ENABLED=false
  exec "$home/usr/bin/influxd" run "$@"
}

main "$@"
