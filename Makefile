# The commands of this project. Each is a thin front of cmake, ctest, pytest and the scripts in
# tools/; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := python
.DELETE_ON_ERROR:
.NOTPARALLEL:

BUILD ?= build
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 120
# Simulated schedules of crashes in `make test`; a million in `make nightly`.
SCHEDULES ?= 10000
ARGS ?=

# A clone in another folder finds what this one has compiled.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := true
export NINJA_STATUS := [%f/%t %es] 
# What tests and benchmarks run.
export ELASTICDL_BIN ?= $(abspath $(BUILD))/release/apps/elasticdl/elasticdl

step := tools/step
tf215 = $$(tools/env-path tf215)
# Our packages come from the tree, the rest from the environment.
python = env PYTHONPATH=$(CURDIR) PYTHONDONTWRITEBYTECODE=1 $(tf215)/bin/python
pytest = $(python) -m pytest -p no:cacheprovider

# $(call build,PRESET,TARGET...)
build = tools/build $(BUILD) $(1) $(2)

.PHONY: help
help: ## List these commands
	@awk -F ':.*## ' '/^[a-z][a-z%-]*:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: python
python: ## `make` alone: what the Python tests need of the build, in seconds
	@$(step) "build the descriptor" $(call build,release,python_descriptor)
	@echo "The packages can be imported; make build builds the rest, make help lists all commands."

.PHONY: native
native: ## The compiled part of the Python package elasticdl, into the tree
	@$(step) "build elasticdl._native" $(call build,release,native)

.PHONY: setup
setup: ## Install what is needed: Debian packages, Python environments
	@$(step) "set-up" tools/setup

.PHONY: quickstart
quickstart: ## Install, build, and train the iris model of tutorial 1 on this machine
	@$(step) "set-up for the quickstart" tools/setup quickstart
	@$(step) "build the elasticdl binary" $(call build,release,elasticdl python_descriptor)
	@tools/quickstart

.PHONY: build
build: setup ## Build the binary (build/release) and the tests (build/dev)
	@$(step) "build (release)" $(call build,release,elasticdl elasticdl_ps native python_descriptor)
	@$(step) "build (dev)" $(call build,dev,all)

.PHONY: check
check: ## The quick tier for daily work: lint without clang-tidy, unit tests
	@$(step) "lint (quick)" tools/lint --quick
	@$(step) "build (dev)" $(call build,dev,all)
	@$(step) "C++ unit tests" ctest --test-dir $(BUILD)/dev -j$(JOBS) --output-on-failure $(ARGS)
	@$(step) "Python unit tests" $(pytest) -q tools/tests elasticdl/python/tests

.PHONY: test
test: setup ## What CI runs: quick lint, unit tests, sanitizers, fuzz corpora, local jobs, images, a cluster
	@tools/beside "tools/cluster build" \
	  $(step) "all tests" $(MAKE) --no-print-directory lint-quick test-unit test-jobs test-images test-cluster

.PHONY: lint-quick
lint-quick: # all but clang-tidy, which takes longer than the tests it would stand before
	@$(step) "lint (quick)" tools/lint --quick

.PHONY: test-lint
test-lint: # quick things first; clang-tidy remembers what it has passed
	@$(step) "lint (quick)" tools/lint --quick
	@$(step) "build (dev)" $(call build,dev,all)
	@$(step) "lint" tools/lint --build $(BUILD)/dev

.PHONY: test-unit
test-unit: ## Tier 1: unit tests, plain, under asan+ubsan and under tsan
	@$(step) "tier 1: unit tests" $(MAKE) --no-print-directory unit-asan test-fuzz unit-tsan unit-python simulation

# The sanitized builds stand for the plain one, which `make check` builds: a third compilation of
# every test would find nothing more, and cost a fresh machine ten minutes.
.PHONY: unit-asan unit-tsan unit-python
unit-asan unit-tsan: unit-%:
	@$(step) "build ($*)" $(call build,$*,unit_tests)
	@$(step) "C++ unit tests ($*)" env EDL_SIM_SCHEDULES=200 tools/with-sanitizers ctest --test-dir $(BUILD)/$* -j$(JOBS) --output-on-failure
