"""Compute and compare the credit of all assigners in a study, on the same rollouts.

If the study measures ground truth, the stage uses the rollouts with ground truth, and also compares
each method's credit with the ground truth. The agreement tables and the gallery then only show the
last policy. Without ground truth, the stage uses round 2 of the reference with the first seed.

Learned assigners use the fit on round 1 of their own arm. In a study with a single round, there are
no fits, so learned assigners distribute credit equally. Without ground truth, such a study uses the
rollouts of round 1.

Example:
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage credit_agreement \\
      > agreement.json
  python -m hgrpo.cli.stage credit_agreement --config agreement.json --seed 11 \\
      --rollouts results/bakeoff/rl/flatGRPO/seed_11/round_2 --assets results/bakeoff/assets \\
      --base results/bakeoff/base --policy results/bakeoff/rl/flatGRPO/seed_11/round_1/adapter \\
      --fitted results/bakeoff/credit_fit/TurnRDV2/seed_11/round_1 \\
      --cache results/bakeoff/cache --out results/bakeoff/credit_agreement
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgrpo.atomic import atomic_folder, write_json
from hgrpo.base_model.folder import open_base
from hgrpo.config.strict import Strict
from hgrpo.credit.kinds import CreditConfig
from hgrpo.errors import UserError
from hgrpo.evaluation.settings import AgreementConfig
from hgrpo.evaluation.truth.update_settings import ArmUpdate
from hgrpo.games.panels import read_panels
from hgrpo.learning.settings import PLAY
from hgrpo.progress import Bar
from hgrpo.stages.files import (
    BASE,
    PANELS,
    TASKS,
    fitted_files,
    policy_files,
    policy_folder,
    reference_of,
    round_folder,
    truth_files,
)
from hgrpo.stages.paths import Job, folder, place
from hgrpo.stages.playing import Playing, collector, playing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hgrpo.credit.base import Context
    from hgrpo.evaluation.shared_rollouts import Computation, SharedRollouts
    from hgrpo.evaluation.truth.measured import MeasuredTruth, Played
    from hgrpo.learning.method import MethodConfig
    from hgrpo.study.study import Study

FOLDER = "credit_agreement"
JOB = ("seed",)
OUTPUTS = {
    "credits": "credits.parquet",
    "correlations": "correlations.csv",
    "checks": "checks.csv",
    "twins": "twins.csv",
    "agreement": "agreement.svg",
    "agreement_numbers": "agreement.csv",
    "gallery": "gallery.svg",
    "gallery_numbers": "gallery.csv",
    "index": "index.json",
    "summary": "summary.json",
}
# Additional outputs of a study with ground truth.
TRUTH_OUTPUTS = {
    "truth": "truth.csv",
    "truth_gradients": "truth_gradients.csv",
    "truth_errors": "truth_errors.csv",
    **{name: f"{name}.svg" for name in ("closest", "updates", "mistakes")},
    **{f"{name}_numbers": f"{name}.csv" for name in ("closest", "updates", "mistakes")},
}
RESOURCES = {"mem_mb": 2000}
USES = ("env", "engine", "credit")


class Arm(Strict):
    """An arm's name, label and credit settings."""

    name: str
    label: str = ""
    credit: CreditConfig


