# The course's commands. Each first makes the virtual environment where it is missing or out of date.
#   ARGS=...     passed on:           make lab ARGS="--no-browser --port 9999"    make test ARGS="-k views"
#   PYTHON=...   which Python:        PYTHON=python3.12 make lab
#   VENV=...     which environment:   VENV=/big/venv make lab

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
SET_UP = @command -v "$(PYTHON)" >/dev/null || { echo "clutils set-up: no $(PYTHON) here: install Python 3.11 or newer" >&2; exit 1; }; \
	"$(PYTHON)" .ci/set_up.py "$(VENV)"

.PHONY: help environment test-environment lab test lint format benchmarks clean

help:  ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' Makefile

lab: environment  ## open the course in JupyterLab
	@"$(BIN)/python" -m clutils lab $(ARGS)

test: test-environment  ## run the tests
	@"$(BIN)/python" -m pytest $(ARGS)

lint: test-environment  ## check style and format
	@"$(BIN)/ruff" check && "$(BIN)/ruff" format --check

benchmarks: test-environment  ## measure again what the course says of speed; ARGS=views for one
	@set -e; for file in benchmarks/$(or $(ARGS),*).py; do echo "== $$file"; "$(BIN)/python" "$$file"; done

clean:  ## remove the environment
	@test ! -e "$(VENV)" || test -e "$(VENV)/pyvenv.cfg" && rm -rf "$(VENV)"

environment:
	$(SET_UP)

test-environment:
	$(SET_UP) test
