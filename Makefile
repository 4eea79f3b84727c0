# The commands of this project. Each calls cmake, ctest, pytest or the scripts in tools/; `make help`
# lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := python
.DELETE_ON_ERROR:
.NOTPARALLEL:

BUILD ?= build
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 120
# Simulated schedules of crashes in `make test`; a million in `make nightly`.
SCHEDULES ?= 10000
# Simulated schedules of crashes of the operator of TFJobs in `make nightly`: about five minutes.
OPERATOR_SCHEDULES ?= 30000
ARGS ?=

# Clones in other folders share the compiler cache.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := true
export NINJA_STATUS := [%f/%t %es] 
# The binary that tests and benchmarks run.
export ELASTICDL_BIN ?= $(abspath $(BUILD))/release/apps/elasticdl/elasticdl

step := tools/step
tf215 = $$(tools/env-path tf215)
# Our packages are imported from the tree, all others from the environment.
python = env PYTHONPATH=$(CURDIR) PYTHONDONTWRITEBYTECODE=1 $(tf215)/bin/python
pytest = $(python) -m pytest -p no:cacheprovider

# $(call build,PRESET,TARGET...)
build = tools/build $(BUILD) $(1) $(2)

.PHONY: help
help: ## List these commands
	@awk -F ':.*## ' '/^[a-z][a-z%-]*:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: python
python: ## `make` alone: build the files that the Python packages need, in seconds
	@$(step) "build the descriptor" $(call build,release,python_descriptor)
	@echo "The packages can be imported; make build builds the rest, make help lists all commands."

.PHONY: native
native: ## The compiled part of the Python package elasticdl, into the tree
	@$(step) "build elasticdl._native" $(call build,release,native)

.PHONY: setup
setup: ## Install Debian packages and Python environments
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
test: setup ## What CI runs: lint, unit tests, sanitizers, fuzz corpora, local jobs, images, a cluster
	@tools/beside "tools/cluster build" \
	  $(step) "all tests" $(MAKE) --no-print-directory lint-quick test-unit test-jobs test-images test-cluster

.PHONY: lint-quick
lint-quick: # all checks but clang-tidy, which needs a build
	@$(step) "lint (quick)" tools/lint --quick

.PHONY: lint-changed
lint-changed: # after unit-asan, whose compile commands it uses
	@$(step) "clang-tidy of recent changes" tools/lint --changed --build $(BUILD)/asan

.PHONY: test-lint
test-lint: # the quick checks first; clang-tidy remembers which files have passed
	@$(step) "lint (quick)" tools/lint --quick
	@$(step) "build (dev)" $(call build,dev,all)
	@$(step) "lint" tools/lint --build $(BUILD)/dev

.PHONY: test-unit
test-unit: ## Tier 1: unit tests under asan+ubsan and under tsan, clang-tidy of recent changes
	@$(step) "tier 1: unit tests" $(MAKE) --no-print-directory unit-asan lint-changed test-fuzz unit-tsan unit-python simulation

# There is no plain build here (`make check` has it): compiling every test a third time would find
# nothing more, and take ten minutes on a fresh machine.
.PHONY: unit-asan unit-tsan unit-python
unit-asan unit-tsan: unit-%:
	@$(step) "build ($*)" $(call build,$*,unit_tests)
	@$(step) "C++ unit tests ($*)" env EDL_SIM_SCHEDULES=100 tools/with-sanitizers ctest --test-dir $(BUILD)/$* -j$(JOBS) --output-on-failure
unit-python:
	@$(step) "build the descriptor" $(call build,release,python_descriptor)
	@$(step) "Python unit tests" $(pytest) -q tools/tests elasticdl/python/tests

.PHONY: simulation
simulation: # random schedules of crashes, over all cores
	@$(step) "build (release)" $(call build,release,simulation_test)
	@$(step) "simulation, $(SCHEDULES) schedules" tools/simulate $(BUILD)/release $(SCHEDULES)

.PHONY: operator-crashes
operator-crashes: # random schedules in which the operator of TFJobs dies between two writes
	@$(step) "build (release)" $(call build,release,reconciler_test)
	@$(step) "crashes of the operator, $(OPERATOR_SCHEDULES) schedules" env EDL_CRASH_SCHEDULES=$(OPERATOR_SCHEDULES) $(BUILD)/release/src/reconciler/reconciler_test --gtest_filter='Crash.*'

