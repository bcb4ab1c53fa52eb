#!/bin/bash
# QuestDB out of Maven Central (org.questdb:questdb), on 127.0.0.1 only. Needs Java 17 and Maven.
#
#   questdb.sh install                  fetch, once
#   questdb.sh run PORT DIR [ARG...]    run in the foreground, data in DIR; ARGs go to it
#
# PEER_HOME  where everything is kept (default ~/.cache/latewood-peers)
#
# Tables are as it makes them from lines: with its log, a partition a day. Ports that the load
# does not use and telemetry are off.
set -euo pipefail
version=9.3.4
home=${PEER_HOME:-$HOME/.cache/latewood-peers}/questdb
jar=$home/questdb-$version.jar

install_peer() {
  local major
  command -v java >/dev/null || { echo "QuestDB needs java, 17 or newer" >&2; exit 1; }
  major=$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p') || true
  [ "${major:-0}" -ge 17 ] || { echo "QuestDB needs java 17 or newer; this one is ${major:-unknown}" >&2; exit 1; }
  [ -e "$jar" ] && return
  command -v mvn >/dev/null || { echo "QuestDB comes from Maven Central and needs mvn to be fetched" >&2; exit 1; }
  echo "fetching QuestDB $version into $home" >&2
  local get=org.apache.maven.plugins:maven-dependency-plugin:3.6.1
  mkdir -p "$home"
  mvn --batch-mode --quiet "$get:get" -Dartifact="org.questdb:questdb:$version:jar" -Dtransitive=false >&2
  mvn --batch-mode --quiet "$get:copy" -Dartifact="org.questdb:questdb:$version:jar" \
    -DoutputDirectory="$home" -Dmdep.useBaseVersion=true >&2
}

case ${1:-} in
  install) install_peer ;;
  run)
    [ $# -ge 3 ] || { echo "run needs a port and a directory" >&2; exit 2; }
    install_peer
    port=$2 dir=$3
    shift 3
    export QDB_HTTP_BIND_TO=127.0.0.1:$port QDB_HTTP_MIN_ENABLED=false
    export QDB_LINE_TCP_ENABLED=false QDB_PG_ENABLED=false QDB_TELEMETRY_ENABLED=false
    exec java -p "$jar" -m io.questdb/io.questdb.ServerMain -d "$dir" "$@"
    ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
