# `make demo` and `make test` need nothing but Python 3.11+ and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# One thread per process: the test workers share the cores among themselves.
SINGLE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# Files stay with one worker until another has nothing left: their fixtures are made once.
WORKERS := -n 2 --dist worksteal
PYTEST = MPLBACKEND=Agg $(SINGLE_THREAD) $(BIN)/python -m pytest

# What `test-coverage` reads; `make COVER= test-fast` is quicker and measures nothing.
COVER := --cov=calibration --cov=localexpert --cov-report= --cov-fail-under=0

# The least Python that pyproject.toml allows.
OLDEST ?= python3.11
NEWEST ?= $(shell bash .ci/newest-python)

# Attacks of the long form; those of the short one are `slow` tests.
FUZZ_CASES ?= 20000

# Where both exist, the kernels of both packages.
KERNELS = $(wildcard calibration/_kernels localexpert/_kernels)
KERNEL_TESTS = $(wildcard tests/calibration/_kernels tests/localexpert/_kernels)

# Files that have slow tests; to collect the others takes as long as some of those do.
SLOW_TESTS = $(shell grep -rl --include="*.py" "mark\.slow" tests)

# Python keeps what it compiles, the assertions of the tests too. Without that every
# process of every leg compiles them anew.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-slow test-kernels test-coverage lint format bench
.PHONY: fuzz test-services test-skpro test-xgboost test-ray test-browser test-oldest test-newest warm
.PHONY: leg-services leg-skpro leg-xgboost leg-ray leg-oldest leg-newest docs pictures clean
.PHONY: run-bench run-pictures dist run-dist test-wheel try-oldest try-newest
.PHONY: ready-services ready-skpro ready-xgboost ready-ray ready-oldest ready-newest environments

help:
	@echo "make demo    fit distributions, calibrate a classifier, print scores, draw"
	@echo "make test    the whole suite, and how much of the packages it runs"
	@echo "make test-services, test-skpro, test-xgboost, test-ray    what needs these optional packages"
	@echo "make test-browser    reports in Chromium, which must be on the PATH"
	@echo "make test-oldest, test-newest    what old libraries may break; make test on the newest Python"
	@echo "make dist    sdist and wheel in build/dist, checked"
	@echo "make test-wheel    the wheel in empty environments, far from this folder"
	@echo "make fuzz    random attacks, many more of them than in make test"
	@echo "make warm    compile all kernels; the tests do so first"
	@echo "make lint    ruff, mypy, spelling, docstrings"
	@echo "make format  let ruff rewrite what it can"
	@echo "make bench   speed beside other libraries (short form)"
	@echo "make docs    HTML documentation in docs/_build"
	@echo "make pictures  draw the pictures of the documentation anew"
	@echo "make clean   remove the environment and all that was built"

demo: $(VENV)/.installed
	@echo "The first run compiles loops and keeps them: later ones are quicker."
	$(BIN)/python examples/first_distribution.py
	@echo
	$(BIN)/python examples/calibrate_classifier.py

test: test-fast test-slow test-kernels test-coverage

test-fast: $(VENV)/.warm
	COVERAGE_FILE=.coverage.fast $(PYTEST) $(WORKERS) -m "not slow" $(COVER)

# pytest exits with 5 where no test is marked slow.
test-slow: $(VENV)/.warm
	$(PYTEST) $(WORKERS) -m slow $(SLOW_TESTS) || [ $$? -eq 5 ]

# Compiled code is invisible to coverage, so here the kernels run as plain Python, where
# the hashes' integers still wrap, but numpy warns of it.
test-kernels: $(VENV)/.installed-test
	NUMBA_DISABLE_JIT=1 COVERAGE_FILE=.coverage.kernels \
	    $(PYTEST) $(WORKERS) -m "not slow" $(KERNEL_TESTS) \
	    -W "ignore:overflow encountered in scalar:RuntimeWarning" \
	    $(addprefix --cov=,$(KERNELS)) --cov-report=term --cov-fail-under=97

# Both packages as a whole: the compiled leg and that of the kernels together.
test-coverage: test-fast test-kernels
	$(BIN)/coverage combine --keep --quiet .coverage.fast .coverage.kernels
	$(BIN)/coverage report

# A red case says how it is run again: make fuzz FUZZ_SEED=17
fuzz: $(VENV)/.installed-test
	FUZZ_CASES=$(FUZZ_CASES) $(PYTEST) $(WORKERS) tests/fuzz

# The optional packages have environments of their own, for they hold others below
# bounds or are large. Nothing may be skipped there: tests/conftest.py sees to it.

test-services test-skpro test-xgboost test-ray: test-%:
	LOCALEXPERT_NO_SKIPS=1 $(MAKE) VENV=$(VENV)-$* $(STEP)-$*

# `ready` is what comes before the tests of a leg. It takes one core, so .ci/run has it
# done for all legs while linters keep the other one busy.
STEP := leg
environments:
	$(MAKE) STEP=ready test-skpro test-xgboost test-oldest test-newest

ready-services: $(VENV)/.installed-test,services
ready-skpro: $(VENV)/.installed-test,skpro
ready-xgboost: $(VENV)/.installed-test,xgboost-cpu
ready-ray: $(VENV)/.installed-test,ray
ready-oldest ready-newest: $(VENV)/.warm

leg-services: ready-services
	$(PYTEST) tests/test_services.py

leg-skpro: ready-skpro
	$(PYTEST) $(WORKERS) tests/localexpert/test_skpro.py \
	    "tests/test_guide.py::test_code_of_a_page_runs_in_order[pipelines]"

