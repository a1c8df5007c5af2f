"""Which jobs an edit sets off, on the real rules: these, all of these, and no others."""

import os
import shutil
from pathlib import Path

import pytest
from grid_study import declare

TRAINED = ("flatGRPO", "Progressive")
SEEDS = (11, 23)
ROUNDS = (1, 2)
CONFIG = {"Resolved configuration of the study"}
REPORT = {"Tables and the report"}
DRAWN = {"Figures"} | REPORT
MERGED = {"Merge the episodes of all arms"} | DRAWN
SFT_EVALUATIONS = {"SFTOnly, seed 0: evaluation of round 0"}
SFT = {"Supervised fine-tuning"} | SFT_EVALUATIONS
DATA = {"Games and panels", "Expert trajectories", "Base model"}


def rounds(methods=TRAINED, seeds=SEEDS, numbers=ROUNDS) -> set[str]:
    return {
        f"{method}, seed {seed}: round {number}"
        for method in methods
        for seed in seeds
        for number in numbers
    }


def evaluations(methods=TRAINED, seeds=SEEDS, numbers=ROUNDS) -> set[str]:
    trained_rounds = rounds(methods, seeds, numbers)
    return {job.replace(": round", ": evaluation of round") for job in trained_rounds}


def trained(**selection) -> set[str]:
    return rounds(**selection) | evaluations(**selection)


def test_an_empty_checkout_plans_every_job(checkout):
    for path in checkout.root.glob("results/*"):
        path.rename(checkout.root / "moved")
    assert checkout.planned() == CONFIG | DATA | SFT | trained() | MERGED


def test_nothing_changed_reruns_nothing(checkout):
    assert checkout.planned() == set()


def test_touched_code_and_configs_rerun_nothing(checkout):
    for part in ("Snakefile", "rules", "configs", "hgrpo"):
        path = checkout.root / part
        for file in path.rglob("*") if path.is_dir() else [path]:
            os.utime(file)
    assert checkout.planned() == set()


def test_touched_weights_rerun_nothing(checkout):
    os.utime(weights(checkout, "Progressive", 11, 1))
    os.utime(checkout.root / "results/grid/sft/adapter/model.safetensors")
    assert checkout.planned() == set()


def test_comments_and_docstrings_rerun_nothing(checkout):
    checkout.edit("hgrpo/learning/update.py", '"""', '"""Reworded: ')
    with (checkout.root / "hgrpo/learning/update.py").open("a", encoding="utf-8") as handle:
        handle.write("\n# A remark.\n")
    assert checkout.planned() == set()


def test_edited_page_code_writes_only_the_page(checkout):
    append(checkout, "hgrpo/stages/report.py", "WIDTH = 7\n")
    assert checkout.planned() == REPORT


def test_an_edit_in_another_environment_reruns_nothing(checkout):
    for name in ("__init__", "env", "settings", "judge", "demonstrate"):
        append(checkout, f"hgrpo/envs/webshop/{name}.py", "FLOOR = 1e-6\n")
    assert checkout.planned() == set()


def test_an_edit_in_sokoban_plans_no_job_of_bakeoff(checkout):
    run = ("study=bakeoff", "rounds=1")
    declare(checkout.root, ("bakeoff", {"rounds": 1}))
    # The stub of this copy, beside which stands what jobs of `bakeoff` write.
    prefix = f"export PATH={checkout.root / 'stub'}:$PATH; "
    append(checkout, "Snakefile", f"\nshell.prefix({prefix!r})\n")
    done = checkout.snakemake(*run)
    assert done.returncode == 0, done.stdout + done.stderr
    files = sorted((checkout.root / "hgrpo/envs/sokoban").glob("*.py"))
    assert len(files) > 10
    for file in files:
        append(checkout, f"hgrpo/envs/sokoban/{file.name}", "FLOOR = 1e-6\n")
    append(checkout, "configs/envs/sokoban.yaml", "# a remark\n")
    assert checkout.planned(*run) == set()


def test_an_edit_in_another_engine_or_assigner_reruns_nothing(checkout):
    for name in ("rollout/vllm/engine", "rollout/vllm/settings", "credit/judge/scores"):
        append(checkout, f"hgrpo/{name}.py", "FLOOR = 1e-6\n")
    assert checkout.planned() == set()


def test_an_edit_of_the_compiled_kernel_reruns_what_the_engine_plays(checkout):
    append(checkout, "hgrpo/rollout/torch/compiled.py", "FLOOR = 1e-6\n")
    assert checkout.planned() == SFT_EVALUATIONS | trained() | MERGED


def test_a_capability_of_the_environment_reruns_the_stages_that_use_it(checkout):
    # Only a judge reads this text, and the study has none.
    append(checkout, "hgrpo/envs/alfworld/judge.py", "FLOOR = 1e-6\n")
    assert checkout.planned() == set()
    append(checkout, "hgrpo/envs/alfworld/expert.py", "FLOOR = 1e-6\n")
    made_again = {"Expert trajectories", "Base model"} | SFT | trained() | MERGED
    assert checkout.planned() == made_again