unit-python:
	@$(step) "build the descriptor" $(call build,release,python_descriptor)
	@$(step) "Python unit tests" $(pytest) -q tools/tests elasticdl/python/tests

.PHONY: simulation
simulation: # random schedules of crashes, over all cores
	@$(step) "build (release)" $(call build,release,simulation_test)
	@$(step) "simulation, $(SCHEDULES) schedules" tools/simulate $(BUILD)/release $(SCHEDULES)

# -rP: what passed tells its seed too, its kills, and how many of them hit.
.PHONY: test-jobs
test-jobs: ## Tier 2: real jobs on this machine, with real TensorFlow, killed in the middle
	@$(step) "build (release)" $(call build,release,elasticdl elasticdl_ps mutants native python_descriptor scale_load table_steps)
	@$(step) "tier 2: local jobs" $(pytest) -v -rP tests/e2e $(ARGS)

.PHONY: test-cluster
test-cluster: ## Tier 3, as root: a real Kubernetes cluster on this machine, and jobs in it
ifeq ($(shell id -u),0)
	@$(step) "build the cluster" tools/cluster build
	@$(step) "build (release)" $(call build,release,elasticdl native python_descriptor kube_conformance backend_kubernetes_conformance)
	@$(step) "tier 3: cluster" $(pytest) -v -rP --durations=8 tests/cluster $(ARGS)
else
	@echo "==> tier 3: cluster: SKIPPED: nodes need root; type: sudo make test-cluster"
endif

.PHONY: test-images
test-images: ## Tier 4, as root: wheels in a bare Debian, images by real builders
ifeq ($(shell id -u),0)
	@$(step) "build (release)" $(call build,release,elasticdl python_descriptor)
	@$(step) "tier 4: images" $(pytest) -v -rP --durations=8 tests/images $(ARGS)
else
	@echo "==> tier 4: images: SKIPPED: namespaces and images need root; type: sudo make test-images"
endif

.PHONY: test-fuzz
test-fuzz: ## Replay the fuzz corpora, then 10 s a target
	@$(step) "build (fuzz targets)" $(call build,asan,fuzzers)
	@$(step) "fuzz corpora, 10 s a target" tests/fuzz/run $(BUILD)/asan/fuzzers 10

.PHONY: lint
lint: setup test-lint ## clang-format, layers, listed tests, sizes, ruff, clang-tidy

.PHONY: fuzz
fuzz: setup ## Fuzz each target for FUZZ_SECONDS (120); new inputs go to the corpora
	@$(step) "build (fuzz)" $(call build,fuzz,fuzzers)
	@$(step) "fuzz, $(FUZZ_SECONDS) s a target" tests/fuzz/run --keep $(BUILD)/fuzz/fuzzers $(FUZZ_SECONDS)

.PHONY: nightly
nightly: check test lint ## Everything, in its long form: a million simulated schedules, long kill schedules
	@$(MAKE) --no-print-directory simulation SCHEDULES=1000000
	@$(step) "long local jobs" env ELASTICDL_NIGHTLY=1 $(pytest) -v -rP tests/e2e
	@ELASTICDL_NIGHTLY=1 $(MAKE) --no-print-directory test-images test-cluster
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=600

.PHONY: wheels
wheels: ## Build the Python packages into dist/, the binary as one of them
	@$(step) "set-up" tools/setup
	@$(step) "build (release)" $(call build,release,elasticdl python_descriptor)
	@$(step) "wheels" tools/wheels

.PHONY: images
images: wheels ## Build our images with buildah, podman or docker; ARGS=--stand-in without Docker Hub
	@$(step) "images" tools/images $(ARGS)

bench-%: setup ## Run a benchmark of benchmarks/, as docs/benchmarks.md lists them
	@$(step) "build (release)" $(call build,release,elasticdl dispatch_load scale_load bench_table native ps_load python_descriptor)
	@$(step) "benchmark $*" tools/bench $(BUILD)/release $* $(ARGS)

.PHONY: clean
clean: ## Remove what was built here; caches outside the tree stay
	rm -rf $(BUILD) dist elasticdl/_native*.so
