# make run · make test · make check · make proof · make mutants · make bench · make profile · make agents · make web · make types · make cluster
# Needs Python 3.11+ and git; everything else is fetched into .tools and .venv.
PY ?= python3
UV := .tools/bin/uv
export UV_PYTHON_DOWNLOADS ?= never
export UV_PYTHON ?= $(PY)
# Tests start many processes: what they import is compiled once.
unexport PYTHONDONTWRITEBYTECODE
RUN := $(UV) run --quiet --locked
# Tests wait more than they compute: eight workers more than there are cores.
WORKERS ?= $(shell $(PY) -c 'import os; print((os.cpu_count() or 1) + 8)')

.PHONY: run test check proof mutants bench profile agents setup clean web web-test compile-tests types screenshots cluster

run: $(UV)
	@$(PY) hatch_build.py || echo "Continuing without the dashboard."
	@$(RUN) --no-dev holdfast serve --open

test: setup  # first: installing may build the dashboard, and two builds at once get in each other's way
	@$(MAKE) --no-print-directory --jobs 2 check web-test compile-tests
	$(RUN) pytest -q -n $(WORKERS) --dist worksteal

# pytest rewrites the assertions of 350 modules: once here, beside the type checker, and not in each of its workers.
compile-tests: $(UV)
	@$(RUN) pytest -qq --collect-only > /dev/null 2>&1 || true  # the tests themselves will say what is wrong

check: $(UV)
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy  # without workers: on a busy machine they do not come up in time, and what they leave behind makes it crash
	$(RUN) lint-imports --no-cache
	$(RUN) python web/generate.py --check

proof: $(UV)
	$(RUN) pytest -q -s -m "proof and alone" --timeout 7200 tests
	$(RUN) pytest -q -rP --show-capture=stdout -m "proof and not alone" --timeout 7200 -n $(WORKERS) --dist worksteal tests
	$(RUN) pytest -q --store postgres -n $(WORKERS) --dist worksteal tests/board tests/runtime tests/lifecycle

mutants: $(UV)
	$(RUN) python -m tests.mutants $(ARGS)

bench: $(UV)
	$(RUN) python -m benchmarks

profile: $(UV)
	$(RUN) python -m benchmarks.turn_profile

agents: $(UV)
	$(RUN) python -m tests.agents.matrix --write $(ARGS)

web: $(UV)
	@$(PY) hatch_build.py

web-test: $(UV)
	@$(PY) hatch_build.py --test

types: $(UV)
	$(RUN) python web/generate.py

cluster: setup
	@$(RUN) python -m tests.local_cluster

screenshots: web
	$(RUN) python -m tests.web.screenshots

setup: $(UV)
	$(UV) sync --quiet --locked

$(UV):
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Holdfast needs Python 3.11 or newer: make PY=/path/to/python3.11"; exit 1; }
	@echo "Installing into .tools and .venv. The first time this takes a minute or two."
	@$(PY) -m venv .tools || { echo "The venv module is missing; on Debian: apt-get install python3-venv"; rm -rf .tools; exit 1; }
	@.tools/bin/pip install --quiet --disable-pip-version-check 'uv>=0.13,<0.14'

clean:
	rm -rf .venv .tools web/node_modules src/holdfast/gateway/static .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
