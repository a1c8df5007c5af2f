"""The plan of every shipped study, on the laptop and on a cluster."""

import os
import re

import pytest
import yaml
from places import PROJECT

from hgrpo.stages.files import downloads
from hgrpo.study.study import load_study

SEED_STUDIES = ("alfworld_5x40", "webshop_5x40")
PROFILES = ("laptop", "one-gpu", "slurm", "slurm-test", "kubernetes")
SLURM = "snakemake_executor_plugin_slurm"
# What every profile must say, and what none may say. profiles/laptop tells why.
LAWS = {
    "rerun-incomplete": True,
    "rerun-triggers": "mtime",
    "max-jobs-per-timespan": "500/5s",
}
FORBIDDEN = {"keep-incomplete"}


def untouched(root):
    """The project in a folder where nothing has been run."""
    for part in ("Snakefile", "rules", "profiles", "configs", "hgrpo"):
        (root / part).symlink_to(PROJECT / part)
    return root


@pytest.fixture(scope="module")
def plan(tmp_path_factory, forks):
    """What `snakemake -n` prints for a profile and a study, where nothing has been run."""
    root = untouched(tmp_path_factory.mktemp("untouched"))

    def run(profile: str, study: str, *options: str) -> str:
        if profile.startswith("slurm"):
            pytest.importorskip(SLURM, reason="needs the extra `slurm`")
        done = forks.run(
            *("snakemake", "-n", "--workflow-profile", f"profiles/{profile}"),
            *("--config", f"study={study}", *options),
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root)},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def jobs(printed: str) -> dict[str, int]:
    """Rule -> number of jobs, from the table at the head of a plan."""
    table = re.search(r"^job +count\n[- ]+\n((?:\w+ +\d+\n)+)", printed, re.MULTILINE).group(1)
    return {rule: int(count) for rule, count in map(str.split, table.splitlines())}


def expected_jobs(name: str, **overrides: object) -> dict[str, int]:
    """The same, worked out from the study."""
    study = load_study(PROJECT / f"configs/studies/{name}.yaml", overrides)
    seeds, rounds = len(study.config.seeds), study.config.rounds
    arms = study.methods.values()
    trained = sum(arm.train for arm in arms)
    fitted = sum(arm.train and arm.credit.declared.fits for arm in arms)
    count = dict.fromkeys(
        ["all", "study_config", "assets", "expert", "base", "sft", "merge", "figures", "report"], 1
    )
    count["fetch_assets"] = int(downloads(study))
    count["rl_round"] = trained * seeds * rounds
    count["evaluate"] = count["rl_round"] + len(arms) - trained
    count["credit_fit"] = fitted * seeds * (rounds - 1)
    count = {rule: number for rule, number in count.items() if number}
    return count | {"total": sum(count.values())}


def test_a_study_is_planned_in_full(plan):
    assert jobs(plan("laptop", "bakeoff")) == expected_jobs("bakeoff")


def test_the_test_profile_has_the_same_plan(plan):
    assert jobs(plan("slurm-test", "smoke")) == expected_jobs("smoke")


def test_one_gpu_has_the_same_plan(plan):
    assert jobs(plan("one-gpu", "smollm2")) == expected_jobs("smollm2")


@pytest.mark.parametrize("profile", ["one-gpu", "slurm-test"])
@pytest.mark.parametrize("study", [*SEED_STUDIES, "sokoban_gradients_qwen"])
def test_studies_for_a_gpu_have_a_plan_on_the_other_profiles_too(plan, study, profile):
    assert jobs(plan(profile, study)) == expected_jobs(study)


@pytest.mark.parametrize("resources", ["gpu_model=a100", "mem_mb=5000", "gpu=2"])
def test_a_resource_of_a_round_may_be_set_without_its_gpus(plan, resources):
    printed = plan("slurm", "smollm2", "--set-resources", f"rl_round:{resources}")
    assert jobs(printed) == expected_jobs("smollm2")


def test_small_jobs_are_one_submission(plan):
    printed = plan("slurm", "smoke")
    groups = re.findall(r"Group job (\w+) .*?\n\n((?:    .*\n)+)", printed)
    members = {name: set(re.findall(r"Job \d+: (.*)", body)) for name, body in groups}
    assert members == {
        "beginning": {"Games and panels", "Expert trajectories", "Base model"},
        "page": {
            "Merge the episodes of all arms",
            "Figures",
            "Tables and the report",
        },
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_profiles_keep_the_laws(profile):
    settings = yaml.safe_load((PROJECT / f"profiles/{profile}/config.yaml").read_bytes())
    assert {key: settings.get(key) for key in LAWS} == LAWS
    assert not FORBIDDEN & set(settings)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_path_that_a_profile_names_exists(profile):
    text = "".join(
        path.read_text(encoding="utf-8") for path in (PROJECT / "profiles" / profile).glob("*.yaml")
    )
    named = re.findall(r"\b(?:configs|docs|hgrpo|profiles|rules|tests)/[\w./-]*\w", text)
    assert named
    assert [name for name in named if not (PROJECT / name).exists()] == []


def test_the_profile_of_the_test_node_groups_and_retries_as_the_clusters():
    one, other = (
        yaml.safe_load((PROJECT / f"profiles/{name}/config.yaml").read_bytes())
        for name in ("slurm", "slurm-test")
    )
    for key in ("groups", "retries", "slurm-status-command", "default-resources"):
        assert one[key] == other[key]
