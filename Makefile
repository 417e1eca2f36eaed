# The course's commands. Each first makes the virtual environment where it is missing or out of date.
#   ARGS=...     passed on:           make lab ARGS="--no-browser --port 9999"    make test ARGS="-k views"
#   PYTHON=...   which Python:        PYTHON=python3.12 make lab
#   VENV=...     which environment:   VENV=/big/venv make lab
#   WORKERS=...  tests at a time:     make test WORKERS=0    (0: in this process, one after another)
#   TORCH=...    which PyTorch:       TORCH=cpu make lab     (auto: by whether an NVIDIA driver is here; default)
#   LOCKED=1     the versions with which all tests have passed (constraints.txt):  make lab LOCKED=1
#   WHEELS=...   a folder of wheels:  make wheels WHEELS=/stick; then, with no network, make lab WHEELS=/stick

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
TORCH ?= auto
WHEELS ?=
LOCKED ?=
ARGS ?=
space := $(subst ,, )
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY := $(subst $(space),\ ,$(VENV)/ready)# the stamp of a finished set-up; holds for one place and one Python
WHERE = "$(BIN)/python" -c 'import os, sys; print(os.getcwd(), sys.version_info[:2])'
OFFLINE = $(if $(WHEELS),--no-index --find-links "$(WHEELS)")
LOCK = $(if $(LOCKED),--constraint constraints.txt)
INSTALL = "$(BIN)/python" -m pip install --disable-pip-version-check $(OFFLINE) $(LOCK)

.PHONY: help environment test-environment lab explorers book slides site read test test-all lint format benchmarks wheels constraints clean
.DELETE_ON_ERROR:

help:  ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile

lab: environment  ## open the course in JupyterLab
	@"$(BIN)/python" -m clutils lab $(ARGS)

explorers: environment  ## write the explorers and the front page into notebooks/explorers/: they need no network and no kernel
	@"$(BIN)/python" -m clutils.explorers all $(ARGS)
	@"$(BIN)/python" -m clutils.course.book.front

test: test-environment  ## run the tests
	@"$(BIN)/python" -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder $(ARGS)

test-all: test-environment  ## run the tests and the longer sweeps
	@"$(BIN)/python" -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder -m "" $(ARGS)

lint: test-environment  ## check style, format and types
	@"$(BIN)/ruff" check && "$(BIN)/ruff" format --check && "$(BIN)/mypy"

SPEED = check losses throughput
benchmarks: test-environment  ## measure again what the course says of speed; ARGS=losses for one
	@set -e; for name in $(or $(ARGS),$(SPEED)); do echo "== $$name"; "$(BIN)/python" benchmarks/$$name.py; done

book: book-environment  ## run the notebooks and build the book: build/book opens with a double click
	@"$(BIN)/python" -m clutils book $(ARGS)

slides: book-environment  ## build the slides of all notebooks
	@"$(BIN)/python" -m clutils slides $(ARGS)

site: book-environment  ## book and slides for a static host; ARGS="--base-url https://..."
	@"$(BIN)/python" -m clutils site $(ARGS)

read: book-environment  ## run the notebooks and write docs/read: the course with its results, to read without installing
	@"$(BIN)/python" -m clutils.course.book.read $(ARGS)

# what this environment has, as wheels: as many GB as PyTorch's builds take, packed
wheels: override OFFLINE :=
wheels: book-environment  ## pack all that a hall without a network needs into the folder WHEELS
	@test -n "$(WHEELS)" || { echo "name the folder, as in make wheels WHEELS=/stick" >&2; exit 1; }
	"$(BIN)/python" -m pip freeze --exclude-editable >"$(VENV)/installed.txt"
	"$(BIN)/python" .ci/install_torch.py $(TORCH) --wheels "$(WHEELS)" --constraint "$(VENV)/installed.txt"
	"$(BIN)/python" -m pip wheel --disable-pip-version-check --no-build-isolation --wheel-dir "$(WHEELS)" \
	--find-links "$(WHEELS)" --constraint "$(VENV)/installed.txt" \
	'$(shell sed -n 's/^requires = \["\([^"]*\)"\].*/\1/p' pyproject.toml)' '.[book]'

# from the environment in which all tests have just passed
constraints: test-environment  ## write its versions into constraints.txt, for LOCKED=1
	@"$(BIN)/python" .ci/constraints.py >constraints.new && mv constraints.new constraints.txt && wc -l constraints.txt

clean:  ## remove the environment
	@test ! -e "$(VENV)" || test -e "$(VENV)/pyvenv.cfg" && rm -rf "$(VENV)"

environment: $(READY)

test-environment: $(READY)-test

book-environment: $(READY)-book

ifneq ($(shell cat "$(VENV)/ready" 2>/dev/null),$(shell $(WHERE) 2>/dev/null))
.PHONY: $(READY)
endif

# setuptools first: an update that needs nothing new then needs no network either
$(READY): requirements.txt pyproject.toml
	@"$(BIN)/python" -m pip --version >/dev/null 2>&1 || { set -e; \
	"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "clutils needs Python 3.11 or \
	newer, but $(PYTHON) is $$("$(PYTHON)" -V 2>&1): name another, as in PYTHON=python3.12 make lab" >&2; exit 1; }; \
	test -e "$(VENV)/pyvenv.cfg" || test -z "$$(ls -A "$(VENV)" 2>/dev/null)" || { echo "$(VENV) is there and is no \
	virtual environment: name another place, as in VENV=.venv2 make lab" >&2; exit 1; }; \
	echo "Setting up $(VENV): a few minutes, once"; "$(PYTHON)" -m venv --clear "$(VENV)"; }
	@"$(BIN)/python" .ci/forget_halves.py
	$(INSTALL) '$(shell sed -n 's/^requires = \["\([^"]*\)"\].*/\1/p' pyproject.toml)'
	"$(BIN)/python" .ci/install_torch.py $(TORCH) $(OFFLINE) $(LOCK)
	$(INSTALL) --no-build-isolation --editable '.[course]'
	@$(WHERE) >"$@"

$(READY)-test $(READY)-book: $(READY)
	@"$(BIN)/python" .ci/forget_halves.py
	$(INSTALL) --no-build-isolation --editable '.[$(if $(filter %-test,$@),test,book)]'
	@touch "$@"
