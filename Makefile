# What there is to do here. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# In CI the lock file is law, and incremental files would be written for nobody.
ifdef CI
LOCKED := --locked
export CARGO_INCREMENTAL := 0
endif

PYTHON ?= python3
KILLS  ?= 200
FLIPS  ?= 1000
SEED   ?= $(shell date +%s)

HOSTS  ?= 1000000
# bash has a SECONDS of its own, which reaches us from nowhere but the command line.
FUZZ_SECONDS = $(if $(filter command line,$(origin SECONDS)),$(SECONDS),600)

.PHONY: help test tidy ci fmt clippy doc deny sim sim-smoke kill export-kill hostile faults flips tools fuzz fuzz-smoke bench-peers bench-links bench-search bench-sizes bench-scale clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: .venv/installed tests/browser/node_modules/installed ## install what the tests need, then run all tests, documentation examples included
	@tests/run.sh

tidy: ## only the checks of documents, crate directions, licences and the like
	cargo test $(LOCKED) -q --workspace --test tidy

# One stage after the other, each with its time; the count of the tests is the last line.
ci: ## exactly what .ci/run runs: fmt, clippy, docs, cargo-deny, tests with tidy, simulation
	@for stage in fmt clippy doc deny test sim-smoke; do \
	  echo "== $$stage"; began=$$SECONDS; \
	  $(MAKE) --no-print-directory $$stage || { echo "== $$stage failed after $$((SECONDS - began)) s"; exit 1; }; \
	  echo "== $$stage took $$((SECONDS - began)) s"; \
	done; echo "== all took $$SECONDS s"; cat target/test-summary

