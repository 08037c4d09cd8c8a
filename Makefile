# Each target sets up what it needs in .venv, from a stock Python with the venv module.
#   make demo     run the shipped scenarios        make lint    format, lint and type checks
#   make test     run every test and doctest       make bench   measure speed
#   make lowest   run every test on the oldest dependencies that pyproject.toml allows
#   make package  build the package, and use it as a newcomer does, in a fresh environment
#   make nightly  hold the laws on thousands of generated examples, others every time
#   make agents   run the tests that drive published agents, each in an environment of its own
#   make beside   run the tests of the pytest plugin beside other plugins, in an environment of its own
#   make docs     build the documentation, in an environment of its own; a dead link is an error
#   make node     install what the tests of an agent in another language need, where npm is
#   make browser  install the browser that the tests of pages need, where apt-get can
#   make cassettes  make the shipped cassettes anew
#   make clean    remove what the targets made
# Another interpreter: make PYTHON=python3.12 VENV=.venv-3.12 test

PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
LOWEST_VENV ?= .venv-lowest
AGENTS_VENV ?= .venv-agents
BESIDE_VENV ?= .venv-beside
DOCS_VENV ?= .venv-docs
AGENTS ?= google-adk langchain openai-agents pydantic-ai python-agent-harness
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Among processes, by file: what the tests of a file share is made once. In the order of the files:
# by their tests, the longest would come last, which have the fewest. None: make SHARED= test
SHARED ?= -n 2 --dist loadfile --no-loadscope-reorder
BENCHES := $(sort $(wildcard tests/benchmarks/bench_*.py))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Hundreds of processes load the same modules: compiled once, not in each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test lint cover lowest nightly package agents beside docs node browser bench rivals cassettes clean

help:
	@sed -n 's/^#  *make/make/p' Makefile

demo: $(READY)
	@echo "Every shipped scenario, on the reference loops that it names (harness run scenarios --about):"
	@shown=$$($(BIN)/harness run scenarios) || { echo "$$shown"; exit 1; }; echo "$$shown" | tail -n 1
	@echo
	@echo "What a finding looks like: a loop written by hand, stopped while two tools run."
	@echo
	@$(BIN)/harness run scenarios/cancel/slow_tool.yaml --agent tests.subjects.hand_loop:HandLoop || test $$? = 1
	@echo
	@echo "Next: 'source $(BIN)/activate' for the command harness, and README.md for an agent of your own."

test: $(READY)
	@$(BIN)/python -m pytest -q $(SHARED)

lint: $(READY)
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary

cover: $(READY)
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

lowest: $(READY)
	@test -x $(LOWEST_VENV)/bin/pip || $(PYTHON) -m venv --clear $(LOWEST_VENV)
	@$(LOWEST_VENV)/bin/python -m pip install -qq --editable '.[dev]' $$($(BIN)/python -c \
	  'import tomllib; [print(d.replace(">=", "==")) for d in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]]')
	@$(LOWEST_VENV)/bin/python -m pytest -q $(SHARED)

# One by one among processes, since few tests take nearly all of the time.
nightly: $(READY)
	@$(BIN)/python -m pytest -q -n 2 --hypothesis-profile nightly -m "nightly or not nightly" \
	  tests/testing/test_laws.py tests/testing/test_laws_of_both.py tests/testing/test_invalid.py \
	  tests/testing/test_generated_levels.py tests/testing/test_shrinking.py tests/testing/test_ten_thousand.py

package: $(READY)
	@$(BIN)/python -m pytest -q -m "nightly or not nightly" tests/packaging

# Each in an environment of its own. What is not there is not skipped: the installation fails.
agents: $(AGENTS:%=agents-%)

agents-%: $(AGENTS_VENV)/%/.ready
	@echo "$*:"
	@HARNESS_AGENTS=required $(AGENTS_VENV)/$*/bin/python -m pytest -q -m "nightly or not nightly" \
	  tests/published/$(subst -,_,$*)

beside:
	@test -x $(BESIDE_VENV)/bin/pip || $(PYTHON) -m venv --clear $(BESIDE_VENV)
	@$(BESIDE_VENV)/bin/python -m pip install -qq --editable '.[test]' $$($(BESIDE_VENV)/bin/python -c \
	  'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["beside"])')
	@$(BESIDE_VENV)/bin/python -m pytest -q -n 2 -m "nightly or not nightly" \
	  -o asyncio_default_fixture_loop_scope=function tests/beside

.PRECIOUS: $(AGENTS_VENV)/%/.ready
$(AGENTS_VENV)/%/.ready: pyproject.toml
	@test -x $(@D)/bin/pip || $(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install -qq --editable '.[test]' $$($(@D)/bin/python -c \
	  'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["agents-$*"])')
	@touch $@

docs:
	@test -x $(DOCS_VENV)/bin/pip || $(PYTHON) -m venv --clear $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install -qq $$($(DOCS_VENV)/bin/python -c \
	  'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["docs"])')
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict
	@echo "the documentation is in build/site; every link and anchor of it is there"

# What they hold is said in cassettes/README.md; a test makes them too, and compares.
cassettes: $(READY)
	@$(BIN)/python -m tests.make_cassettes

# Without it the tests that need it are skipped, by name.
node:
	@cd tests/subjects/node && npm ci --silent --no-audit --no-fund --ignore-scripts

# The same for the tests of pages.
browser:
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }

# With the environment of the rivals where there is one, so that all are measured in one run.
bench: $(READY)
	@python=$(BIN)/python; test ! -x $(BENCH_VENV)/bin/python || python=$(BENCH_VENV)/bin/python; \
	for bench in $(BENCHES); do echo "== $$bench"; $$python $$bench || exit 1; done

# Other tools to measure beside ours, in an environment of their own.
rivals:
	@test -x $(BENCH_VENV)/bin/pip || $(PYTHON) -m venv --clear $(BENCH_VENV)
	@$(BENCH_VENV)/bin/python -m pip install -qq --editable . openai-agents pydantic-ai-slim \
	  respx anthropic google-genai \
	  detangle cancellens "simloop; python_version >= '3.12'" "simloom; python_version >= '3.12'"
	@mkdir -p $(BENCH_VENV)/node && npm install --silent --no-audit --no-fund --ignore-scripts \
	  --prefix $(BENCH_VENV)/node @copilotkit/aimock

clean:
	@rm -rf $(VENV) $(BENCH_VENV) $(LOWEST_VENV) $(AGENTS_VENV) $(BESIDE_VENV) $(DOCS_VENV) .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
	@rm -rf tests/subjects/node/node_modules
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is missing or older than 3.11; name a newer one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV) || { \
	  echo "$(PYTHON) cannot make a virtual environment; install its venv module" >&2; exit 1; }
	@echo "setting up $(VENV), once; this takes about half a minute" >&2
	@$(BIN)/python -m pip install -qq --editable '.[dev]'
	@touch $@
