# Everything a person does with this project. `make` alone lists it.
# Paths are relative on purpose: the project may lie in a folder whose name has a space.
SHELL := /bin/sh
python := .venv/bin/python
# Twice as many as there are cores: tests/conftest.py.
workers ?= auto
# Where it is set (in containers it often is), each of the hundreds of processes that tests start would compile us anew.
unexport PYTHONDONTWRITEBYTECODE
# What `make bench` measures: a module of benchmarks/.
name ?= dispatch
# How long `make chaos` harms (3) and `make soak` watches (30); without seed= chaos draws one and says which.
minutes ?=
# The Headrace that `make console` shows.
url ?= http://127.0.0.1:8080

.DEFAULT_GOAL := help
.PHONY: help up setup setup-dev setup-training test test-long cover test-slow test-oldest image-test nightly check check-dependencies fmt docs console bench chaos soak clean

help:       ## list what can be done
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

up: setup   ## a running Headrace with its own PostgreSQL; Ctrl-C stops it
	@exec $(python) -m headrace up

setup:      ## .venv as requirements.lock says; quiet when nothing is to do
	@scripts/setup

setup-dev:
	@scripts/setup dev

setup-training: setup-dev ## PyTorch and what else training needs; its tests are skipped without it
	@$(python) -c 'import torch, onnx, fontTools' 2>/dev/null || \
	  $(python) -m pip install --quiet --disable-pip-version-check -r training/requirements.txt

test: setup-dev      ## every test but the long and the slow ones
	@$(python) -m pytest -q -n $(workers) --dist worksteal $(args)

test-long: setup-dev ## the long tests: processes killed, a browser, whole sites; some minutes
	@$(python) -m pytest -q -m 'long and not slow' -n $(workers) --dist worksteal $(args)

cover: setup-dev     ## both, and which lines they never reached; takes half as long again
	@$(python) -m pytest -q -m 'not slow' -n $(workers) --dist worksteal --cov --cov-report=term $(args)

test-slow: setup-dev ## the slow tests: long kill tests, plans at a million rows
	@$(python) -m pytest -q -m slow --timeout 1800 $(args)

test-oldest: setup-dev ## a fast subset on the oldest PostgreSQL we support, where Debian's binaries are there
	@scripts/test-oldest $(args)

image-test:          ## build the image and run, roll out and roll back the compose files; takes root on Debian, five to ten minutes
	@scripts/image-test

nightly: setup-dev   ## all tests and the slow ones, oldest and newest PostgreSQL, benchmarks against their floors; hours
	@scripts/setup bench
	@scripts/nightly $(args)

check: setup-dev     ## format, lint, types, layers, dependencies, lock files, migrations, pipeline, words, generated docs
	@$(python) -m ruff format --check --quiet . || { echo "headrace: run make fmt" >&2; exit 1; }
	@$(python) -m ruff check --quiet .
	@$(python) -m mypy
	@.venv/bin/lint-imports --no-cache
	@.venv/bin/deptry --no-ansi src
	@scripts/check-locks
	@scripts/check-migrations
	@scripts/check-delivery
	@scripts/requirements --check
	@$(python) scripts/notice --check
	@scripts/check-words
	@$(python) -m headrace docs --check
	@scripts/console check
	@echo "all checks passed"

check-dependencies: setup-dev ## licences and known vulnerabilities of all locked packages, and which had no release for 18 months
	@scripts/setup bench
	@$(python) scripts/check-dependencies

fmt: setup-dev       ## format and mend what ruff can
	@$(python) -m ruff format --quiet .
	@$(python) -m ruff check --quiet --fix .
	@scripts/console format

docs: setup-dev      ## render the reference pages from the code
	@$(python) -m headrace docs
	@scripts/schema
	@scripts/requirements
	@$(python) scripts/notice

console: setup-dev   ## the console as you edit it, in front of a `make up`; url=… for one elsewhere
	@HEADRACE_API_URL=$(url) scripts/console dev

bench:      ## measure: ours beside the peers and the raw limit; name=audit or name=schedules for another part
	@scripts/setup bench
	@$(python) -m benchmarks.$(name) $(args)

chaos: setup-dev     ## harm real processes for minutes=3 with seed=…, then read whether anything was lost or doubled
	@$(python) -m tests.chaos $(if $(minutes),--minutes $(minutes)) $(if $(seed),--seed $(seed))

soak: setup-dev      ## mixed load for minutes=30 on a `headrace up`, then read whether memory, connections or files rise
	@$(python) -m tests.soak $(if $(minutes),--minutes $(minutes)) $(if $(seed),--seed $(seed))

clean:      ## remove what set-up and tools made; your data in .headrace stays
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* htmlcov dist build \
	  console/node_modules console/dist src/headrace/web/console
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
