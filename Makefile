# `make demo` and `make test` are all a fresh machine needs; both work offline once the packages are installed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check fmt clean bench-extraction bench-replay bench-pairs bench-predict
demo: $(VENV)/.installed
	@$(BIN)/osmia-memory demo

test: check
	@$(BIN)/pytest

check: $(VENV)/.installed
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

# Offline: plays the recorded replies about the demo runs.
bench-extraction: $(VENV)/.installed
	@$(BIN)/python benchmarks/extraction.py

# On the demo runs with a small judge of our own; with JUDGE=script and ARCHIVES="..." as docs/benchmarks.md says.
bench-replay: $(VENV)/.installed
	@$(BIN)/python -m benchmarks.replay $(if $(JUDGE),--judge $(JUDGE)) $(ARCHIVES)

fmt: $(VENV)/.installed
	@$(BIN)/ruff check -q --fix . ; $(BIN)/ruff format -q .

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m compileall -q src
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

bench-pairs: $(VENV)/.installed
	@$(BIN)/python benchmarks/measure_pairs.py --write

# FILES="engine=outcomes.json ..."
bench-predict: $(VENV)/.installed
	@$(BIN)/python benchmarks/predict.py $(FILES)
