#!/usr/bin/env bash
# Kafka 4.1.0 brokers for tests, on one address only.
#
#   kafka.sh install       fetches Kafka, once
#   kafka.sh start         starts every broker that does not run, and waits until all serve
#   kafka.sh kill NUMBER   kills a broker, from 1, with SIGKILL
#   kafka.sh pause NUMBER  lets a broker hang, with SIGSTOP
#   kafka.sh resume NUMBER lets it go on
#   kafka.sh stop          kills all brokers and removes their data
#
# BROKERS     how many                 (default 3)
# HOST        the address for clients  (default 127.0.0.1)
# PORT        the first port           (default 19092)
# KAFKA_HOME  where the jars are kept  (default ~/.cache/latewood-peers/kafka-4.1.0)
# KAFKA_DIR   data, logs, certificates (default target/kafka/PORT)
#
# Broker i listens on PORT+3(i-1) without TLS or password, on the next port with TLS and a password,
# and on the one behind for the other controllers. Users for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512:
# the name `latewood`, the password `log-secret`. Certificates: ca.pem, which signed the brokers'
# and client.pem; stranger.pem, which signed itself; each key lies beside its certificate, as .key.
#
# The jars come out of Maven Central, and are compared with kafka.sha256. Needs Java 17 or later,
# Maven and openssl.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
brokers=${BROKERS:-3}
host=${HOST:-127.0.0.1}
first=${PORT:-19092}
home=${KAFKA_HOME:-$HOME/.cache/latewood-peers/kafka-4.1.0}
dir=${KAFKA_DIR:-$here/../../target/kafka/$first}
password=log-secret

install_kafka() {
  "$here/../jars.sh" "$home" "$here/kafka.sha256" org.apache.kafka:kafka_2.13:4.1.0 org.slf4j:slf4j-simple:1.7.36
}

port() { echo $((first + 3 * ($1 - 1) + $2)); } # port BROKER OFFSET

java=(java -cp "$home/jars/*" -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1
  -Dorg.slf4j.simpleLogger.defaultLogLevel=warn
  -Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info)

# certificate NAME [OPTION...]: a key of its own, and a certificate that the options sign.
certificate() {
  local name=$1
  shift
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
    -subj "/CN=$name" -keyout "$dir/$name.key" -out "$dir/$name.pem" "$@" 2>/dev/null
}

certificates() {
  local signed=(-CA "$dir/ca.pem" -CAkey "$dir/ca.key" -addext basicConstraints=critical,CA:false)
  certificate ca
  certificate broker "${signed[@]}" -addext subjectAltName=IP:127.0.0.1,DNS:localhost
  certificate client "${signed[@]}"
  certificate stranger
  cat "$dir/broker.key" "$dir/broker.pem" >"$dir/keystore.pem"
}

settings() { # settings BROKER
  local i voters=()
  for ((i = 1; i <= brokers; i++)); do voters+=("$i@127.0.0.1:$(port "$i" 2)"); done
  cat <<SETTINGS
process.roles=broker,controller
node.id=$1
controller.quorum.voters=$(IFS=,; echo "${voters[*]}")
listeners=PLAINTEXT://$host:$(port "$1" 0),SASL_SSL://$host:$(port "$1" 1),CONTROLLER://127.0.0.1:$(port "$1" 2)
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs=$dir/$1/data
ssl.keystore.type=PEM
ssl.keystore.location=$dir/keystore.pem
ssl.truststore.type=PEM
ssl.truststore.location=$dir/ca.pem
listener.name.sasl_ssl.ssl.client.auth=requested
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_latewood="$password";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
auto.create.topics.enable=false
# A dead broker is noticed within seconds, on a machine that does much else as well.
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=4000
replica.lag.time.max.ms=3000
controller.quorum.fetch.timeout.ms=2000
# Small machines.
log.cleaner.dedupe.buffer.size=4194304
num.network.threads=2
num.io.threads=4
SETTINGS
}

prepare() { # prepare BROKER: its data, unless it has some
  [ -e "$dir/$1/prepared" ] && return
  mkdir -p "$dir/$1/data"
  settings "$1" >"$dir/$1/settings"
  "${java[@]}" kafka.tools.StorageTool format --config "$dir/$1/settings" \
    --cluster-id bGF0ZXdvb2QtdGVzdHMtMQ \
    --add-scram "SCRAM-SHA-256=[name=latewood,password=$password]" \
    --add-scram "SCRAM-SHA-512=[name=latewood,password=$password]" >"$dir/$1/format.log" 2>&1
  touch "$dir/$1/prepared"
}

runs() { # runs BROKER
  local id
  id=$(cat "$dir/$1/pid" 2>/dev/null) && grep -qs "$dir/$1/settings" "/proc/$id/cmdline"
}

serves() { grep -qs 'Kafka Server started' "$dir/$1/log"; } # serves BROKER

start() {
  local i pids=()
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  [ -e "$dir/stranger.pem" ] || certificates
  for ((i = 1; i <= brokers; i++)); do prepare "$i" & pids+=($!); done
  for i in "${pids[@]}"; do wait "$i" || { cat "$dir"/*/format.log >&2; exit 1; }; done
  for ((i = 1; i <= brokers; i++)); do
    runs "$i" && continue
    "${java[@]}" kafka.Kafka "$dir/$i/settings" >"$dir/$i/log" 2>&1 </dev/null &
    echo $! >"$dir/$i/pid"
  done
  for _ in $(seq 600); do
    for ((i = 1; i <= brokers; i++)); do
      kill -0 "$(cat "$dir/$i/pid")" || { tail -20 "$dir/$i/log" >&2; exit 1; }
      serves "$i" || { sleep 0.1; continue 2; }
    done
    return
  done
  echo "the brokers did not come up; their logs are in $dir" >&2
  exit 1
}

kill_broker() { # kill_broker BROKER
  runs "$1" || return 0
  kill -KILL "$(cat "$dir/$1/pid")"
  while runs "$1"; do sleep 0.05; done
}

stop() {
  local i
  [ -d "$dir" ] || return 0
  dir=$(cd "$dir" && pwd)
  for i in "$dir"/*/pid; do kill_broker "$(basename "$(dirname "$i")")"; done
  rm -rf "$dir"
}

case ${1:-} in
  install) install_kafka ;;
  start) install_kafka; start ;;
  kill) dir=$(cd "$dir" && pwd); kill_broker "${2:?which broker?}" ;;
  pause) kill -STOP "$(cat "$dir/${2:?which broker?}/pid")" ;;
  resume) kill -CONT "$(cat "$dir/${2:?which broker?}/pid")" ;;
  stop) stop ;;
  *) sed -n '2,24s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
