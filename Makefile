# The only commands to remember.
#   make demo            build, load real measurements, kill, recover, check
#   make demo KEEP=1     the same, and leave the server running
#   make test            everything that must pass, in under 30 minutes on 2 cores
#   make soak TIME=600   fuzzing, random models and kill loops for TIME seconds each
#   make bench           the reports of docs/benchmarks, beside its peers: 2 to 3 hours
#   make bench QUICK=1   the same from less data, into target/benchmarks-quick: minutes
#   make deb             a Debian package, in target/debian; needs cargo-deb
#   make static          the server as one file without shared libraries, in target/STATIC/release
#   make check           formatting, lints, documentation, instruction counts: before a commit

CARGO ?= cargo
TIME ?= 600
FUZZ_SECONDS ?= 5
VENV := target/venv
RELEASE := target/release
# Compiled in a third of the time a release takes; Cargo.toml says what it leaves out.
QUICK_BUILD := target/demo
# Where Go's own installer puts it, and collectd and netdata lie: not on every user's path.
export PATH := $(PATH):/usr/local/go/bin:/usr/local/sbin:/usr/sbin

# The target of a static build. With musl installed, `make static STATIC=x86_64-unknown-linux-musl`.
STATIC := $(shell uname -m)-unknown-linux-gnu

.PHONY: demo test check soak bench build quick-build clients differential fuzz deb static

build:
	$(CARGO) build --release --locked -p latewood-server -p latewood-bench

quick-build:
	$(CARGO) build --profile demo --locked -p latewood-server -p latewood-bench

deb:
	$(CARGO) deb --locked -p latewood-server

# --target keeps the flag from what runs while building.
static:
	RUSTFLAGS="-C target-feature=+crt-static" $(CARGO) build --release --locked --target $(STATIC) -p latewood-server

demo: quick-build
	$(QUICK_BUILD)/latewood-bench demo $(if $(KEEP),--keep)

check:
	$(CARGO) fmt --all --check
	$(CARGO) run --quiet --locked -p xtask
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items --quiet
	$(CARGO) run --quiet --locked -p xtask -- instructions

test: check build
	$(CARGO) test --locked --workspace
	$(MAKE) clients
	$(MAKE) differential
	$(MAKE) fuzz

# redis-py, node-redis and go-redis, against Latewood and RedisTimeSeries; Prometheus, collectd,
# netdata and others as senders; what lies in deploy/.
clients: build $(VENV)/ready tests/clients/node/node_modules
	$(VENV)/bin/python -m pytest -q tests/clients

# The same random commands to Latewood and RedisTimeSeries; LATEWOOD_SEED replays.
differential: build $(VENV)/ready
	$(VENV)/bin/python -m pytest -q tests/differential

$(VENV)/ready: tests/clients/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

tests/clients/node/node_modules: tests/clients/node/package-lock.json
	npm ci --prefix tests/clients/node --silent
	touch $@

fuzz:
	fuzz/run.sh $(FUZZ_SECONDS)

soak: build
	LATEWOOD_SOAK_SECONDS=$(TIME) $(CARGO) test --release --locked --workspace -- --nocapture soak
	LATEWOOD_COMMANDS=1000000 $(MAKE) differential
	fuzz/run.sh $(TIME)

bench: build
	$(RELEASE)/latewood-bench all $(if $(QUICK),--quick)
