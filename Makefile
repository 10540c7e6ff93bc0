# Every target makes its own virtual environment: nothing but python3 (3.11 or newer) needs to be there.
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/stamp
PYTEST := $(PY) -m pytest -q -n auto --dist worksteal
# The folders are checked as the package safepoint, through a link that .ci/venv makes.
PACKAGES := -m safepoint -m safepoint.__main__ -p safepoint.domain -p safepoint.application -p safepoint.ports -p safepoint.adapters

# Tests start the program hundreds of times: compiled modules are kept between starts, whatever the machine prefers.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv demo docs test crash crash-soak damage-soak races-soak explore bench bench-quick check static format

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

venv: $(STAMP) ## make or refresh the virtual environment

$(STAMP): pyproject.toml setup.py .ci/venv
	@PYTHON="$(PYTHON)" .ci/venv $(VENV)

demo: $(STAMP) ## watch an agent being killed in the middle of a tool call, and continued
	@$(VENV)/bin/safepoint demo

test: $(STAMP) ## run every test except the soak
	@$(PYTEST)

crash: $(STAMP) ## run the crash tests alone
	@$(PYTEST) tests/crash

crash-soak: $(STAMP) ## kill at 2,000 random instants
	@$(PYTEST) -m soak tests --ignore=tests/exploration --deselect=tests/crash/test_races.py

damage-soak: $(STAMP) ## flip every byte of a store; look 100,000 times beside writers
	@$(PYTEST) -m soak tests/adapters/sqlite

races-soak: $(STAMP) ## let two to four processes race for a session 800 times more
	@$(PYTEST) -m soak tests/crash/test_races.py

explore: $(STAMP) ## explore every order of commits and kills of the large scenarios, and print how many states; hours
	@$(PY) -m pytest -q -s -n 0 -m "soak or not soak" tests/exploration

bench: $(STAMP) ## measure the bars of the specification on this machine; about a quarter of an hour (BENCH_SCALE=0.1: less)
	@$(PY) -m bench

bench-quick: $(STAMP) ## the same at a hundredth of the sizes: does it work, not how fast is it
	@$(PY) -m bench --scale 0.01

docs: $(STAMP) ## build the documentation site into build/site; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

check: static test ## everything that a commit must pass

static: $(STAMP) ## format, lint, strict types, import contracts
	@$(VENV)/bin/ruff format --quiet --check .
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/mypy --no-error-summary $(PACKAGES)
	@$(VENV)/bin/mypy --no-error-summary tests examples
	@$(VENV)/bin/mypy --no-error-summary -p bench
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(VENV)/bin/pyright > $(VENV)/pyright.log || { cat $(VENV)/pyright.log; exit 1; }
	@$(VENV)/bin/lint-imports --no-cache > $(VENV)/import-contracts.log || { cat $(VENV)/import-contracts.log; exit 1; }

format: $(STAMP) ## rewrite the files in the one format
	@$(VENV)/bin/ruff format --quiet .
	@$(VENV)/bin/ruff check --quiet --fix --exit-zero .