def test_a_reworded_description_reruns_nothing(checkout):
    checkout.edit("hgrpo/learning/settings.py", "P: groups collected", "P: tasks played")
    checkout.edit("hgrpo/envs/alfworld/settings.py", 'description="', 'description="Reworded: ')
    checkout.edit("hgrpo/stages/rl_round.py", "folder of games and panels", "assets")
    assert checkout.planned() == set()


@pytest.mark.parametrize(
    ("file", "old", "new", "jobs"),
    [
        ("learning/settings.py", "lr: float = Field(3e-4", "lr: float = Field(2e-4", "rounds"),
        (
            "evaluation/settings.py",
            '        500, gt=0, description="games of the test',
            '        400, gt=0, description="games of the test',
            "evaluations",
        ),
        ("learning/sft_settings.py", "lr: float = Field(2e-3", "lr: float = Field(1e-3", "sft"),
        ("evaluation/settings.py", '        "area",\n', '        "last_round",\n', "page"),
    ],
)
def test_a_changed_default_reruns_what_reads_it(checkout, file, old, new, jobs):
    expected = {
        "rounds": trained() | MERGED,
        "evaluations": SFT_EVALUATIONS | evaluations() | MERGED,
        "sft": SFT | trained() | MERGED,
        "page": DRAWN,
    }
    checkout.edit(f"hgrpo/{file}", old, new)
    assert checkout.planned() == CONFIG | expected[jobs]


def test_edited_plot_code_redraws_only(checkout):
    append(checkout, "hgrpo/report/figures/learning.py", "WIDTH = 7\n")
    assert checkout.planned() == DRAWN
    assert checkout.planned("figures") == {"Figures"}


def test_a_deleted_figure_is_redrawn(checkout):
    (checkout.root / "results/grid/report/figures/forest.svg").unlink()
    assert checkout.planned("figures") == {"Figures"}
    assert checkout.planned() == DRAWN
    assert checkout.planned("results/grid/report/figures/forest.svg") == {"Figures"}


def test_a_deleted_table_is_rewritten(checkout):
    (checkout.root / "results/grid/report/tables/cost.csv").unlink()
    assert checkout.planned() == REPORT


def test_what_a_job_lost_by_failing_is_made_again(checkout):
    merged = checkout.root / "results/grid/report/episodes.parquet"
    merged.rename(merged.with_name("aside"))
    assert checkout.planned() == MERGED
    merged.with_name("aside").rename(merged)
    played = checkout.root / "results/grid/eval/Progressive/seed_11/round_2"
    shutil.rmtree(played)
    assert checkout.planned() == evaluations(["Progressive"], [11], [2]) | MERGED
    played.parent.joinpath("round_1/episodes.parquet").unlink()
    weights(checkout, "flatGRPO", 23, 2).parents[1].joinpath("summary.json").unlink()
    lost = evaluations(["Progressive"], [11], [1, 2]) | trained(
        methods=["flatGRPO"], seeds=[23], numbers=[2]
    )
    assert checkout.planned() == lost | MERGED
    shutil.rmtree(checkout.root / "results/grid/base")
    assert {"Base model"} < checkout.planned()


def test_edited_method_reruns_that_method(checkout):
    checkout.edit("configs/methods/Progressive.yaml", "alpha: 0.5", "alpha: 0.25")
    assert checkout.planned() == CONFIG | trained(methods=["Progressive"]) | MERGED


def test_training_key_of_a_method_reruns_that_method(checkout):
    append(checkout, "configs/methods/flatGRPO.yaml", "training: {lr: 1.0e-4}\n")
    assert checkout.planned() == CONFIG | trained(methods=["flatGRPO"]) | MERGED


def test_reworded_label_redraws_only(checkout):
    checkout.edit("configs/methods/Progressive.yaml", "label: Progressive", "label: Progress")
    assert checkout.planned() == CONFIG | DRAWN


def test_edited_trainer_reruns_all_rounds_and_what_follows(checkout):
    append(checkout, "hgrpo/learning/advantages.py", "FLOOR = 1e-6\n")
    assert checkout.planned() == trained() | MERGED


def test_edited_assigner_reruns_the_methods_that_use_it(checkout):
    append(checkout, "hgrpo/credit/progress.py", "FLOOR = 1e-6\n")
    assert checkout.planned() == trained(methods=["Progressive"]) | MERGED


def test_an_edited_update_rule_plans_the_arms_that_name_it(checkout):
    append(checkout, "configs/methods/flatGRPO.yaml", "objective: {rule: TPO, eta: 1.0}\n")
    done = checkout.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    assert checkout.planned() == set()
    # No arm of the study names these rules.
    append(checkout, "hgrpo/formulas/tempo.py", "FLOOR = 1e-6\n")
    append(checkout, "hgrpo/formulas/aspo.py", "FLOOR = 1e-6\n")
    assert checkout.planned() == set()
    append(checkout, "hgrpo/formulas/tpo.py", "FLOOR = 1e-6\n")
    assert checkout.planned() == trained(methods=["flatGRPO"]) | MERGED
    append(checkout, "hgrpo/formulas/clip.py", "FLOOR = 1e-6\n")
    assert checkout.planned() == trained() | MERGED


