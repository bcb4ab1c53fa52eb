#!/bin/bash
# VictoriaMetrics, single node, out of Debian's package victoria-metrics, on 127.0.0.1 only.
#
#   victoriametrics.sh install                  fetch and unpack, once
#   victoriametrics.sh run PORT DIR [ARG...]    run in the foreground, data in DIR; ARGs go to it
#
# PEER_HOME        where everything is kept (default ~/.cache/latewood-peers)
# VICTORIAMETRICS  another victoria-metrics to run instead, perhaps a newer one
#
# The retention is the longest it takes: its default of a month would drop history. A query may be about two
# million series: by default about some hundred thousand, by its memory.
set -euo pipefail
package=victoria-metrics
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

server() {
  local port=$1 dir=$2
  shift 2
  exec "${VICTORIAMETRICS:-$home/usr/bin/victoria-metrics}" -httpListenAddr="127.0.0.1:$port" \
    -storageDataPath="$dir" -retentionPeriod=100y -search.maxUniqueTimeseries=2000000 "$@"
}

main "$@"
