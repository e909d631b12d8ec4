# Every target brings .venv up by itself: tools/bootstrap, which is silent when there is nothing to do.
# ARGS goes to the tool: make test ARGS="-k gaussian -x"

SHELL := /bin/sh
BIN := .venv/bin
ARGS ?=
# Test processes side by side; each keeps its linear algebra to one thread, or two would fight for a core.
WORKERS ?= 2
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

# An activated environment, or a user's own module path, has no say in here.
unexport VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PYTHONHOME PYTHONSTARTUP PYENV_VERSION
# Tests start Python some twenty times: without bytecode each compiles the whole package.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env demo test test-slow fuzz oldest package lint types imports structure format lock notebooks docs browser bench bench-sizes figures clean

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

env: ## the environment alone, in .venv
	@tools/bootstrap

demo: env ## penguins, classified with the parameters integrated out
	@$(BIN)/bayesgen demo $(ARGS)

test: env ## all tests and doctests but the slow ones
	$(ONE_THREAD) $(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow" $(ARGS)

# What mypy and pyright tell a user is asked by `make types`.
test-slow: env ## the slow tests: sampling, and what compiles a graph
	$(ONE_THREAD) $(BIN)/pytest -n $(WORKERS) --dist worksteal -m slow --ignore=tests/test_typing.py $(ARGS)

fuzz: env ## inputs, files and kills at random (ARGS="--cases 1000 --kind csv"; --help)
	$(ONE_THREAD) NUMBA_NUM_THREADS=1 $(BIN)/python -W ignore -m tests.fuzz.run $(ARGS)

# The tests of what a wheel or an sdist may lack: files beside modules, stored models, the command line.
PACKAGED := tests/test_import.py tests/test_packaging.py tests/io/test_storage.py tests/datasets tests/cli

package: env ## wheel and sdist, built, in a clean environment: the demo, and tests from the sdist
	@rm -rf build dist && mkdir build
	@uv=$$(tools/bootstrap --find-uv) && $$uv build --quiet --out-dir dist && \
		$$uv venv --quiet --python $(BIN)/python build/clean && \
		$$uv pip install --quiet --python build/clean -r requirements.lock && \
		$$uv pip install --quiet --python build/clean --no-deps dist/*.whl
	@cd build && clean/bin/bayesgen demo >/dev/null && tar xf ../dist/bayesgen-*.tar.gz
	@build/clean/bin/python tools/licences.py >dist/licences.txt; code=$$?; cat dist/licences.txt; exit $$code
	cd build/bayesgen-* && $(ONE_THREAD) ../clean/bin/pytest -p no:cacheprovider -m "not slow" $(ARGS) $(PACKAGED)

# What the oldest releases must pass, in some two minutes on two cores.
OLDEST := tests/test_dependencies.py tests/test_import.py tests/encoding tests/io

# PyTensor keeps what numba has compiled for all environments in one place, and one version of numba
# cannot read what another has left there.
oldest: ## tests on the lowest versions that pyproject.toml allows, in .venv-oldest
	@tools/bootstrap --oldest
	$(ONE_THREAD) PYTENSOR_FLAGS=base_compiledir=$(CURDIR)/.venv-oldest/pytensor .venv-oldest/bin/pytest -n $(WORKERS) --dist worksteal -m "oldest or not slow" \
		-W ignore::DeprecationWarning -W ignore::FutureWarning $(ARGS) $(OLDEST)

lint: env ## style, formatting, spelling: reports, changes nothing
	$(BIN)/ruff check $(ARGS)
	$(BIN)/ruff format --check
	$(BIN)/codespell

types: env ## mypy, and what mypy and pyright tell a user
	$(BIN)/mypy $(ARGS)
	$(BIN)/pytest tests/test_typing.py

imports: env ## the layers of DESIGN: who may import whom
	$(BIN)/lint-imports --no-logo $(ARGS)

structure: env ## size, circles, calls and tables per call, each against its budget
	$(ONE_THREAD) $(BIN)/python tools/structure.py $(ARGS)

format: env ## put files into the house style
	$(BIN)/ruff check --fix-only $(ARGS)
	$(BIN)/ruff format

# What the tests themselves need, in the versions of requirements.lock; and a polars of the time of
# the oldest narwhals, which does not know a later one.
OLDEST_TOOLS := editables|hatch-fancy-pypi-readme|hatchling|hypothesis|mpmath|packaging|pytest|pytest-xdist
OLDEST_POLARS := polars==1.32.0

lock: ## write both locks anew after a change to pyproject.toml (ARGS=--upgrade: newest versions)
	@uv=$$(tools/bootstrap --find-uv) && $$uv pip compile pyproject.toml --quiet --all-extras \
		--universal --python-version 3.12 --generate-hashes --no-header -o requirements.lock $(ARGS)
	@uv=$$(tools/bootstrap --find-uv) && \
		{ echo $(OLDEST_POLARS); grep -E '^($(OLDEST_TOOLS))==' requirements.lock | tr -d '\\'; } | \
		$$uv pip compile pyproject.toml - --quiet --extra plots --extra report --extra parquet --extra dask \
		--resolution lowest-direct --python-version 3.12 --only-binary :all: --generate-hashes \
		--no-header -o requirements-oldest.lock $(ARGS)
	@tools/bootstrap

notebooks: env ## execute the notebooks in place
	$(BIN)/jupyter-execute --inplace $(ARGS) notebooks/*.ipynb

# PyTensor would compile every small graph of a page by a C compiler, for minutes.
docs: env ## the documentation site, in docs/_build/html
	$(ONE_THREAD) PYTENSOR_FLAGS=cxx= $(BIN)/sphinx-build -W --keep-going -qE -b html docs docs/_build/html $(ARGS)
	@echo 'open docs/_build/html/index.html'

# Chromium is Debian's; what drives it has a lock of its own, so that nobody else installs it.
browser: env ## after `make docs`: the site and two reports in Chromium (ARGS="--screenshots DIR")
	@command -v chromium >/dev/null || { apt-get update -q && apt-get install -qy --no-install-recommends chromium; } >/dev/null || \
		{ echo 'make browser needs chromium, and apt-get cannot install it here'; exit 1; }
	@uv=$$(tools/bootstrap --find-uv) && $$uv pip install --quiet --python $(BIN)/python --target build/browser \
		--no-deps --require-hashes -r docs/browser.lock
	PYTHONPATH=build/browser $(BIN)/python -W ignore docs/browser.py $(ARGS)

bench: env ## speed and memory beside scikit-learn's, in turn (ARGS="--scale .1 --only NB"; --help)
	@$(BIN)/python -m tests.benchmarks.speed large $(ARGS)

bench-sizes: env ## small and middling tables beside scikit-learn's (ARGS=--guard: against the figures kept)
	@$(BIN)/python -m tests.benchmarks.speed sizes $(ARGS)

figures: env ## draw the figures of docs/figures anew
	$(BIN)/python tools/figures.py $(ARGS)

clean: ## remove the environment, the tools and every cache
	rm -rf .venv .venv-oldest .tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	rm -rf docs/_build docs/api/generated docs/pictures docs/families/[!i]*.rst docs/stories/*.ipynb
	find bayesgen tests tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
