# make demo   measure three releases, compare the oldest with the newest, build the trend site (10 minutes)
# make test   run the tests, with real ale-py, torch and asv
# make lint   style and types
# make site   build the trend site of the committed results and serve it
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The stack that the tests run on.
STACK := ale-py-0.12.1

DEMO_CONFIG := --config asv-quick.conf.json
DEMO_RELEASES := ale-py-0.11.1 ale-py-0.11.2 ale-py-0.12.1
# The reference workload's two loops at the env counts of the quick protocol.
DEMO_BENCH := "DqnTraining.track_env_steps_per_second\('(step|send_recv)', (1|8)\)"

.PHONY: demo test lint site clean

demo: $(VENV)/.package
	$(BIN)/asv run $(DEMO_CONFIG) "--no-walk $(DEMO_RELEASES)" --bench $(DEMO_BENCH)
	$(BIN)/asv compare $(DEMO_CONFIG) ale-py-0.11.1 ale-py-0.12.1
	$(BIN)/asv publish $(DEMO_CONFIG)
	@echo
	@echo "The trend site is in .asv/quick/html. To open it:  $(BIN)/asv preview $(DEMO_CONFIG) --browser"
	@echo "The full history:  $(BIN)/asv run ale-py   then   $(BIN)/asv compare ale-py-0.11.2 ale-py-0.12.1"

test: $(VENV)/.stack
	$(BIN)/python -m pytest

lint: $(VENV)/.stack
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

site: $(VENV)/.package
	$(BIN)/asv publish
	$(BIN)/asv preview --browser

clean:
	rm -rf $(VENV) .asv

$(VENV)/.package: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or newer is needed; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || \
		{ echo "Python's venv module is missing; on Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(VENV)/.stack: $(VENV)/.package releases.toml
	$(BIN)/ale-velocity timeline stack $(STACK) > $(VENV)/stack.txt
	$(BIN)/python -m pip install --quiet --editable '.[test]' --requirement $(VENV)/stack.txt
	touch $@
