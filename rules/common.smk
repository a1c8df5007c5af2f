"""The study in hand, and what every rule asks of it: paths, settings, code hashes, resources."""

import functools
import os
import shlex
import sys

from hgrpo.workflow.chosen_study import STUDY_VARIABLE, chosen_study
from hgrpo.workflow.code_version import code_version
from hgrpo.workflow.user_files import outside_files
from hgrpo.workflow.preflight import check_folders, check_keys, check_slurm
from hgrpo.config.read import did_you_mean
from hgrpo.workflow.stage_config import as_json, stage_config
from hgrpo.study.study import load_study
from hgrpo.errors import UserError

STUDIES = os.path.relpath(workflow.current_basedir.join("../configs/studies"))


def read_study():
    """The study in hand; a mistake in it ends snakemake with one line."""
    overrides = {key: value for key, value in config.items() if key != "study"}
    try:
        name = chosen_study(STUDIES, config.get("study"), sys.argv[1:], os.environ)
        return load_study(f"{STUDIES}/{name}.yaml", overrides)
    except UserError as error:
        sys.exit(f"error: {error}")


study = read_study()
# A job on another machine is not told the targets: it finds the study in its environment.
os.environ[STUDY_VARIABLE] = study.config.name
R = f"results/{study.config.name}"
RUN = "{method}/seed_{seed}/round_{round}"
RUN_NAME = "{method}.seed_{seed}.round_{round}"

# A job runs with the Python that runs snakemake, whether or not its environment is activated. Its
# progress bar goes to a log, where few lines say as much as many.
BIN = shlex.quote(os.path.dirname(sys.executable))
shell.prefix(f"export PATH={BIN}:$PATH TQDM_MININTERVAL=10; ")


def check_needs():
    """End snakemake with one line where something is missing that the jobs to run will want.

    Before it submits a job, Snakemake deletes what that job made last time.
    """
    jobs = list(workflow.dag.needrun_jobs())
    stages = {job.rule.name for job in jobs}
    rounds = [job for job in jobs if job.rule.name == "rl_round"]
    try:
        check_keys([study.methods[job.wildcards.method] for job in rounds], os.environ)
        # With a store in place of a shared file system, jobs run where other things are installed.
        if not REMOTE:
            check_folders(study, stages)
            if stages & {"rl_round", "evaluate"}:
                study.config.engine.engine.check_installed()
        if workflow.executor_plugin.name == "slurm":
            check_slurm()
    except UserError as error:
        sys.exit(f"error: {error}")


def no_such_target(wildcards):
    """Input of no job: names the studies and the other targets."""
    studies = [name.removesuffix(".yaml") for name in sorted(os.listdir(STUDIES))]
    targets = [rule.name for rule in workflow.rules if not rule.has_wildcards()]
    name = wildcards.target
    sys.exit(f"error: {name}: no such target{did_you_mean(name, {*studies, *targets})}")


wildcard_constraints:
    method="|".join(study.methods),
    seed=r"\d+",
    round=r"\d+",


@functools.cache
def cfg(stage, method=None):
    """JSON of what a stage depends on."""
    return as_json(stage_config(study, stage, method))


def shared():
    """Whether the stages up to SFT take part in Snakemake's cache between checkouts.

    They do with `--cache` and a folder in SNAKEMAKE_OUTPUT_CACHE, the base of a package left out: of
    it only what every model has would be handed out. A result's key there is made of commands,
    params (so settings and code) and inputs, and knows nothing of the user's own files.
    """
    if workflow.workflow_settings.cache is None:
        return False
    for key in outside_files(study):
        sys.exit(f"error: --cache: a cached result would not tell one folder from another ({key})")
    return True


SHARED = shared()


def without_times(*rules):
    """What the cache hands out was timed elsewhere: Snakemake wants no benchmark beside `cache`."""
    for rule in rules if SHARED else ():
        workflow.get_rule(rule)._benchmark = None


def asks(stage):
    """Resources of one job of a stage; where a profile has retries, each asks for more."""
    needs = getattr(study.config.resources, stage)
    resources = {
        "mem_mb": lambda wildcards, attempt: needs.mem_mb * attempt,
        "runtime": lambda wildcards, attempt: needs.runtime * attempt,
    }
    # Kubernetes' executor takes `gpu=0` for a GPU job that says too little.
    return resources | ({"gpu": needs.gpu} if needs.gpu else {})


def gpus(stage):
    """GPUs of a job of a stage: the study's, or what `--set-resources` says in their place."""
    instead = workflow.resource_settings.overwrite_resources.get(stage, {}).get("gpu")
    return getattr(study.config.resources, stage).gpu if instead is None else instead.value


def cores(stage):
    return getattr(study.config.resources, stage).threads


# Without a file system that all jobs share (`--default-storage-provider s3`), a job finds what its
# rule names and nothing else.
REMOTE = workflow.storage_settings.default_storage_provider is not None


def here(folder):
    """Where a job finds a folder of results: there, or among its own copies of a store's files."""
    if not REMOTE:
        return folder
    store = workflow.storage_registry.default_storage_provider
    prefix = workflow.storage_settings.default_storage_prefix.rstrip("/")
    return str(store.object(f"{prefix}/{folder}").local_path())


def named(apart, **files):
    """Files that need a name of their own only where files travel one by one.

    In one file system they stand beside those that every rule names, and a name more would make
    finished results look out of date.
    """
    return files if apart else {}


