# make report    set up and write the sample report
# make test      set up and run the tests, but for the slow ones
# make test-slow the slow tests, a tenth of the cases of those that have many
# make test-all  every test with every case
# make check     formatting, types, architecture
# make ci        everything that CI runs
# make test-mcp  the tests with a client of the Model Context Protocol, which needs the extra mcp
# make test-oldest, test-newest: the tests on both ends of what is supported
# make test-frameworks  the callbacks in trainings with the real Lightning, Hugging Face, Keras and Ray Tune, in an environment of its own
# make dist      what is uploaded to PyPI, built and checked in an environment of its own
# make test-dist the wheel that make dist built makes a report, far from here and with what it asks for alone
# make samples   rebuild data/samples and the example report
# make lab       JupyterLab on the notebooks
# make docs      make docs-texts, and the site from them in docs/_build/html, with Sphinx
# make docs-texts  regenerate docs/rules.md, docs/remedies.md and the schemas from the code
# make docs-links  follow the links of the site that lead elsewhere, which needs a network
# make schemas   regenerate gpudiag/schemas/*.json from the classes of the documents
# make gallery   every figure from the samples: docs/gallery.md
# make accuracy  the tables in benchmarks/accuracy.md and rules.md
# make bench     print timings beside those of peers, as in benchmarks/README.md
# make bench-check  small timings as ratios to peers: fails where one is 1.5 times what benchmarks/check.csv says
# make mutants   how many planted faults the tests notice (by hand: an hour)
# make fuzz      changed files through every reader and the diagnosis, 10 minutes (make fuzz MINUTES=60)
# make timeline-assets  what the timeline of a report is drawn with, from npm at a pinned version
# make clean     remove environments, builds and caches

ifndef PYTHON  # looked for once, not each time it is named
PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' && echo $$p && break; done 2>/dev/null)
endif
CASE ?= hpo-aggressive-pruning
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
BIN := $(VENV)/bin
READY := $(VENV)/ready
EXTRAS := lab,test


unexport PYTHONDONTWRITEBYTECODE  # every process of the tests would compile all of gpudiag again

.PHONY: report test test-slow test-all test-mcp test-oldest test-newest test-frameworks check dist test-dist ci lab samples docs docs-texts docs-links schemas gallery accuracy bench bench-check mutants fuzz clean timeline-assets
.DELETE_ON_ERROR:
.DEFAULT_GOAL := report

$(READY): pyproject.toml $(CONSTRAINTS)
	@test -n "$(PYTHON)" || { echo "gpudiag needs Python 3.11 or newer on PATH."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (once) ..."
	@PIP_CONSTRAINT= $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $(CONSTRAINTS:%=-c %) -e '.[$(EXTRAS)]'
	@touch $@

report: $(READY)
	@$(BIN)/gpudiag report data/samples/$(CASE) -o reports/$(CASE) --strict

# Two workers on two cores: threads of theirs would wait for cores.
test test-slow test-all test-mcp: export OPENBLAS_NUM_THREADS = 1
test test-slow test-all test-mcp: export POLARS_MAX_THREADS = 1

SELECT ?= -m "not slow"
WORKERS ?= 2

test: $(READY)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --durations=20 $(SELECT) $(ARGS)

check: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/test_architecture.py

lab: $(READY)
	@$(BIN)/gpudiag lab

samples: $(READY)
	@$(BIN)/python -m data.make_samples data/samples
	@$(BIN)/gpudiag report data/samples/$(CASE) -o reports/examples/$(CASE)

docs-texts: $(READY) schemas
	@$(BIN)/gpudiag rules list --format md > docs/rules.md
	@$(BIN)/python -m gpudiag.report.remedies > docs/remedies.md

SPHINX = $(BIN)/python -m sphinx -q -W --keep-going -d docs/_build/doctrees

$(VENV)/docs-ready: $(READY)
	@$(BIN)/python -c "import myst_nb, pydata_sphinx_theme, sphinx_copybutton, sphinx_design" 2>/dev/null || \
		PIP_CONSTRAINT= $(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS:%=-c %) -e '.[docs]'
	@touch $@

docs: docs-texts $(VENV)/docs-ready docs/_build/extra/examples/index.html
	@rm -rf docs/_build/html
	@$(SPHINX) -b html docs docs/_build/html
	@$(BIN)/python docs/_site/links.py docs/_build/html

EXAMPLES := hpo-aggressive-pruning starved-input-pipeline/before memory-exhaustion idle-second-gpu/baseline slow-rank \
	hung-collective tiny-batch-laptop healthy real-h100/six-workers

docs/_build/extra/examples/index.html: $(shell find gpudiag data/samples -type f -not -name '*.pyc' -not -path '*/schemas/*')
	@$(BIN)/gpudiag report $(EXAMPLES:%=data/samples/%) -o $(@D) --no-notebook --jobs 2 --strict >/dev/null

docs-links: $(VENV)/docs-ready
	@mkdir -p docs/_build/extra
	@$(SPHINX) -b linkcheck docs docs/_build/linkcheck

schemas: $(READY)
	@$(BIN)/python -m gpudiag.schemas

gallery: $(READY)
	@$(BIN)/python docs/gallery.py

test-slow: SELECT = -m slow --tenth
test-slow: WORKERS = 3  # of three workers one mostly waits: for a browser, a server or a command
test-slow: test

test-all: $(READY)
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal $(ARGS)

$(VENV)/mcp-ready: EXTRAS := lab,test,mcp
$(VENV)/mcp-ready: $(READY)  # which brings it along where it is made for this
	@$(BIN)/python -c "import mcp" 2>/dev/null || \
		PIP_CONSTRAINT= $(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS:%=-c %) -e '.[mcp]'
	@touch $@

test-mcp: $(VENV)/mcp-ready
	@$(BIN)/python -m pytest -q tests/agents/test_server.py $(ARGS)

test-oldest:
	@$(MAKE) --no-print-directory test VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt PYTHON=python3.11

test-newest:
	@$(MAKE) --no-print-directory test VENV=.venv-newest CONSTRAINTS=

FRAMEWORKS := .venv-frameworks/bin
test-frameworks:
	@test -x $(FRAMEWORKS)/python || $(PYTHON) -m venv .venv-frameworks
	@PIP_CONSTRAINT= $(FRAMEWORKS)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS:%=-c %) -e . pytest hypothesis torch lightning transformers accelerate keras 'ray[tune]'
	@$(FRAMEWORKS)/python -m pytest -q tests/integrations $(ARGS)

