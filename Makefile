# The only commands to remember.
#   make demo            build, load real measurements, kill, recover, check
#   make demo KEEP=1     the same, and leave the server running
#   make cluster-demo    three brokers and three nodes under load: kill the owner, take over, check
#   make test            everything that must pass, in about 25 minutes on 2 cores; installs
#                        what it needs on Debian and Ubuntu, and lists what it left out elsewhere
#   make test STRICT=1   the same, and fails if anything would be left out
#   make soak TIME=600   instruction counts; fuzzing and random models for TIME seconds each, then
#                        as many kills of a server as KILLS says: 10,000 of them take hours; and
#                        ROUNDS faults of brokers, object store and nodes
#   make bench           the reports of docs/benchmarks, beside its peers: 2 to 3 hours
#   make bench QUICK=1   the same from less data, into target/benchmarks-quick: minutes
#   make derived         docs/benchmarks/derived.md: rows of rules after a month of late samples, beside
#                        Prometheus and VictoriaMetrics: half an hour
#   make churn           docs/benchmarks/churn.md: ten million series that come and go in 512 MB, beside
#                        Prometheus and VictoriaMetrics: two hours
#   make beside          docs/benchmarks/beside.md: writes beside heavy queries; needs redis-benchmark: minutes
#   make deb             a Debian package, in target/debian; needs cargo-deb
#   make static          the server as one file without shared libraries, in target/STATIC/release
#   make dist            packages, archives, images, their checksums and an SBOM, in target/dist
#   make check           formatting, lints, documentation, dependencies: before a commit

CARGO ?= cargo
TIME ?= 600
KILLS ?= 10000
# Faults of brokers, object store and nodes.
ROUNDS ?= 200
# Of everything random in a soak; `make test` has the same seeds each time.
ifndef SEED
SEED := $(shell date +%s)
endif
# Of PromQL, compared with Prometheus.
EXPRESSIONS ?= 200000
FUZZ_SECONDS ?= 60
VENV := target/venv
RELEASE := target/release
# Compiles faster than a release; Cargo.toml says what it leaves out.
DEMO := target/demo
PROGRAMS := -p latewood-server -p latewood-bench
# Where the installers of Rust and Go put them, and where collectd and netdata are: not on
# every user's path.
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/local/go/bin:/usr/local/sbin:/usr/sbin
export STRICT

# The target of a static build. With musl installed, `make static STATIC=x86_64-unknown-linux-musl`.
STATIC := $(shell uname -m)-unknown-linux-gnu

# Tools that this machine lacks; `make test` sets it.
export LEFT_OUT
# $(call with,TOOLS,WORDS): the words, unless one of the tools is left out.
with = $(if $(filter $(1),$(LEFT_OUT)),,$(2))

# They need brokers: nothing but their names selects them.
BROKER_TESTS := --test broker --test kafka

.PHONY: demo cluster-demo test check every programs rust soak bench derived churn beside build quick clients console differential \
	faults rows kafka fuzz instructions deb static dist

# needs-TOOL fails with how to get the tool.
needs-%:
	@tests/setup.sh need $*

build: needs-cargo needs-cc
	$(CARGO) build --release --locked $(PROGRAMS)

quick: needs-cargo needs-cc
	$(CARGO) build --profile demo --no-default-features --locked $(PROGRAMS)

deb: needs-cargo needs-cc needs-cargo-deb
	$(CARGO) deb --locked --strip -p latewood-server

# --target keeps the flag from what runs while building.
static: needs-cargo needs-cc
	RUSTFLAGS="-C target-feature=+crt-static" $(CARGO) build --release --locked --target $(STATIC) -p latewood-server

DIST := target/dist
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# $(call pack,TARGET,STRIP): the archive and the image of a static build.
pack = $(2) -o target/stripped target/$(1)/release/latewood && \
	for kind in archive image; do deploy/dist.py $$kind target/stripped $(firstword $(subst -, ,$(1))) $(DIST) || exit; done
OTHER := aarch64-unknown-linux-gnu