def task_files():
    """What the assets stage writes beside panels and manifest."""
    home = f"{R}/assets"
    if study.env.name == "alfworld":
        return {"games": directory(f"{home}/games")}
    made = {"data": directory(f"{home}/data")} if study.env.source == "generated" else {}
    shop = {"catalogue": f"{home}/catalogue.arrow", "goals": f"{home}/goals.arrow"}
    return shop | made | {"index": directory(f"{home}/index")}


# Into a store the tasks go as one file: of a folder that a pod has filled, the S3 provider 0.3 goes on
# saying that it is not there. The commands are the same as ever where this is not needed.
_PLAYED = "games" if study.env.name == "alfworld" else "catalogue.arrow goals.arrow index"
TASKS = named(REMOTE, tasks=f"{R}/assets/tasks.tar")
PACK_TASKS = f" && tar -C {{params.out:q}} -cf {{output.tasks:q}} {_PLAYED}" if REMOTE else ""
UNPACK_TASKS = "tar -C {params.assets:q} -xf {input.tasks:q} && " if REMOTE else ""


# Weights alone do not tell models apart: this holds the digest of what stands beside those of a
# pretrained one. All of a tiny one follows from settings and code, which its job is compared by.
SUMMARY_OF_BASE = named(study.model.tiny is None, base_summary=f"{R}/base/summary.json")


# And so does all that stands beside a base's weights: which files those are differs between models.
BESIDE_BASE = named(REMOTE, beside_base=f"{R}/base/beside_weights.tar")
PACK_BASE = (
    " && tar -C {params.out:q} --exclude='*.safetensors' --exclude=beside_weights.tar"
    " -cf {output.beside_base:q} ."
    if REMOTE
    else ""
)
UNPACK_BASE = "tar -C {params.base:q} -xf {input.beside_base:q} && " if REMOTE else ""


def tiny_extras():
    """What the base stage writes of a model that it builds, beside what every model has."""
    names = {"tokenizer_config": "tokenizer_config.json", "summary": "summary.json"}
    return {key: f"{R}/base/{name}" for key, name in names.items()}


def weights(folder):
    """The weights file of an adapter, or of a fully tuned policy; its folder is what loads."""
    lora = study.model.adapt == "lora"
    return f"{folder}/adapter_model.safetensors" if lora else f"{folder}/model.safetensors"


def architecture(folder):
    """The file that says what the weights beside it are of."""
    return (
        f"{folder}/adapter_config.json" if study.model.adapt == "lora" else f"{folder}/config.json"
    )


def policy(method, round):
    """Weights after a round; round 0, and every round of an untrained method, is the SFT policy."""
    if int(round) == 0 or not study.methods[method].train:
        return weights(f"{R}/sft/adapter")
    return weights(f"{R}/rl/{method}/seed_{{seed}}/round_{round}/adapter")


def previous_policy(wildcards):
    """What a round starts from."""
    carry = study.training[wildcards.method].carry_policy
    return policy(wildcards.method, int(wildcards.round) - 1 if carry else 0)


def architecture_beside(weights_of):
    """The file `architecture` beside the weights that an input function names."""
    return lambda wildcards: architecture(os.path.dirname(weights_of(wildcards)))


def previous_state(wildcards):
    """The optimiser's moments that a round carries on with; none where it starts from SFT."""
    number = int(wildcards.round) - 1
    if number == 0 or not study.training[wildcards.method].carry_policy:
        return []
    return f"{R}/rl/{{method}}/seed_{{seed}}/round_{number}/adapter/trainer_state.pt"


def fits(method):
    """Whether a method's assigner is fitted between rounds."""
    return study.methods[method].credit.declared.fits and study.methods[method].train


def fitted(wildcards):
    """The model that credit is read out of in a round; none in the first."""
    method, number = wildcards.method, int(wildcards.round)
    if not fits(method) or number == 1:
        return []
    return [f"{R}/turnrd/{method}/seed_{wildcards.seed}/round_{number - 1}/model.safetensors"]


def cards(models_of):
    """The settings of the TurnRD models that an input function names."""
    return lambda wildcards: [
        f"{os.path.dirname(path)}/model.json" for path in models_of(wildcards)
    ]


def previous_fit(wildcards):
    """The model that a fit starts from, with `warm_start`."""
    declared = study.methods[wildcards.method].credit.declared
    return fitted(wildcards) if declared.continues_fit else []


def evaluated_policy(wildcards):
    return policy(wildcards.method, wildcards.round)


def runs():
    """Every (method, seed, round) that is evaluated; an untrained method has round 0 alone."""
    for method, arm in study.methods.items():
        for seed in study.config.seeds:
            for round in range(1, study.config.rounds + 1) if arm.train else [0]:
                yield method, seed, round


def evaluations(methods=None):
    """Episodes of every evaluation, or of those of some methods."""
    return [
        f"{R}/eval/{method}/seed_{seed}/round_{round}/episodes.parquet"
        for method, seed, round in runs()
        if methods is None or method in methods
    ]


def smoke_methods():
    """The methods that a study plays first, to see whether all is well."""
    return study.config.smoke_wave or [study.config.reference]


def round_files(name, rounds=None):
    """One file of every trained round, or of the given rounds of every trained run."""
    return [
        f"{R}/rl/{method}/seed_{seed}/round_{round}/{name}"
        for method, seed, round in runs()
        if round and (rounds is None or round in rounds)
    ]
