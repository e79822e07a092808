# Two commands for a newcomer: `make demo` and `make test`. Everything lives in .venv; nothing is installed elsewhere.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Python compiles what it loads, once; most of what is installed here is never loaded.
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Tests start hundreds of interpreters: none should compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test bench check lint types test-types clean
help: ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "metasched needs Python 3.11 or newer; $(PYTHON) is older (set PYTHON=...)" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "could not create a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 2; }

$(VENV)/.installed: pyproject.toml | $(BIN)/pip
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/pip
	$(PIP) -e '.[test]'
	@touch $(VENV)/.installed $@

demo: $(VENV)/.installed ## install into .venv and run the main workflow on this host, in less than two minutes
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed-test ## install into .venv and run all quick tests; ORDER=reversed, or a number that shuffles them
	$(BIN)/python -m pytest -n auto $(if $(ORDER),--order $(ORDER))

bench: $(VENV)/.installed ## speed of searching, learning and predicting, compared with peers and limits
	$(BIN)/python -m benchmarks.search

check: lint types test-types ## lint and type-check; with -j2 both kinds of types at once
lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
types: $(VENV)/.installed-test
	$(BIN)/mypy
test-types: $(VENV)/.installed-test
	$(BIN)/mypy --config-file tests/mypy.toml

clean: ## remove the environment and everything the commands made
	rm -rf $(VENV) api-docs demo-output build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

forecast-bench: $(VENV)/.installed-test ## judge the forecasters on real traces: DATA=folder with host-load/ and network/
	$(PIP) -e '.[peers]'
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.forecast --data $(DATA) --peers
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.forecast_speed
.PHONY: forecast-bench man packages
packages: ## wheels, source archives, Debian packages and an RPM in dist/, each installed and tried in a clean environment
	$(PYTHON) -m tests.packages --keep dist
	$(PYTHON) -m tests.services dist
man: $(VENV)/.installed ## man pages of all verbs, from their help: build/man/
	$(BIN)/python -m metasched.cli.manual build/man
.PHONY: queueing-bench
queueing-bench: $(VENV)/.installed ## speed of the queueing solvers compared with octave-queueing
	$(BIN)/python benchmarks/queueing.py
.PHONY: cloud-bench
cloud-bench: $(VENV)/.installed ## judge the cloud predictor on recorded simulated runs, compared with the baseline
	$(BIN)/python -m benchmarks.cloud
.PHONY: several-models
several-models: $(VENV)/.installed ## the published claim that several models beat one, on the committed campaigns
	$(BIN)/python -m benchmarks.several_models
.PHONY: spmd-bench
spmd-bench: $(VENV)/.installed-test ## judge the SPMD models: the paper's tables, noisy fits, a simulation
	$(BIN)/python -m benchmarks.spmd
.PHONY: testbed
testbed: $(VENV)/.installed ## install SimGrid (as root) and make every testbed campaign again
	@if [ ! -f /usr/include/smpi/mpi.h ]; then \
	  [ "$$(id -u)" = 0 ] || { echo "SimGrid is not installed; as root: apt-get install libsimgrid-dev g++" >&2; exit 2; }; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends libsimgrid-dev g++; \
	fi
	$(BIN)/python -m benchmarks.testbed tables
	$(BIN)/python -m benchmarks.testbed tables --judged
	$(BIN)/python -m benchmarks.testbed other-programs
	$(BIN)/python -m benchmarks.testbed other-programs --judged
.PHONY: tables
tables: $(VENV)/.installed ## the paper's tables on the committed campaigns, compared with its figures: docs/results.md
	$(BIN)/python -m benchmarks.tables

.PHONY: learning-curve
learning-curve: $(VENV)/.installed ## accuracy of models from few runs, compared with peers: docs/learning-curve.md
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.learning_curve

.PHONY: next-runs
next-runs: $(VENV)/.installed ## what to run next: planned, at random and on a grid, on the judged campaigns
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.next_runs

