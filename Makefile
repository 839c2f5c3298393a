# One command per intention. Paths are relative and quoted: a checkout may lie in a folder with spaces.
# Needs GNU make 4, Python >= 3.11 with venv and pip, and a package registry; nothing else.

MAKEFLAGS += --no-print-directory
SHELL := /bin/sh
.DEFAULT_GOAL := help

PYTHON ?= python3
PORT ?= 8440
DATA_DIR ?= .catchment
ARGS ?=

# Tests start a hundred processes. Where byte code may not be kept, each of them compiles the product again.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
STAMP := .venv/.installed
PYTEST := $(BIN)/python -m pytest -p tests.fixtures.no_skips

.PHONY: help
help: ## print every target with its purpose
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name purpose; do \
		printf '  %-16s %s\n' "$$name" "$$purpose"; done

.PHONY: setup
setup: $(STAMP) ## install into .venv what up and test share; again only when the dependencies changed

$(STAMP): pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Catchment needs Python 3.11 or newer; say where it is with PYTHON=")'
	"$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile -c constraints.txt -e ".[dev]"
	@# Byte code on every core. The Graph client of the tests has 17,000 modules, of which a few are ever loaded.
	@$(BIN)/python -m compileall -qq -j 0 -x '/msgraph/' .venv/lib || true
	@touch $(STAMP)

.PHONY: up
up: setup ## start everything with demo data and print a login link (PORT=8440 DATA_DIR=.catchment)
	@exec $(BIN)/catchment up --demo --port "$(PORT)" --data-dir "$(DATA_DIR)"

.PHONY: browser
browser: ## find Chromium for the console's tests, or install Debian's (as root)
	@command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
		{ echo "The console is tested in a real browser: install Chromium (e.g. apt-get install chromium) and run make again."; exit 1; }

.PHONY: test
test: setup browser lint types ## lint, types, import contracts, then every test; a skipped test is a failure
	@# The longest files come first in the order of collection; short ones fill the end.
	$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

.PHONY: acceptance
acceptance: setup browser ## only the acceptance tests, with their figures
	$(PYTEST) tests/acceptance -s $(ARGS)

.PHONY: acceptance-full
acceptance-full: setup browser ## the acceptance tests at full size: minutes, and figures worth quoting
	CATCHMENT_ACCEPTANCE=full $(PYTEST) tests/acceptance -s $(ARGS)

.PHONY: screenshots
screenshots: setup browser ## take the console's pictures for the README: each page in light, dark and phone width
	$(BIN)/python -m tests.browser.screenshots wiki/pictures/console

.PHONY: lint
lint: setup ## ruff and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

.PHONY: types
types: setup ## basedpyright, strict on our packages
	$(BIN)/basedpyright

.PHONY: format
format: setup ## let ruff fix and format what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: docs
docs: setup ## write the generated tables of wiki/ again
	$(BIN)/python wiki/generate.py

.PHONY: bench
bench: setup ## run a benchmark, e.g. ARGS=ingest
	$(BIN)/catchment bench $(ARGS)

.PHONY: constraints
constraints: setup ## pin in constraints.txt exactly what .venv holds now
	@{ echo '# Exact versions of everything catchment[dev] installs; written by `make constraints`. Names no index.'; \
		$(BIN)/python -m pip freeze --exclude-editable | grep -E '^[A-Za-z0-9._-]+==[^ ]+$$'; } > constraints.tmp
	@mv constraints.tmp constraints.txt
	@touch $(STAMP)

.PHONY: clean
clean: ## remove .venv, caches and builds; data in DATA_DIR stays
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