class Settings(Playing):
    """The arms to compare, and the settings with which the rollouts were played.

    `updates` maps each arm to the settings with which it computes advantages. `truth` is true if
    the rollouts have ground truth.
    """

    play: dict[str, Any]
    agreement: AgreementConfig
    reference: str
    stream: int
    methods: list[Arm]
    updates: dict[str, ArmUpdate] = {}
    truth: bool = False


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Folders in the options of the command."""

    rollouts: list[Path] = folder("turns", "folders of a round or of ground truth", many=True)
    assets: Path = folder("panels", "folder of the assets stage")
    base: Path = folder("base", "folder of the base stage")
    policy: list[Path] = folder("policy", "adapters that played the rollouts", many=True)
    out: Path = folder("index", "output folder")
    fitted: list[Path] = folder(
        "fitted", "folders of fits: <method>/seed_<s>/round_<r>", True, True
    )
    cache: Path | None = place("folder with cached answers of judges")


def from_study(study: "Study", method: str | None = None) -> dict:
    """The reference's rollout settings, and the credit settings of every arm that is compared."""
    reference = study.config.reference
    # Without the reference, this stage cannot run, but its Snakemake rule still needs settings.
    training = study.training.get(reference, study.config.training)
    return {
        **playing(study),
        "play": training.model_dump(mode="json", include=PLAY),
        "agreement": study.config.agreement.model_dump(mode="json"),
        "reference": reference,
        "stream": study.methods[reference].stream if study.has_reference else 0,
        "methods": [
            arm.model_dump(mode="json", include={"name", "credit"}) | {"label": arm.full_label}
            for arm in _credited(study).values()
        ],
        "updates": {
            name: {
                "method": arm.model_dump(mode="json", exclude={"label", "training", "stream"}),
                "training": study.training[name].model_dump(mode="json"),
            }
            for name, arm in _credited(study).items()
        },
        "truth": study.config.truth is not None,
    }


def _credited(study: "Study") -> dict[str, "MethodConfig"]:
    """Trained arms, except arms whose credit comes from a critic."""
    return {name: arm for name, arm in study.methods.items() if arm.train and not arm.uses_critic}


def inputs(study: "Study", job: Job) -> dict:
    """Tasks, base model, rollouts, the policies that played the rollouts, and all credit fits.

    Raises:
        UserError: the reference, which provides the rollouts, is not among the methods.
    """
    reference, seed = reference_of(study), study.config.seeds[0]
    fits = [
        fitted_files(study, method, seed, min(2, study.config.rounds)) for method in study.methods
    ]
    if study.config.truth:
        tables = {name: truth_files(study, f"{name}.parquet") for name in ("turns", "sequences")}
        tables |= {"truth": truth_files(study, "truth.parquet")}
        policies = [
            policy_folder(reference, seed, round) for round in study.config.truth.after_rounds
        ]
    else:
        round = min(2, study.config.rounds)
        played = round_folder("rl", reference, seed, round)
        tables = {name: [f"{played}/{name}.parquet"] for name in ("turns", "sequences")}
        carries = study.training[reference].carry_policy
        policies = [policy_folder(reference, seed, round - 1 if carries else 0)]
    files = [policy_files(study, policy) for policy in policies]
    return {
        "panels": PANELS,
        "tasks": TASKS,
        **BASE,
        **tables,
        **{name: [each[name] for each in files] for name in files[0]},
        "fitted": [path for fit in fits for path in fit["fitted"]],
        "fitted_card": [path for fit in fits for path in fit["fitted_card"]],
    }


def outputs(study: "Study") -> dict:
    """`OUTPUTS`, and `TRUTH_OUTPUTS` if the study measures ground truth."""
    return OUTPUTS | (TRUTH_OUTPUTS if study.config.truth else {})


def run(settings: Settings, job: Job, paths: Paths) -> None:
    """Read the rollouts, compute and compare the credit of all methods, and draw figures."""
    from hgrpo.evaluation.cautions import one_method
    from hgrpo.evaluation.shared_rollouts import SharedRollouts, computations
    from hgrpo.evaluation.truth.measured import Played
    from hgrpo.report.credit_tables import write
    from hgrpo.trajectories.played_groups import read_groups

    began = time.perf_counter()
    if len(paths.policy) != len(paths.rollouts):
        raise UserError(
            f"--policy: expected as many folders as in --rollouts ({len(paths.rollouts)}), got "
            f"{len(paths.policy)}"
        )
    # The reference comes first. The other arms remain in the study's order.
    arms = sorted(settings.methods, key=lambda arm: arm.name != settings.reference)
    labels = {arm.name: arm.label or arm.name for arm in arms}
    credit = {arm.name: arm.credit for arm in arms}
    fitted = _fitted(paths.fitted, labels)
    panel = read_panels(paths.assets / "panels.json")["train"]
    played = []
    for stored, adapter in zip(paths.rollouts, paths.policy, strict=True):
        rollouts = SharedRollouts(read_groups(stored, panel), job.seed, settings.stream)
        truth = _truth(stored, rollouts) if settings.truth else None
        plan = computations(credit, fitted)
        _credit(plan, rollouts, settings, paths, adapter)
        played.append(Played(plan, rollouts, truth))
    with atomic_folder(paths.out) as out:
        pairs = write(played, settings.updates, labels, out)
        write_json(out / "summary.json", _summary(played, time.perf_counter() - began))
    for computed in played[-1].plan:
        if computed.note:
            print(f"{', '.join(computed.methods)}: {computed.note}")
    for pair in pairs.to_dict("records"):
        print(one_method(pair))
    print(
        f"{len(labels)} methods, {len(played[-1].plan)} computations on "
        f"{sum(len(each.rollouts.trajectories) for each in played)} trajectories, "
        f"{time.perf_counter() - began:.0f} s: {paths.out}"
    )