def test_edited_evaluation_keeps_the_rounds(checkout):
    append(checkout, "configs/studies/grid.yaml", "evaluation: {test_games: 400}\n")
    assert checkout.planned() == CONFIG | SFT_EVALUATIONS | evaluations() | MERGED


def test_confidence_level_redraws_only(checkout):
    append(checkout, "configs/studies/grid.yaml", "evaluation: {confidence: 0.9}\n")
    assert checkout.planned() == CONFIG | DRAWN


@pytest.mark.parametrize(
    "changed",
    ["endpoint: last_round", "endpoint: {budget: 3000}", "score: return", "thresholds: [0.5, 0.6]"],
)
def test_another_endpoint_redraws_only(checkout, changed):
    append(checkout, "configs/studies/grid.yaml", f"evaluation: {{{changed}}}\n")
    assert checkout.planned() == CONFIG | DRAWN


def test_resources_rerun_nothing_but_the_configuration(checkout):
    append(checkout, "configs/studies/grid.yaml", "resources: {rl_round: {threads: 2}}\n")
    assert checkout.planned() == CONFIG | REPORT


def test_edited_sft_reruns_it_and_what_follows(checkout):
    append(checkout, "configs/studies/grid.yaml", "sft: {epochs: 2}\n")
    assert checkout.planned() == CONFIG | SFT | trained() | MERGED


def test_more_rounds_run_the_new_ones(checkout):
    assert checkout.planned("rounds=3") == CONFIG | trained(numbers=[3]) | MERGED


def test_a_new_seed_runs_that_seed(checkout):
    # The supervised policy has been evaluated, once for every seed.
    assert checkout.planned("seeds=11,23,31") == CONFIG | trained(seeds=[31]) | MERGED


def test_changed_weights_rerun_what_was_made_from_them(checkout):
    weights(checkout, "Progressive", 11, 1).write_text("other weights\n", encoding="utf-8")
    one = {"methods": ["Progressive"], "seeds": [11]}
    assert checkout.planned() == rounds(**one, numbers=[2]) | evaluations(**one) | MERGED


def test_changed_games_rerun_everything_made_from_them(checkout):
    (checkout.root / "results/grid/assets/panels.json").write_text(
        "other games\n", encoding="utf-8"
    )
    made = {"Expert trajectories", "Base model"} | SFT | trained() | MERGED
    assert checkout.planned() == made


def test_a_domain_file_of_the_environment_counts_as_code(checkout):
    with (checkout.root / "hgrpo/envs/alfworld/domain.pddl").open("a", encoding="utf-8") as handle:
        handle.write("; another predicate\n")
    planned = checkout.planned()
    assert {"Games and panels"} | evaluations() <= planned
    assert not CONFIG & planned


@pytest.mark.parametrize(
    "target, jobs",
    [
        ("sft", set()),
        ("results/grid/eval/Progressive/seed_31/round_1/episodes.parquet", {31}),
    ],
)
def test_one_target_by_name_or_path(checkout, target, jobs):
    expected = trained(methods=["Progressive"], seeds=jobs, numbers=[1]) if jobs else set()
    assert checkout.planned(target, "seeds=11,23,31") == expected


def test_the_rerun_after_an_edit_settles(checkout):
    checkout.edit("configs/methods/Progressive.yaml", "alpha: 0.5", "alpha: 0.25")
    before = weights(checkout, "flatGRPO", 23, 2).stat().st_mtime_ns
    done = checkout.snakemake()
    assert done.returncode == 0, done.stderr
    assert checkout.planned() == set()
    assert weights(checkout, "flatGRPO", 23, 2).stat().st_mtime_ns == before


def weights(checkout, method: str, seed: int, number: int) -> Path:
    folder = checkout.root / f"results/grid/rl/{method}/seed_{seed}/round_{number}/adapter"
    return folder / "model.safetensors"


def append(checkout, name: str, text: str) -> None:
    with (checkout.root / name).open("a", encoding="utf-8") as handle:
        handle.write(text)


def test_a_deleted_optimiser_state_reruns_its_round(checkout):
    weights(checkout, "Progressive", 11, 1).with_name("trainer_state.pt").unlink()
    one = {"methods": ["Progressive"], "seeds": [11]}
    target = "results/grid/rl/Progressive/seed_11/round_1/adapter/trainer_state.pt"
    assert checkout.planned(target) == rounds(**one, numbers=[1])


def test_keys_of_the_files_that_a_study_names_rerun_the_jobs_that_read_them(finished):
    one = finished.planned("set=methods.flatGRPO.training.lr=1e-5")
    assert one == CONFIG | trained(methods=["flatGRPO"]) | MERGED
    played = finished.planned("set=env.turn_cap=9")
    assert trained() | SFT_EVALUATIONS <= played
