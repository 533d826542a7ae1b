# make demo   train a small BERT in the background and open the app on it
# make test   everything the tests need, then the whole suite

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
# Two torch processes on few cores must not spin against each other.
export OMP_WAIT_POLICY = PASSIVE

.PHONY: demo test install install-test chromium clean

demo: install
	@$(BIN)/bertscope demo --port $(PORT)

# Two tests at a time, each on one thread.
test: install-test chromium
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

install: $(VENV)/installed

install-test: $(VENV)/installed-test

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "BertScope needs Python 3.11 or newer: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(BIN)/python requirements.txt pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed requirements-test.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-test.txt
	@touch $@

# The browser tests drive Debian's Chromium.
chromium:
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium; } \
	  || { sudo apt-get update -qq && sudo apt-get install -y -qq chromium; }

clean:
	rm -rf $(VENV) build *.egg-info test-results