def _credit(
    plan: "Sequence[Computation]",
    rollouts: "SharedRollouts",
    settings: Settings,
    paths: Paths,
    adapter: Path,
) -> None:
    from hgrpo.evaluation.shared_rollouts import compute, groups_for

    needs_policy = any(computed.declared.needs_policy for computed in plan)
    context = _context(settings, paths, adapter, needs_policy)
    for computed in plan:
        groups = groups_for(computed, rollouts, settings.agreement.counterfactual_groups)
        total = sum(len(group.trajectories) for group in groups)
        with Bar(total=total, desc=computed.methods[0], unit="traj") as bar:
            compute(computed, groups, rollouts, context, bar.update)


def _truth(stored: Path, rollouts: "SharedRollouts") -> "MeasuredTruth":
    from hgrpo.evaluation.truth.measured import measured_truth
    from hgrpo.evaluation.truth.table import read_truth

    turns = [turn for trajectory in rollouts.trajectories for turn in trajectory.turns]
    table = read_truth(stored, rollouts.stored)
    return measured_truth(table, [(turn.action, turn.admissible) for turn in turns])


def _fitted(folders: "Sequence[Path]", methods: Mapping[str, str]) -> dict[str, Path]:
    by_method = {each.parent.parent.name: each for each in folders}
    for method in by_method.keys() - methods.keys():
        raise UserError(
            f"--fitted {by_method[method]}: expected a folder <method>/seed_<s>/round_<r> of one "
            f"of the methods {', '.join(methods)}"
        )
    return by_method


def _context(settings: Settings, paths: Paths, adapter: Path, needs_policy: bool) -> "Context":
    """The context in which assigners compute credit; `compute` adds the fitted model."""
    from hgrpo.credit.base import Context

    context = Context(settings.env.name, cache_dir=paths.cache)
    if not needs_policy:
        return context
    # This import requires torch, but assigners that only read trajectories do not.
    from hgrpo.policy.load import load_policy

    policy = load_policy(settings.model, open_base(paths.base), adapter)
    plays = collector(settings, settings.play, policy, paths.assets)
    return replace(context, policy=policy, conversation=policy.conversation, collector=plays)


def _summary(played: "Sequence[Played]", elapsed: float) -> dict:
    """Return counts and mean return of the last policy's rollouts, and a report per method.

    With ground truth, `truth` lists the counts and mean return for every policy.
    """
    plan, rollouts = played[-1].plan, played[-1].rollouts
    return {
        **_totals(rollouts),
        "methods": {
            name: {
                "same_as": computed.methods[0] if name != computed.methods[0] else None,
                "seconds": computed.seconds,
                "report": computed.report,
            }
            for computed in plan
            for name in computed.methods
        },
        "truth": [_totals(each.rollouts) for each in played if each.truth],
        "total_elapsed_s": elapsed,
    }


def _totals(rollouts: "SharedRollouts") -> dict:
    return {
        "round": rollouts.stored[0].round,
        "groups": len(rollouts.stored),
        "trajectories": len(rollouts.trajectories),
        "turns": int(rollouts.lengths.sum()),
        "mean_return": float(rollouts.sums("return").mean()),
    }
