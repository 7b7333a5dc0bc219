# make run · make test · make check · make proof · make bench
# Needs Python 3.11+ and git; everything else is fetched into .tools and .venv.
PY ?= python3
UV := .tools/bin/uv
export UV_PYTHON_DOWNLOADS ?= never
export UV_PYTHON ?= $(PY)
RUN := $(UV) run --quiet --locked

.PHONY: run test check proof bench setup clean

run: $(UV)
	$(RUN) --no-dev holdfast serve

test: check
	$(RUN) pytest -q -n auto

check: $(UV)
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) lint-imports --no-cache

proof: $(UV)
	$(RUN) pytest -q -s -m proof --timeout 3600 tests

bench: $(UV)
	$(RUN) python -m benchmarks

setup: $(UV)
	$(UV) sync --quiet --locked

$(UV):
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Holdfast needs Python 3.11 or newer: make PY=/path/to/python3.11"; exit 1; }
	@$(PY) -m venv .tools || { echo "The venv module is missing; on Debian: apt-get install python3-venv"; rm -rf .tools; exit 1; }
	@.tools/bin/pip install --quiet --disable-pip-version-check 'uv>=0.13,<0.14'

clean:
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
