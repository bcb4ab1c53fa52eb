#!/usr/bin/env bash
# The cluster client of jedis, for tests.
#
#   jedis.sh install  fetches jedis, once
#   jedis.sh run      runs Cluster.java, without a step of compiling
#
# JEDIS_HOME  where the jars are kept  (default ~/.cache/latewood-peers/jedis-7.5.3)
#
# Needs Java 17 or later and Maven.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${JEDIS_HOME:-$HOME/.cache/latewood-peers/jedis-7.5.3}

install_jedis() { "$here/../../jars.sh" "$home" "$here/jedis.sha256" redis.clients:jedis:7.5.3; }

case ${1:-} in
  install) install_jedis ;;
  run) install_jedis; exec java -cp "$home/jars/*" -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "$here/Cluster.java" ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