# Without RUNLEVEL the packages would start servers of their own. Where there are none the tests say so and skip.
SERVERS := slurmctld slurmd slurmdbd mariadb-server slurm-client munge lua5.1 lua-socket lua-cjson postgresql systemd prometheus prometheus-node-exporter \
  gridengine-master gridengine-exec gridengine-client iproute2 openmpi-bin libopenmpi-dev mpich libmpich-dev \
  nordugrid-arc-arex nordugrid-arc-client nordugrid-arc-plugins-arcrest nordugrid-arc-plugins-python \
  oar-server oar-server-pgsql oar-user oar-user-pgsql oar-node rpm
.PHONY: servers
servers:
	@if [ "$$(id -u)" = 0 ] && ! dpkg-query -W $(SERVERS) >/dev/null 2>&1; then \
	  export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends $(SERVERS) >/dev/null; \
	fi || echo "not all of $(SERVERS) can be installed" >&2

$(VENV)/.installed-system: pyproject.toml | $(BIN)/pip
	$(PIP) -e '.[test,postgresql]'
	@touch $(VENV)/.installed $(VENV)/.installed-test $@

.PHONY: system-test
system-test: servers $(VENV)/.installed-system ## run the tests that start real servers (Slurm, Grid Engine, ARC, OAR, PostgreSQL, Prometheus), as root
	$(BIN)/python -m pytest -m system -s -o cache_dir=build/cache-system tests/system
.PHONY: placement-bench
placement-bench: $(VENV)/.installed ## placement compared with its peers: regret, speed at scale, herds, a stream of jobs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.placement

.PHONY: queueing-accuracy contention-bench
queueing-accuracy: $(VENV)/.installed ## errors of the approximate queueing solvers
	$(BIN)/python benchmarks/queueing_accuracy.py

contention-bench: $(VENV)/.installed ## errors of the contention estimate on co-scheduled runs
	$(BIN)/python -m benchmarks.contention

.PHONY: elsewhere-bench
elsewhere-bench: $(VENV)/.installed ## the value of runs on other platforms where there are few runs, or none
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.elsewhere $(if $(DATA),--data $(DATA))

.PHONY: trust-bench
trust-bench: $(VENV)/.installed ## the effect of hostile users and drifts on what is learned, compared with the detectors of river
	$(PIP) -e '.[drift]'
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.trust

.PHONY: load-test
load-test: $(VENV)/.installed ## the daemon under load: 300 placements and 5,000 load samples a second; MINUTES=10 for long
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.load --minutes $(or $(MINUTES),1)

.PHONY: dashboard-bench
dashboard-bench: $(VENV)/.installed-test ## time to make the dashboard's page for 1,000 nodes and 20 applications
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.dashboard

.PHONY: update-docs api-docs mutation
update-docs: $(VENV)/.installed-test ## renew the outputs shown in README.md and docs/; SLOW=--slow for those that take minutes
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.update_docs $(SLOW)

api-docs: $(VENV)/.installed ## the reference of all public names, from their docstrings: api-docs/
	$(PIP) -e '.[docs]'
	$(BIN)/python -m pdoc --docformat numpy -o api-docs metasched candidate_functions monitors

mutation: $(VENV)/.installed-test ## which inserted faults the tests detect; SAMPLE=3 of each package, SEED=1, ROOMS="a b", NEAR=1 at once with few tests
	$(PIP) -e '.[mutation]'
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.mutation $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(if $(ROOMS),--rooms $(ROOMS)) $(if $(NEAR),--near)
.PHONY: answers
answers: export PYTHONPATH := tests/helpers
# Lines are as wide as in tests.
answers: export COLUMNS := 100
answers: $(VENV)/.installed-test ## write down anew the answers, outputs and defaults that tests compare with; read the difference
	$(BIN)/python -m tests.fields >tests/fields.txt
	$(BIN)/python -m tests.history.forecasts >tests/history/forecasts.json
	$(BIN)/python -m tests.cli.outputs >tests/cli/outputs.json
	$(BIN)/python -m tests.cli.asked >tests/cli/asked.json
	$(BIN)/python -m tests.sites.days >tests/sites/days.json
	for room in predictors predictors/analytic placement store/database service/state signature signature/rules signature/traces simulation queueing contention monitors/forecasters service/api; do \
	  $(BIN)/python -m tests.$$(echo $$room | tr / .).answers >answers.json && mv answers.json tests/$$room/answers.json || exit 1; \
	done
