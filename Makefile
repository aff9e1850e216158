# Two commands matter: `make run` and `make test`. Each works from a fresh clone; what they install
# goes into .venv/ and .cache/ here, and nowhere else.

CONFIG ?= config.example.yaml
# The first of these that runs (a version manager's stand-in may exist and not run) and is new enough.
PYTHON ?= $(shell for each in python3.13 python3.12 python3.11 python3 python; do \
	"$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo "$$each"; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
LOCKED := tests/locked
PIP := $(BIN)/python -m pip install --disable-pip-version-check

# A stamp says that the environment holds what these files ask for; its name carries their checksum,
# so that going back to an older commit installs again, and touching a file does not.
SUM := $(shell cat pyproject.toml $(LOCKED)/*.txt Makefile | cksum | cut -d' ' -f1)
RUN_STAMP := $(VENV)/.run-$(SUM)
DEV_STAMP := $(VENV)/.dev-$(SUM)
# An environment whose Python has gone (an upgrade, a moved folder) is made anew.
ifneq ($(shell $(BIN)/python -c 'import sys; print(sys.prefix)' 2>/dev/null),$(abspath $(VENV)))
.PHONY: $(RUN_STAMP) $(DEV_STAMP)
endif

.PHONY: help run test lint fix conformance bench lock clean
.DELETE_ON_ERROR:

help:
	@echo "make run          start the gateway on $(CONFIG)   (CONFIG=FILE: on another)"
	@echo "make test         install what tests need, then run every check and test   (ARGS=...: for pytest)"
	@echo "make lint         the checks alone: ruff, mypy, import contracts, rules of the house"
	@echo "make fix          what ruff can repair"
	@echo "make conformance  the official conformance suite through the gateway"
	@echo "make bench        measure speed and memory beside other gateways   (ARGS=--help: how)"
	@echo "make lock         choose the newest versions of what we depend on, into $(LOCKED)/"
	@echo "make clean        remove all that was made"

run: $(RUN_STAMP)
	@exec $(BIN)/onegate serve -c $(CONFIG)

test: $(DEV_STAMP)
	@sh $(LOCKED)/system.sh
	$(BIN)/python -m pytest $(ARGS)

lint: $(DEV_STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q tests/test_architecture.py -k house

fix: $(DEV_STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

conformance: $(DEV_STAMP)
	$(BIN)/python -m tests.conformance.run $(ARGS)
	$(BIN)/python -m tests.conformance.crossing

bench: $(DEV_STAMP)
	$(BIN)/python -m tests.bench $(ARGS)

# -- the environment ------------------------------------------------------------------------

$(RUN_STAMP):
	@$(MAKE) --no-print-directory -s environment
	@echo "Installing what onegate needs (once, about half a minute) ..."
	@$(PIP) -r $(LOCKED)/run.txt
	@$(PIP) --quiet --no-deps -e .
	@rm -f $(VENV)/.run-* && touch $@

$(DEV_STAMP):
	@$(MAKE) --no-print-directory -s environment
	@echo "Installing what the checks and tests need (once, about a minute) ..."
	@$(PIP) -r $(LOCKED)/dev.txt
	@$(PIP) --quiet --no-deps -e .
	@rm -f $(VENV)/.run-* $(VENV)/.dev-* && touch $@ $(RUN_STAMP)

.PHONY: environment
environment:
	@test "$$($(BIN)/python -c 'import sys; print(sys.prefix)' 2>/dev/null)" = "$(abspath $(VENV))" || { \
	test -n "$(PYTHON)" || { \
		echo "onegate needs Python 3.11 or later, and found none on the PATH." >&2; \
		echo "Install it (python.org, your package manager, pyenv, uv python install)," >&2; \
		echo "or say where it is: make run PYTHON=/path/to/python3" >&2; exit 1; }; \
	"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: its venv module is missing." >&2; \
		echo "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }; \
	echo "Making $(VENV)/ with $$("$(PYTHON)" --version) ..."; \
	"$(PYTHON)" -m venv --clear $(VENV); }

# Resolved afresh in an environment of their own; uvloop keeps its marker, for where it has no build.
lock:
	@mkdir -p .cache
	"$(PYTHON)" -m venv --clear .cache/lock
	.cache/lock/bin/python -m pip install -q --disable-pip-version-check .
	.cache/lock/bin/python -m pip freeze -q --exclude onegate | sed "$(MARKED)" > $(LOCKED)/run.txt
	.cache/lock/bin/python -m pip install -q --disable-pip-version-check -c $(LOCKED)/run.txt '.[dev]'
	.cache/lock/bin/python -m pip freeze -q --exclude onegate | sed "$(MARKED)" > $(LOCKED)/dev.txt
	rm -rf .cache/lock

MARKED := s/^uvloop==.*/&; sys_platform != 'win32' and implementation_name == 'cpython'/

clean:
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find gateway tests -name __pycache__ -prune -exec rm -rf {} +
