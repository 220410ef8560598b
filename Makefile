# `make audit` and `make test` do everything on a fresh machine; `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# PyTorch's own host code computes where this machine can run it, else the installed release's compiled kernels, where the
# macOS wheel can be had: it is read once, about 110 MB.
AUDIT_ARGS ?= --host-code auto
# Another torch than the pinned one: make test TORCH='==2.10.*'
TORCH ?= $(shell sed -n 's/^torch==/==/p' constraints.txt)
# The part of `make test-network` that `make test` runs too, in at most four minutes.
WHEEL_TESTS = tests/unit/audit/releases/wheel tests/unit/simulator/air
SHIPPED_TESTS = tests/simulated/shipped/test_found_wrong_on_device.py tests/simulated/shipped/test_softmax_conventions.py
# A process that has no test left takes over half of another one's.
PARALLEL = --numprocesses auto --dist worksteal
# Apart from tests/unit: the device loads before any backward.
DEVICE_TESTS := $(if $(filter Darwin,$(shell uname -s)),tests/mps,tests/simulated $(PARALLEL))
# C++ and Metal, but what .clang-format-ignore names.
NATIVE_SOURCES = $(shell find kernels scaffold simulator -name '*.c' -o -name '*.cpp' -o -name '*.h' -o -name '*.mm' -o -name '*.metal')

.PHONY: help setup hooks audit test test-wheel test-network test-mac test-mps lint types format drawings bench package clean
.DEFAULT_GOAL := help

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP)  ## a virtual environment in .venv with mpsmith and what it needs

# The first words of a Mac's own python3, which is 3.9, must be this line and not an error of pip's.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = "%d.%d" % sys.version_info[:2]; sys.exit(None if sys.version_info >= (3, 10) else \
	  "error: $(PYTHON) is Python " + v + ", mpsmith needs 3.10 or newer: make PYTHON=python3.12 (from python.org or Homebrew)")'
	$(PYTHON) -m venv $(VENV)
	@mkdir -p build && sed 's/^torch==.*/torch$(TORCH)/' constraints.txt > build/constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint build/constraints.txt --editable '.[dev]'
	@touch $@

hooks: $(STAMP)  ## check every commit before it is made
	$(BIN)/pre-commit install

audit: $(STAMP)  ## audit the mps device (simulated where there is no Mac), sync the registry, write the report
	$(BIN)/mpsmith audit --sync --report $(AUDIT_ARGS)

test: $(STAMP) lint  ## lint, types and all tests that this machine can run in minutes
	$(BIN)/python -m pytest tests/unit $(PARALLEL) --durations 20
	$(BIN)/python -m pytest $(DEVICE_TESTS) --durations 20
	$(MAKE) test-wheel

# Without the package index nothing of it runs, and the last line says so.
test-wheel: $(STAMP)  ## tests that read the macOS wheel of the pinned torch, where the package index answers
	@if $(BIN)/python -m pip index versions torch >/dev/null 2>&1; then \
	  $(BIN)/python -m pytest $(WHEEL_TESTS) -m network $(PARALLEL) --durations 20 && \
	  $(BIN)/python -m pytest $(SHIPPED_TESTS) -m network $(PARALLEL) --durations 20; \
	else echo "The package index does not answer: no test read the macOS wheel of torch."; fi

# Its first tests fill empty caches: wheels are read, and loaders, headers and libraries are compiled.
test-network: $(STAMP)  ## all tests that need a package index, and the rehearsals: under an hour on two cores
	$(BIN)/python -m pytest tests/unit -m "network or rehearsal" --timeout 1800 $(PARALLEL) --durations 20
	$(BIN)/python -m pytest tests/simulated -m "network or rehearsal" --timeout 1800 $(PARALLEL) --durations 20

# The unit tests of code that runs on a Mac; the others execute no line that these do not.
MAC_TESTS = tests/unit/test_real_device.py tests/unit/test_on_macos.py tests/unit/reports/evidence tests/unit/scaffold/building \
  tests/unit/audit/running/test_lost_devices.py tests/unit/tracing/test_instruments.py
test-mac: $(STAMP)  ## unit tests and rehearsals of a Mac; fails if none executes some line that runs on a Mac alone
	rm -rf build/mac-lines && mkdir -p build/mac-lines
	MPSMITH_MAC_LINES=$(CURDIR)/build/mac-lines $(BIN)/python -m pytest $(MAC_TESTS) $(PARALLEL)
	MPSMITH_MAC_LINES=$(CURDIR)/build/mac-lines $(BIN)/python -m pytest tests/simulated/reports/evidence \
	  -m "not network" -k "not each_family" $(PARALLEL)
	PYTHONPATH=tests $(BIN)/python -m support.mac_lines build/mac-lines

test-mps: $(STAMP)  ## the tests that need a real mps device (a Mac with Apple silicon)
	$(BIN)/python -m pytest tests/mps

lint: $(STAMP) types  ## ruff, mypy, clang-format, typos and the words of docs/glossary.md
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/clang-format --dry-run -Werror $(NATIVE_SOURCES)
	$(BIN)/typos
	@PYTHONPATH=tests $(BIN)/python -m support.prose

types: $(STAMP)
	@mkdir -p build/mypy && ln -sfn ../.. build/mypy/mpsmith
	$(BIN)/mypy

format: $(STAMP)  ## let ruff and clang-format format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE_SOURCES)

drawings: $(STAMP)  ## draw the pictures of docs/architecture.md again, from the imports
	PYTHONPATH=tests $(BIN)/python -m support.drawings

bench: $(STAMP)  ## the benchmarks: ratios measured side by side in one run
	$(BIN)/python -m benchmarks

# The pinned torch: the newest one, which the release workflow tries, may come with CUDA here.
package:  ## sdist and wheel, built and tried in an empty environment as the release workflow does
	PYTHON=$(PYTHON) PIP_CONSTRAINT=$(CURDIR)/constraints.txt .ci/package

clean:  ## remove the virtual environment and what was built
	rm -rf $(VENV) build dist *.egg-info
