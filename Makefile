# make reproduce [PLAN=smoke-cpu] [HOST=]   run a plan and write its tables
# make audit                                hold every record and table to account
PLAN ?= smoke-cpu
HOST ?=
MIRROR ?=
RUNTIME ?=
PYTHON ?= python3
# What a user names reaches the commands by the environment: never as shell or make text.
override PLAN := $(value PLAN)
override HOST := $(value HOST)
override MIRROR := $(value MIRROR)
override RUNTIME := $(value RUNTIME)
export PLAN HOST MIRROR RUNTIME
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.ready-dev
DRAW_READY := $(VENV)/.ready-draw

.DEFAULT_GOAL := help
.PHONY: paper report coverage paper-claims help reproduce demo test lint audit audit-selftest bench bench-peers test-sky fetch-records verify-images clean

help:
	@echo 'make reproduce [PLAN=smoke-cpu] [HOST=]  run a plan, bring its records home, write the tables'
	@echo 'make audit                              hold every record and table to account'
	@echo 'make audit-selftest                     spoil a healthy repository in every known way; what is noticed?'
	@echo 'make paper                              the paper, each number a link to its records: build/paper.pdf'
	@echo 'make report                             one page of what was measured: build/report.html'
	@echo 'make demo [HOST=]                       the whole pipeline against the reference server'
	@echo 'make test | lint | bench                for those who change this project'
	@echo 'make coverage                           how often the intervals hold the truth, by simulation'
	@echo 'make bench-peers                        the client beside whole benchmark tools, too'
	@echo 'make test-sky                           have SkyPilot read the tasks that the kit makes for it'
	@echo 'make fetch-records [HOST=]              bring records of sealed runs home'
	@echo 'make verify-images [HOST=] [MIRROR=]    hold registry, or host, against images/images.lock.json'
	@echo 'make clean                              remove build/ and caches; never records, never .kit/'

reproduce: $(READY)
	@$(BIN)/kit reproduce --plan "$$PLAN" --host "$$HOST" $${RUNTIME:+--runtime "$$RUNTIME"} $${MIRROR:+--mirror "$$MIRROR"}

demo: $(READY)
	@$(BIN)/kit reproduce --plan demo $${HOST:+--host "$$HOST"}

audit: $(READY)
	@$(BIN)/kit audit

audit-selftest: $(DEV_READY)
	@$(BIN)/python -m tests.audit.tamper.selftest

paper: $(DRAW_READY)
	@$(BIN)/kit paper

report: $(DRAW_READY)
	@$(BIN)/kit report

# What \claim prints in the paper, from the records.
paper-claims: $(READY)
	@$(BIN)/kit claims --tex

# analysis/statistics/COVERAGE.md, from its seed; under a minute.
coverage: $(READY)
	@$(BIN)/python -m analysis.statistics.coverage_page

fetch-records: $(READY)
	@$(BIN)/kit fetch-records --host "$$HOST"

verify-images: $(READY)
	@$(BIN)/kit images verify $${MIRROR:+--mirror "$$MIRROR"} $${HOST:+"$$HOST"}

lint: $(DEV_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Those that boot daemons mostly wait, so four run at a time (on two cores 290 s of processor time in
# 406 s); those that compute, and those that boot the engine, are kept from them. Of the
# engine's the first installs it for all: two at a time would stand in each other's way.
test: lint
	$(BIN)/pytest -n auto --dist loadfile --ignore tests/e2e
	$(BIN)/pytest -n 4 --dist loadfile -m 'not engine' tests/e2e
	$(BIN)/pytest -m engine tests/e2e

bench: $(DEV_READY)
	$(BIN)/python -m tests.bench.bench_records
	$(BIN)/python -m tests.bench.bench_claims
	$(BIN)/python -m tests.bench.bench_analysis
	$(BIN)/python -m tests.bench.bench_audit
	$(BIN)/python -m tests.bench.bench_fleet
	$(BIN)/python -m tests.bench.bench_client

# SkyPilot reads the tasks that the kit makes, in an environment of its own.
SKY := build/sky
test-sky: $(DEV_READY) $(SKY)/.ready
	$(BIN)/python -m tests.sky.documents | $(SKY)/bin/python tests/sky/parse.py

$(SKY)/.ready: pyproject.toml | $(VENV)/bin/python
	@echo 'installing SkyPilot into $(SKY)' >&2
	@$(PYTHON) -m venv $(SKY)
	@$(SKY)/bin/python -m pip install --quiet --disable-pip-version-check \
	  "$$(sed -n 's/^sky = \["\(.*\)"\]$$/\1/p' pyproject.toml)"
	@touch $@

bench-peers: $(DEV_READY)
	$(BIN)/python -m tests.bench.bench_client --peers

clean:
	rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./$(VENV) -prune -o -path ./.kit -prune -o -name __pycache__ -type d -exec rm -rf {} +

# The environment of the local tool. It is made again when pyproject.toml changes.
$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo 'error: no $(PYTHON)'; echo '  try: apt-get install python3 python3-venv'; exit 1; } >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) -V 2>&1)"; \
	  echo '  try: make PYTHON=python3.11 …, or install a newer Python'; exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'error: this Python cannot make environments (venv and ensurepip are packaged apart)'; \
	  echo '  try: apt-get install python3-venv'; exit 1; } >&2
	@$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml | $(VENV)/bin/python
	@echo 'installing the local tool into $(VENV)' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(DEV_READY): pyproject.toml | $(VENV)/bin/python
	@echo 'installing the local tool and its checks into $(VENV)' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(READY) $(DRAW_READY)

# What figures need, too.
$(DRAW_READY): pyproject.toml | $(VENV)/bin/python
	@echo 'installing the local tool and what it draws with into $(VENV)' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[figures]'
	@touch $@ $(READY)
