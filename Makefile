# Two commands for a newcomer: `make phase` and `make test`. All set-up is done by them.
#
#   PYTHON   the Python to build the virtual environment from (3.11 or newer)
#   VENV     where the virtual environment lies
#   TORCH    what to install as torch; another build, say TORCH="torch --index-url URL", or none
#            where torch is there already: TORCH=
#   LOCK     a lock file with hashes to install first (requirements/ci.txt)
#   PRESET   the preset of `make phase`; ARGS goes to the command as it is

PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
PRESET ?= laptop
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help phase test test-browser bench lint types contracts format lock clean

help:
	@echo "make phase         set up, train the $(PRESET) phase diagram, write the report"
	@echo "make test          set up, run all tests that need nothing beyond pip"
	@echo "make test-browser  the tests that drive the report in Chromium"
	@echo "make bench         the engine beside other ways to train the same models"
	@echo "make lint types contracts   ruff, pyright, import-linter"
	@echo "make lock          renew requirements/ci.txt"

phase: $(VENV)/lab.done
	$(BIN)/initrate phase --preset $(PRESET) $(ARGS)

test: $(VENV)/dev.done
	$(BIN)/python -m pytest $(ARGS)

test-browser: $(VENV)/dev.done
	$(BIN)/python -m pytest -m browser tests/browser $(ARGS)

bench: $(VENV)/dev.done
	$(BIN)/python -m benchmarks.engine $(ARGS)

lint: $(VENV)/dev.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.done
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

contracts: $(VENV)/dev.done
	$(BIN)/lint-imports

format: $(VENV)/dev.done
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# To be run where TORCH is a CPU build, else the lock takes in what a CUDA build needs.
lock: $(VENV)/dev.done
	$(PIP) install --quiet pip-tools
	$(BIN)/pip-compile --quiet --upgrade --upgrade-package $(TORCH) --extra dev --strip-extras \
	    --generate-hashes --unsafe-package torch --unsafe-package initrate --no-annotate \
	    --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	    --output-file $(VENV)/ci.txt pyproject.toml
	grep -v '^#' $(VENV)/ci.txt > requirements/ci.txt

clean:
	rm -rf $(VENV)

# A stamp file says that the environment holds what pyproject.toml asks for.
$(VENV)/lab.done: pyproject.toml $(VENV)/venv.done
	@echo "installing torch and the laboratory (about 1 GB, some minutes) …"
	$(if $(TORCH),$(PIP) install --quiet $(TORCH))
	$(PIP) install --quiet --editable ".[lab]"
	@touch $@

$(VENV)/dev.done: pyproject.toml $(LOCK) $(VENV)/venv.done
	@echo "installing torch, the laboratory and the tests' tools (about 1 GB, some minutes) …"
	$(if $(TORCH),$(PIP) install --quiet $(TORCH))
	$(if $(LOCK),$(PIP) install --quiet --require-hashes --requirement $(LOCK))
	$(PIP) install --quiet $(if $(LOCK),--no-build-isolation) --editable ".[dev]"
	@touch $@ $(VENV)/lab.done

$(VENV)/venv.done:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "$(PYTHON) is older than 3.11: name a newer one, as in: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@