# -rP: tests that pass also print their seed, their kills, and how many kills hit a process.
.PHONY: test-jobs
test-jobs: ## Tier 2: real jobs on this machine, with real TensorFlow, killed in the middle
	@$(step) "build (release)" $(call build,release,elasticdl elasticdl_ps mutants native native_abi3 python_descriptor scale_load table_steps)
	@$(step) "tier 2: local jobs" $(pytest) -v -rP tests/e2e $(ARGS)

.PHONY: test-cluster
test-cluster: ## Tier 3, as root: a real Kubernetes cluster on this machine, and jobs in it
ifeq ($(shell id -u),0)
	@$(MAKE) --no-print-directory cluster-programs
	@$(step) "tier 3: cluster" $(pytest) -v -rP --durations=8 tests/cluster $(ARGS)
else
	@echo "==> tier 3: cluster: SKIPPED: nodes need root; type: sudo make test-cluster"
endif

.PHONY: tfjob-acceptance
tfjob-acceptance: # as root: the result of each test of Kubeflow's suite for TFJobs
ifeq ($(shell id -u),0)
	@$(step) "acceptance list of TFJobs" tools/tfjob_acceptance --build $(BUILD)
else
	@echo "==> acceptance list of TFJobs: SKIPPED: nodes need root; type: sudo make tfjob-acceptance"
endif

.PHONY: cluster-programs
cluster-programs: # what tests/cluster runs
	@$(step) "build the cluster" tools/cluster build
	@$(step) "build (release)" $(call build,release,elasticdl native native_abi3 python_descriptor kube_conformance backend_kubernetes_conformance)

.PHONY: test-images
test-images: ## Tier 4, as root: wheels in a bare Debian, images by real builders
ifeq ($(shell id -u),0)
	@$(step) "build (release)" $(call build,release,elasticdl native native_abi3 python_descriptor)
	@$(step) "tier 4: images" $(pytest) -v -rP --durations=8 tests/images $(ARGS)
else
	@echo "==> tier 4: images: SKIPPED: namespaces and images need root; type: sudo make test-images"
endif

.PHONY: test-fuzz
test-fuzz: ## Replay the fuzz corpora, then fuzz each target for 10 s
	@$(step) "build (fuzz targets)" $(call build,asan,fuzzers)
	@$(step) "fuzz corpora, 10 s per target" tests/fuzz/run $(BUILD)/asan/fuzzers 10

.PHONY: lint
lint: setup test-lint ## clang-format, layers, listed tests, sizes, ruff, clang-tidy

.PHONY: fuzz
fuzz: setup ## Fuzz each target for FUZZ_SECONDS (120); new inputs go to the corpora
	@$(step) "build (fuzz)" $(call build,fuzz,fuzzers)
	@$(step) "fuzz, $(FUZZ_SECONDS) s per target" tests/fuzz/run --keep $(BUILD)/fuzz/fuzzers $(FUZZ_SECONDS)

.PHONY: nightly
nightly: check test lint ## Everything, in its long form: a million simulated schedules, long kill schedules
	@$(MAKE) --no-print-directory simulation SCHEDULES=1000000
	@$(MAKE) --no-print-directory operator-crashes
	@$(step) "long local jobs" env ELASTICDL_NIGHTLY=1 $(pytest) -v -rP tests/e2e
	@$(step) "build peers for tests" tools/cluster build-peers
	@ELASTICDL_NIGHTLY=1 $(MAKE) --no-print-directory test-images test-cluster
	@$(MAKE) --no-print-directory tfjob-acceptance
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=600

.PHONY: wheels
wheels: ## Build the Python packages into dist/, the binary as one of them
	@$(step) "set-up" tools/setup
	@$(step) "build (release)" $(call build,release,elasticdl native native_abi3 python_descriptor)
	@$(step) "wheels" tools/wheels

.PHONY: images
images: wheels ## Build our images with buildah, podman or docker; ARGS=--stand-in without Docker Hub
	@$(step) "images" tools/images $(ARGS)

bench-%: setup ## Run a benchmark of docs/benchmarks.md
	@$(step) "build (release)" $(call build,release,elasticdl dispatch_load scale_load bench_table native ps_load python_descriptor)
	@$(step) "benchmark $*" tools/bench $(BUILD)/release $* $(ARGS)

.PHONY: clean
clean: ## Remove the build; caches outside the tree stay
	rm -rf $(BUILD) dist elasticdl/_native*.so