# The names of these tests say that they need xgboost.
leg-xgboost: ready-xgboost
	$(PYTEST) $(WORKERS) -k xgboost tests/calibration/storage \
	    tests/localexpert/experts tests/localexpert/regressor/test_storage.py

leg-ray: ready-ray
	$(PYTEST) tests/localexpert/large/test_engines.py

# Skipped by `make test` where there is no Chromium; here that is a failure.
test-browser: $(VENV)/.installed-test
	LOCALEXPERT_NO_SKIPS=1 $(PYTEST) tests/localexpert/reporting/test_browser.py

# The least versions that pyproject.toml allows, written out as constraints for pip. Its
# kernels lie apart: an older numba of the same Python replaces those of the newer one.
OLDEST_VERSIONS := build/oldest-versions.txt

test-oldest:
	mkdir -p $(dir $(OLDEST_VERSIONS))
	$(OLDEST) .ci/oldest_versions.py > $(OLDEST_VERSIONS)
	PIP_CONSTRAINT="$(CURDIR)/$(OLDEST_VERSIONS)" \
	NUMBA_CACHE_DIR="$(CURDIR)/$(VENV)-oldest/kernels" \
	    $(MAKE) VENV=$(VENV)-oldest PYTHON=$(OLDEST) $(STEP)-oldest

# The whole suite. The newest Python takes newer libraries than the oldest one can.
test-newest:
	$(MAKE) VENV=$(VENV)-newest PYTHON="$(NEWEST)" $(STEP)-newest

# Older libraries break our calls of them, not our arithmetic, which the whole suite
# checks on the newest. `warm` has compiled every kernel and fitted models of every kind.
# Here runs, of each room, what hands a library something new: estimators and trees,
# tables, saved files (LightGBM), pictures.
CALLERS := $(addprefix tests/calibration/,_kernels/test_jit.py classifier/test_classifier.py \
    plots storage test_sources.py) $(addprefix tests/localexpert/,plots \
    $(addprefix experts/test_,contract.py independent.py shared_boosting.py) \
    $(addprefix large/test_,fit_large.py predict_table.py) \
    $(addprefix regressor/test_,adapter.py inputs.py regressor.py))

leg-oldest: ready-oldest
	$(PYTEST) $(WORKERS) -m "not slow" $(CALLERS)

# From Python 3.12 on the interpreter itself tells which lines run: a tenth of the time of
# the tests, where tracing takes half of it.
leg-newest: export COVERAGE_CORE = sysmon
leg-newest: test

# What is uploaded. The wheel is built from the sdist, so nothing it needs is missing there.
DIST := build/dist

dist:
	$(MAKE) VENV=$(VENV)-dist run-dist

run-dist: $(VENV)/.tools
	rm -rf $(DIST)
	$(BIN)/python -m build --outdir $(DIST)
	$(BIN)/twine check --strict $(DIST)/*
	$(BIN)/check-wheel-contents $(DIST)

# What users do with it, on two Pythons side by side; one thread each.
test-wheel: dist
	$(MAKE) --jobs 2 --output-sync try-oldest try-newest

try-oldest:
	bash .ci/try-wheel $(OLDEST) "$(CURDIR)/$(VENV)-wheel-oldest"

try-newest:
	bash .ci/try-wheel "$(NEWEST)" "$(CURDIR)/$(VENV)-wheel-newest"

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python docs/check_docstrings.py

format: $(VENV)/.installed-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Peers bring what tests and linters must not see: they have an environment of their own.
bench pictures:
	$(MAKE) VENV=$(VENV)-bench run-$@

run-bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/calibration_speed.py --quick
	$(BIN)/python benchmarks/league.py --short --fresh

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build

# Examples write their pictures into the folder that they are run in.
run-pictures: export MPLBACKEND = Agg
run-pictures: $(VENV)/.installed-io $(VENV)/.installed-bench
	cd docs/images && for script in $(CURDIR)/examples/*.py; do \
	    $(abspath $(BIN))/python $$script || exit 1; done
	$(BIN)/python docs/figures.py docs/images

# All kernels are compiled once and kept, before two workers each compile most of them,
# which takes half as long again where coverage is measured.
warm: $(VENV)/.warm
$(VENV)/.warm: $(VENV)/.installed-test $(wildcard $(addsuffix /*.py,$(KERNELS)))
	$(SINGLE_THREAD) $(BIN)/localexpert warm
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-* dist build docs/_build docs/generated docs/gallery *.png
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	find calibration localexpert tests examples benchmarks docs \
	    -name __pycache__ -prune -exec rm -rf {} +

# Stamps: each says that the environment holds what pyproject.toml asked for when it
# was written; nothing is installed again until that file changes.

PIP_INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --quiet

$(VENV)/.created:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
	    { echo "Python 3.11+ is needed: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	touch $@

# Python compiles what it imports when it does. That pip compiles all files of all
# libraries first takes twice as long as the rest of the installation.
$(VENV)/.installed: pyproject.toml $(VENV)/.created
	@echo "Installing into $(VENV): half a minute or more, the first time."
	$(PIP_INSTALL) --no-compile --editable .
	touch $@

$(VENV)/.tools: $(VENV)/.created
	$(PIP_INSTALL) "build>=1.2" "twine>=6.1" "check-wheel-contents>=0.6"
	touch $@

$(VENV)/.installed-%: pyproject.toml $(VENV)/.created
	@echo "Installing the extra $* into $(VENV): a minute or two, the first time."
	$(PIP_INSTALL) --editable ".[$*]"
	touch $@