fmt:
	cargo fmt --all --check
	@# Files that a macro declares are out of its sight.
	rustfmt --edition 2024 --check crates/rhumb-core/src/page/format/*.rs

clippy:
	cargo clippy $(LOCKED) --workspace --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc $(LOCKED) --workspace --no-deps --document-private-items

# The advisory database has to be fetched, which closed networks refuse; licences, bans and sources need no network, and
# without cargo-deny `tidy` checks them.
deny:
	@if ! cargo deny --version >/dev/null 2>&1; then \
	  echo "cargo-deny is not installed (make tools): licences, bans and sources are left to tidy"; \
	else \
	  cargo deny $(LOCKED) check bans licenses sources; \
	  if cargo deny fetch db >/dev/null 2>&1; then cargo deny $(LOCKED) check --disable-fetch advisories; \
	  else echo "the advisory database cannot be fetched here: advisories not checked"; fi; \
	fi

# The demonstration is the smallest whole run of the program against the synthetic web. It takes the program that the tests
# were run with: building with `-p rhumb` would choose other features and compile every dependency again.
sim-smoke: BIN = $(or $(CARGO_TARGET_DIR),target)/debug/rhumb
sim-smoke:
	@test -x $(BIN) || cargo build $(LOCKED) --workspace --bins
	@mkdir -p target
	$(BIN) demo >target/sim-smoke.txt || { cat target/sim-smoke.txt; exit 1; }
	@tail -n 3 target/sim-smoke.txt
	$(BIN) sim run --seed 1 --runs 60 --hosts 60 --crashes 8 >target/sim-run.txt || { tail -n 1 target/sim-run.txt; exit 1; }
	$(BIN) sim run --seed 1 --runs 2 --hosts 5000 --pages 10 --workers 64 --crashes 4 >>target/sim-run.txt || { tail -n 1 target/sim-run.txt; exit 1; }
	@tail -n 5 target/sim-run.txt

# Weeks of a crawl of a million hosts in virtual time. A seed that breaks a promise is told in one line, and breaks it again.
sim: ## one large history from SEED (the clock) in virtual time: HOSTS (a million), ten pages each; about 10 CPU-minutes
	cargo build $(LOCKED) --release
	@rm -rf target/sim-files
	@echo "SEED=$(SEED) HOSTS=$(HOSTS)"
	target/release/rhumb sim run --seed $(SEED) --hosts $(HOSTS) --pages 10 --workers 8 --crashes 10 --dir target/sim-files $(ARGS)

kill: .venv/installed ## the long kill matrix: KILLS (200) instants from SEED (the clock)
	@echo "RHUMB_KILLS=$(KILLS) RHUMB_SEED=$(SEED)"
	RHUMB_KILLS=$(KILLS) RHUMB_SEED=$(SEED) tests/run.sh --test suite crash

export-kill: .venv/installed ## exports killed at KILLS (200) instants each from SEED (the clock), byte by byte the same in the end
	@echo "RHUMB_KILLS=$(KILLS) RHUMB_SEED=$(SEED)"
	NEXTEST_PROFILE=long RHUMB_KILLS=$(KILLS) RHUMB_SEED=$(SEED) tests/run.sh --test suite export::interrupted::killed

faults: .venv/installed ## the long fault matrix: every single write and look failing, a minute of SIGSTOP, and make flips
	@echo "RHUMB_FLIPS=$(FLIPS) RHUMB_SEED=$(SEED)"
	NEXTEST_PROFILE=long RHUMB_FULL=1 RHUMB_STOP_SECONDS=60 RHUMB_FLIPS=$(FLIPS) RHUMB_SEED=$(SEED) tests/run.sh --test suite crash

flips: ## FLIPS (1,000) single bits from SEED (the clock) in all files of a crawl; REPORT=file keeps the result
	@echo "RHUMB_FLIPS=$(FLIPS) RHUMB_SEED=$(SEED)"
	NEXTEST_PROFILE=long RHUMB_FLIPS=$(FLIPS) RHUMB_SEED=$(SEED) $(if $(REPORT),RHUMB_REPORT=$(abspath $(REPORT))) tests/run.sh --test suite crash::flips

# What the corpora hold is replayed by every test run; this looks for more. Needs a nightly toolchain, cargo-fuzz and a C++ compiler.
fuzz: ## each fuzz target (or TARGET) for SECONDS (600), summary in target/fuzz/summary.json; ARGS=--keep grows the corpora
	$(PYTHON) fuzz/run.py $(TARGET) --seconds $(FUZZ_SECONDS) $(ARGS)

fuzz-smoke: ## each fuzz target for 10 seconds
	$(PYTHON) fuzz/run.py $(TARGET) --seconds 10 $(ARGS)

hostile: ## hosts that behave, alone and beside the whole hostile web, five times in turn (about 5 minutes); OUT=file keeps the figures
	RHUMB_HOSTILE=$(abspath $(or $(OUT),target/hostile.json)) cargo test $(LOCKED) -p rhumb --test suite hostile::measured -- --ignored --nocapture

bench-peers: ## processor time per page beside wget2 and Scrapy (about 10 minutes, nearly all of it Scrapy); ARGS=--json keeps the result
	$(PYTHON) bench/peers.py $(ARGS)

bench-links: ## what the link graph adds to a crawl, and how soon a link is answered; ARGS=--json keeps the result
	$(PYTHON) bench/links.py $(ARGS)

bench-search: ## what searching takes from a crawl that runs, and how long answers take meanwhile; ARGS=--json keeps the result
	$(PYTHON) bench/search.py $(ARGS)

bench-sizes: ## a crawl of 100,000 pages, interrupted and resumed, then looked into; ARGS=--json keeps the result
	$(PYTHON) bench/sizes.py $(ARGS)

bench-scale: ## the parts at size: 100 M URLs, 10 M hosts, bounded memory (half an hour); ARGS=--json keeps the results
	$(PYTHON) bench/scale.py $(ARGS)

tools: ## install cargo-nextest, cargo-deny and, where there is a nightly toolchain, cargo-fuzz (several minutes)
	cargo nextest --version >/dev/null 2>&1 || cargo install --locked cargo-nextest
	cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny
	! cargo +nightly --version >/dev/null 2>&1 || cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz

clean: ## remove what was built and installed here
	cargo clean
	rm -rf .venv .venv-bench tests/browser/node_modules

# The browser is Debian's; what drives it comes from npm. Without them the pages are not tried in a browser, which CI does not accept.
tests/browser/node_modules/installed: tests/browser/package-lock.json
	@{ chromium --version && npm --version; } >/dev/null 2>&1 || { echo "installing chromium, nodejs and npm (apt)"; \
	  { apt-get update -qq && apt-get install -y -qq chromium nodejs npm; } >/dev/null 2>&1 || echo "Chromium cannot be installed"; }
	@echo "installing playwright-core into tests/browser (npm)"
	@if cd tests/browser && npm ci --silent --no-audit --no-fund --ignore-scripts; then touch node_modules/installed; \
	  else echo "playwright-core cannot be installed: the search page is not tried in a browser"; fi

.venv/installed: tests/requirements.txt
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "installing python3-venv (apt)"; apt-get update -qq && apt-get install -y -qq python3-venv; }
	@ls /usr/lib*/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || { echo "installing faketime (apt)"; \
	  { apt-get update -qq && apt-get install -y -qq faketime; } >/dev/null 2>&1 || echo "faketime cannot be installed: the clock is not set in tests"; }
	@echo "installing warcio, cdxj-indexer, pyarrow, DuckDB, py-wacz and pywb into .venv (pip)"
	@rm -rf .venv && $(PYTHON) -m venv .venv
	@.venv/bin/pip install -q --disable-pip-version-check -r tests/requirements.txt
	@touch $@