DIST := .venv-dist/bin
dist:
	@test -x $(DIST)/python || $(PYTHON) -m venv .venv-dist
	@PIP_CONSTRAINT= $(DIST)/python -m pip install --quiet --disable-pip-version-check build twine check-wheel-contents
	@rm -rf dist
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) PIP_CONSTRAINT= $(DIST)/python -m build  # the wheel is built from the sdist
	@$(DIST)/twine check --strict dist/*
	@$(DIST)/check-wheel-contents dist/*.whl

INSTALLED := $(CURDIR)/.venv-dist/installed
test-dist:
	@rm -rf $(INSTALLED)
	@$(PYTHON) -m venv $(INSTALLED)
	@PIP_CONSTRAINT= $(INSTALLED)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check dist/*.whl
	@cd "$$(mktemp -d)" && $(INSTALLED)/bin/gpudiag demo --case healthy -o run && $(INSTALLED)/bin/gpudiag report run -o out --strict

accuracy: $(READY)
	@$(BIN)/python benchmarks/accuracy_ledger.py
	@$(BIN)/python benchmarks/accuracy_attribution.py
	@$(BIN)/python benchmarks/accuracy_killed.py
	@$(BIN)/python benchmarks/accuracy_faults.py
	@$(BIN)/python benchmarks/accuracy_parallelism.py
	@$(BIN)/python benchmarks/accuracy_gains.py
	@$(BIN)/python benchmarks/accuracy_causes.py
	@$(BIN)/python benchmarks/accuracy_memory.py
	@$(BIN)/python benchmarks/accuracy_replay.py
	@$(BIN)/python benchmarks/accuracy_replay_hours.py
	@$(BIN)/python benchmarks/accuracy_comparison.py
	@$(BIN)/python benchmarks/accuracy_few_items.py
	@$(BIN)/python benchmarks/accuracy_failures.py
	@$(BIN)/python benchmarks/accuracy_gpu.py
	@$(BIN)/python benchmarks/rules.py

bench: $(READY)
	@$(BIN)/python benchmarks/read_telemetry.py
	@$(BIN)/python benchmarks/read_trials.py
	@$(BIN)/python benchmarks/record.py
	@$(BIN)/python benchmarks/inspect_folder.py
	@$(BIN)/python benchmarks/ledger_speed.py

bench-check: $(READY)
	@$(BIN)/python benchmarks/check.py $(ARGS)

mutants: $(READY)
	@PIP_CONSTRAINT= $(BIN)/python -m pip install --quiet --disable-pip-version-check 'cosmic-ray>=8.7'
	@$(BIN)/python benchmarks/mutants.py $(ARGS)

MINUTES ?= 10
fuzz: $(READY)
	@PYTHONPATH=. nice $(BIN)/python tests/fuzzing --minutes $(MINUTES) $(ARGS)

timeline-assets:
	@npm ci --prefix assets/timeline --ignore-scripts --no-audit --no-fund --silent
	@cp assets/timeline/node_modules/uplot/dist/uPlot.iife.min.js assets/timeline/node_modules/uplot/dist/uPlot.min.css gpudiag/report/timeline/assets/
	@cp assets/timeline/node_modules/uplot/LICENSE gpudiag/report/timeline/assets/uPlot.LICENSE

ci:
	@bash .ci/run

clean:
	rm -rf .venv .venv-oldest .venv-newest .venv-frameworks .venv-dist build dist docs/_build .pytest_cache .mypy_cache .ruff_cache
