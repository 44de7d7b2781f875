# Needs Python 3.11 or newer and make; every target sets up the rest inside the tree, once per change of pyproject.toml.

PYTHONS := python3 python3.14 python3.13 python3.12 python3.11 python
USABLE  := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON  ?= $(shell for p in $(PYTHONS); do $$p -c '$(USABLE)' 2>/dev/null && { echo $$p; break; }; done)

VENV   := .venv
PARITY := .venv-parity
GPU    := .venv-gpu
OLDEST := .venv-triton36
RUN    := $(VENV)/bin/python -m
PYTEST := pytest -n auto --maxprocesses 8 --dist loadgroup

# Repeatable by default; `make test HYPOTHESIS_PROFILE=dev` draws new examples each time.
HYPOTHESIS_PROFILE ?= ci
export HYPOTHESIS_PROFILE

.DEFAULT_GOAL := help
.PHONY: help demo docs bench bench-quick check test test-parity test-parity-slow test-slow test-triton36 gpu format hooks clean

help:  ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.with-demo  ## Train on handwritten digits three ways and compare them
	@$(VENV)/bin/python examples/digits.py

bench: $(PARITY)/.with-parity $(PARITY)/.with-bench  ## Measure what gradients cost beside jax, torch and autograd (installs them)
	@$(PARITY)/bin/python -m benchmarks

bench-quick: $(PARITY)/.with-parity $(PARITY)/.with-bench  ## The same in under a minute, without what is slow
	@$(PARITY)/bin/python -m benchmarks --quick

check: $(VENV)/.with-dev  ## Format, lint, types, import floors and the fast tests (under a minute)
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	HYPOTHESIS_PROFILE=fast $(RUN) $(PYTEST) -m "not heavy and not slow and not parity"

test: $(VENV)/.with-test  ## All tests but the slow and the parity ones
	$(RUN) $(PYTEST)

test-parity: $(PARITY)/.with-parity  ## Compare with torch, jax and autograd (installs them, a large download)
	$(PARITY)/bin/python -m $(PYTEST) -m "parity and not slow"

test-parity-slow: $(PARITY)/.with-parity  ## Compare with torch on thousands of random programs, new ones each time
	HYPOTHESIS_PROFILE=slow $(PARITY)/bin/python -m $(PYTEST) -m "parity and slow"

test-slow: $(VENV)/.with-test  ## Long random searches, new ones each time
	HYPOTHESIS_PROFILE=slow $(RUN) $(PYTEST) -m "not parity"

test-triton36: $(OLDEST)/.with-triton36  ## The kernels' fast tests on the oldest Triton that is supported
	$(OLDEST)/bin/python -m $(PYTEST) -m "not heavy and not slow and not parity" tests/triton tests/triton_ops tests/kernels

# The extra that fits the driver: cuda12 or cuda13.
CUDA ?= cuda13
gpu: $(GPU)/.with-test $(GPU)/.with-$(CUDA)  ## On a machine with a GPU: kernels beside the twin, then the roofline
	$(GPU)/bin/python -m tests.triton.gpu
	$(GPU)/bin/python -m tests.gpu.card

docs: $(VENV)/.with-docs  ## Build the site into out/site; a warning is an error
	$(RUN) sphinx -q -W --keep-going -b html docs out/site
	@echo "open out/site/index.html"

format: $(VENV)/.with-dev  ## Lay out the code and mend what the linter can
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

hooks: $(VENV)/.with-dev  ## Run format, lint and types before every commit
	$(RUN) pre_commit install

clean:  ## Remove everything made here, the virtual environments included
	rm -rf $(VENV) $(PARITY) $(GPU) $(OLDEST) build dist out *.egg-info .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A virtual environment, and the extras in it. The stamps come last, so that an interrupted install is done again.
.PRECIOUS: %/.made

%/.made:
	@test -n "$(PYTHON)" || { echo "fgrad needs Python 3.11 or newer with venv and pip; found none among: $(PYTHONS)." \
		"Install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv --clear $*
	@touch $@

define with
$(1)/.with-%: pyproject.toml | $(1)/.made
	@echo "installing fgrad[$$*] into $(1)"
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[$$*]"
	@touch $$@
endef
$(eval $(call with,$(VENV)))
$(eval $(call with,$(PARITY)))
$(eval $(call with,$(GPU)))
$(eval $(call with,$(OLDEST)))

$(OLDEST)/.with-triton36: $(OLDEST)/.with-test
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check "triton==3.6.0"
	@touch $@