# Pages of memory have up to 64 KiB on aarch64; jemalloc would take those of the machine that builds. The
# SBOM is written for all members, with paths of this machine.
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
dist: needs-git needs-python3 needs-cargo-cyclonedx deb static
	rm -rf $(DIST) && mkdir -p $(DIST)
	cp target/debian/latewood_$(VERSION)-*.deb $(DIST)
	$(call pack,$(STATIC),strip)
	@[ "$(filter aarch64-%,$(STATIC))" ] || if tests/setup.sh need aarch64; then \
		export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc JEMALLOC_SYS_WITH_LG_PAGE=16 && \
		$(MAKE) static STATIC=$(OTHER) && $(call pack,$(OTHER),aarch64-linux-gnu-strip); \
	else echo "Nothing is made for aarch64."; fi
	$(CARGO) cyclonedx --quiet --manifest-path crates/server/Cargo.toml --format json --spec-version 1.5 \
		--no-build-deps --target $(STATIC) --override-filename sbom
	sed 's,file://$(CURDIR),file://,g' crates/server/sbom.json >$(DIST)/latewood-$(VERSION).cdx.json
	rm crates/*/sbom.json xtask/sbom.json
	deploy/dist.py sums $(DIST)

demo: quick
	$(DEMO)/latewood-bench demo $(if $(KEEP),--keep)

# Documentation with the features of the tests, so that nothing is checked twice for it.
check: needs-cargo needs-cc $(call with,git,needs-git) $(call with,cargo-deny,needs-cargo-deny)
	$(CARGO) fmt --all --check
	$(call with,git,$(CARGO) run --quiet --locked -p xtask)
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --workspace $(BROKER_TESTS) -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items --quiet \
		--lib --bins --examples
	$(call with,cargo-deny,tests/deny.sh check)

test:
	tests/setup.sh install
	$(MAKE) every LEFT_OUT="$$(xargs <target/left-out)"
	@tests/setup.sh report

cluster-demo: quick needs-kafka
	tests/cluster/demo.py $(DEMO)/latewood $(if $(KEEP),--keep)

comma := ,
space := $() $()
lane = $(subst $(space),$(comma),$(strip $(1)))
# Two lanes: tests wait more than they work.
every:
	tests/steps.sh check programs $(call lane,rust $(call with,kafka,kafka))/$(call lane,\
		$(call with,node chromium,console) $(call with,python3,clients) \
		$(call with,python3 redistimeseries,differential))

# The one build of all tests, and of the server that clients, console and brokers talk to.
programs: needs-cargo needs-cc
	$(CARGO) test --locked --workspace --no-run
	$(CARGO) test --locked --workspace --no-run $(BROKER_TESTS)

# Tests of crates/server/tests/migrate that start a RedisTimeSeries.
PEER_TESTS := live:: rules_go_on_where_the_source_left_them a_rule_to_a_series_left_out_is_named \
	a_file_carries_rules_and_expiry a_redis_is_told_what_it_cannot_hold \
	passwords_open_both_ends_and_wrong_ones_do_not

rust: programs
	$(CARGO) test --locked --workspace $(if $(filter redistimeseries,$(LEFT_OUT)),-- $(PEER_TESTS:%=--skip %))

# redis-py, node-redis and go-redis, against Latewood and RedisTimeSeries; cluster clients, of ioredis
# and jedis too, through a take-over; Prometheus, collectd, netdata and others as senders; what lies in
# deploy/; the set-up; the pages of docs/benchmarks.
clients: programs $(VENV)/ready $(call with,node,tests/clients/node/node_modules)
	$(VENV)/bin/python -m pytest -q -rs -n 2 --dist loadfile tests/clients tests/test_setup.py
	$(VENV)/bin/python -m pytest -q -p no:cacheprovider crates/bench/report

# Servers with a log in Kafka and objects in S3, alone and three of a cluster: ROUNDS faults of each.
faults: programs $(VENV)/ready needs-kafka needs-networks
	LATEWOOD_ROUNDS=$(ROUNDS) $(VENV)/bin/python -m pytest -q -s tests/clients/test_faults.py tests/clients/test_cluster_faults.py

# Rows of rules after random writes and ROUNDS kills.
rows: programs $(VENV)/ready
	LATEWOOD_ROUNDS=$(ROUNDS) $(VENV)/bin/python -m pytest -q -s tests/clients/test_rules_random.py

# The console in a browser, and its assets built anew.
console: programs tests/console/node_modules console/node_modules
	node --test --test-concurrency=2 tests/console/*.test.mjs

# The same random commands to Latewood and RedisTimeSeries; LATEWOOD_SEED replays.
differential: programs $(VENV)/ready
	$(VENV)/bin/python -m pytest -q -n 2 tests/differential

# The client of Kafka, and the server, with three brokers, of which one is killed and one hangs.
kafka: programs needs-kafka
	tests/cluster/kafka.sh stop
	trap "tests/cluster/kafka.sh stop" EXIT; tests/cluster/kafka.sh start && \
		LATEWOOD_KAFKA=127.0.0.1:19092 $(CARGO) test --locked --workspace $(BROKER_TESTS)

$(VENV)/ready: tests/clients/requirements.txt | needs-python3
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

tests/clients/node/node_modules tests/console/node_modules console/node_modules: %/node_modules: %/package-lock.json | needs-node
	npm ci --prefix $* --silent
	touch $@

# With libFuzzer; without it, their seeds and mutations of these are among the tests.
fuzz: needs-cargo needs-c++
	fuzz/run.sh $(FUZZ_SECONDS)

instructions: needs-cargo needs-valgrind
	$(CARGO) run --quiet --locked -p xtask -- instructions

soak: export LATEWOOD_SEED := $(SEED)
soak: export PROPTEST_RNG_SEED := $(SEED)
soak: export PROMQL_ORACLE_SEED := $(SEED)
soak: build instructions needs-c++
	@echo "make soak SEED=$(SEED) repeats it"
	$(CARGO) test --release --locked --workspace
	LATEWOOD_SOAK_SECONDS=$(TIME) LATEWOOD_KILLS=$(KILLS) \
		$(CARGO) test --release --locked --workspace -- --nocapture soak
	PROMQL_ORACLE_EXPRESSIONS=$(EXPRESSIONS) \
		$(CARGO) test --release --locked -p latewood-promql --test it beside_prometheus -- --nocapture
	PROMQL_ORACLE_EXPRESSIONS=$(EXPRESSIONS) \
		$(CARGO) test --release --locked -p latewood-server --test it a_server_answers_as_prometheus -- --nocapture
	LATEWOOD_COMMANDS=1000000 $(MAKE) differential
	$(MAKE) faults rows
	SANITIZE=address fuzz/run.sh $(TIME)

bench: build $(VENV)/ready
	$(RELEASE)/latewood-bench all $(if $(QUICK),--quick)

derived: build $(VENV)/ready
	$(VENV)/bin/python bench/derived/run.py
	$(VENV)/bin/python bench/derived/costs.py

churn: build $(VENV)/ready
	$(VENV)/bin/python bench/churn/run.py

beside: build $(VENV)/ready
	$(VENV)/bin/python bench/beside/run.py
