"""Let every credit assigner of a study credit the same rollouts, and say how far they agree.

Example:
  python -m hgrpo.cli.credit_agreement --config agreement.json --seed 11 \\
      --rollouts results/bakeoff/rl/flatGRPO/seed_11/round_2 --assets results/bakeoff/assets \\
      --base results/bakeoff/base --policy results/bakeoff/rl/flatGRPO/seed_11/round_1/adapter \\
      --fitted TurnRDV2=results/bakeoff/turnrd/TurnRDV2/seed_11/round_1 \\
      --cache results/bakeoff/cache --out results/bakeoff/credit_agreement
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from tqdm import tqdm

from hgrpo.agent.cached import read_groups
from hgrpo.agent.records import write_table
from hgrpo.agent.situations import add_situations
from hgrpo.agent.trajectory import Trajectory
from hgrpo.atomic import atomic_folder
from hgrpo.cli.entry import arguments, read_config, run, section
from hgrpo.config.agreement import AgreementConfig
from hgrpo.config.env import EnvConfig
from hgrpo.config.model import ModelConfig
from hgrpo.credit.base import Context
from hgrpo.envs.make import env_factory
from hgrpo.envs.panels import read_panels
from hgrpo.errors import UserError
from hgrpo.evaluation.agreement import check_row, correlations
from hgrpo.evaluation.shared_credit import (
    Computed,
    Rollouts,
    asked,
    computations,
    compute,
    name_groups,
)
from hgrpo.report.figures import agreement as figures
from hgrpo.report.style import Drawing, save

CREDITS = pa.schema(
    [
        ("step", pa.int32()),
        ("task_id", pa.string()),
        ("rollout", pa.int32()),
        ("turn", pa.int32()),
        ("method", pa.string()),
        ("credit", pa.float64()),
    ]
)
_DIGITS = "%.6g"


def main() -> None:
    """Read the round, let every method credit it, compare, draw."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--seed", type=int, required=True, help="of the run; names the assigners' random streams"
    )
    parser.add_argument("--rollouts", type=Path, required=True, help="folder of a played round")
    parser.add_argument("--assets", type=Path, required=True, help="folder of games and panels")
    parser.add_argument("--base", type=Path, required=True, help="folder of the base model")
    parser.add_argument(
        "--policy", type=Path, required=True, help="adapter that the round started from"
    )
    parser.add_argument(
        "--fitted",
        metavar="METHOD=DIR",
        action="append",
        default=[],
        help="fitted model of a method; may be given for each",
    )
    parser.add_argument("--cache", type=Path, required=True, help="folder of judges' answers")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    began = time.perf_counter()
    config = read_config(args.config)
    settings = section(config, "agreement", AgreementConfig)
    # The reference first, then the study's order.
    listed = sorted(config["methods"], key=lambda method: method["name"] != config["reference"])
    labels = {method["name"]: method["label"] or method["name"] for method in listed}
    credit = {method["name"]: method["credit"] for method in listed}
    plan = computations(credit, _fitted(args.fitted, labels))
    panel = read_panels(args.assets / "panels.json")["train"]
    make_env = env_factory(section(config, "env", EnvConfig), args.assets)

    def situate(trajectories: Sequence[Trajectory]) -> None:
        add_situations(tqdm(trajectories, desc="situations", unit="traj"), make_env)

    cached = read_groups(args.rollouts, panel)
    rollouts = name_groups(cached, args.seed, config["stream"], situate)
    context = _context(args, config, any(computed.reads_policy for computed in plan))
    for computed in plan:
        groups = asked(computed, rollouts, settings.counterfactual_groups)
        total = sum(len(group.trajectories) for group in groups)
        with tqdm(total=total, desc=computed.methods[0], unit="traj") as bar:
            compute(computed, groups, rollouts, context, bar.update)
    with atomic_folder(args.out) as folder:
        write(plan, rollouts, labels, folder)
        summary = _summary(plan, rollouts, time.perf_counter() - began)
        (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    for computed in plan:
        if computed.note:
            print(f"{', '.join(computed.methods)}: {computed.note}")
    print(
        f"{len(labels)} methods, {len(plan)} computations on "
        f"{len(rollouts.trajectories)} trajectories, {time.perf_counter() - began:.0f} s"
    )


def _fitted(given: Sequence[str], methods: Mapping[str, str]) -> dict[str, Path]:
    found = {}
    for text in given:
        name, _, folder = text.partition("=")
        if not folder or name not in methods:
            raise UserError(f"--fitted {text}: METHOD=DIR was expected, of {', '.join(methods)}")
        found[name] = Path(folder)
    return found


def _context(args: argparse.Namespace, config: Mapping, needs_policy: bool) -> Context:
    """What assigners may use."""
    env = section(config, "env", EnvConfig)
    context = Context(env.name, cache_dir=args.cache)
    if not needs_policy:
        return context
    # Torch is imported here: a study of readers does without.
    from hgrpo.agent.conversation import Conversation
    from hgrpo.policy.policy import load_policy
    from hgrpo.rollout.collector import Collector
    from hgrpo.rollout.engine import Sampling
    from hgrpo.rollout.torch_engine import TorchEngine

    policy = load_policy(section(config, "model", ModelConfig), args.base, args.policy)
    conversation = Conversation(policy.tokenizer)
    play = config["play"]
    sampling = Sampling(play["temperature"], play["max_action_tokens"])
    engine = TorchEngine(policy, play["in_flight"], sampling, conversation.end_id)
    collector = Collector(
        engine,
        conversation,
        env_factory(env, args.assets),
        env.turn_cap,
        play["max_action_tokens"],
    )
    return replace(context, policy=policy, conversation=conversation, collector=collector)


def write(
    plan: Sequence[Computed], rollouts: Rollouts, labels: Mapping[str, str], folder: Path
) -> None:
    """Write the tables and pictures; the same credit gives the same bytes."""
    by_method = {name: c.values for c in plan for name in c.methods if c.values is not None}
    ordered = {name: by_method[name] for name in labels if name in by_method}
    write_table(credit_table(ordered, rollouts), folder / "credits.parquet")
    checks = check_table(plan, rollouts, labels)
    _csv(checks, folder / "checks.csv")
    distinct = {c.methods[0]: c.values for c in plan if c.values is not None}
    pairs = correlations(distinct, rollouts.lengths)
    _csv(pairs, folder / "correlations.csv")
    drawings = [
        _heat_map(pairs, plan, distinct, labels),
        _gallery(distinct, rollouts, labels),
    ]
    for drawing in drawings:
        save(drawing, folder)
    index = [
        {name: getattr(drawing, name) for name in ("name", "section", "title", "caption", "alt")}
        for drawing in drawings
    ]
    (folder / "index.json").write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n")


def credit_table(credits: Mapping[str, np.ndarray], rollouts: Rollouts) -> pa.Table:
    """One row per method and turn it was asked about, with the columns of `CREDITS`."""
    lengths = rollouts.lengths
    owner = np.repeat(np.arange(len(lengths)), lengths)
    turn = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    step = np.array(rollouts.steps)[owner]
    task = np.array([t.task.task_id for t in rollouts.trajectories])[owner]
    rollout = np.array([t.rollout for t in rollouts.trajectories])[owner]
    parts = []
    for name, credit in credits.items():
        known = np.isfinite(credit)
        columns = [step, task, rollout, turn, np.full(len(credit), name), credit]
        arrays = [
            pa.array(column[known], type=field.type)
            for column, field in zip(columns, CREDITS, strict=True)
        ]
        parts.append(pa.Table.from_arrays(arrays, schema=CREDITS))
    return pa.concat_tables(parts) if parts else CREDITS.empty_table()


def check_table(
    plan: Sequence[Computed], rollouts: Rollouts, labels: Mapping[str, str]
) -> pd.DataFrame:
    """One row per method: what it was asked, what its credit adds up to, what to know of it."""
    rows = {}
    nothing = np.full(rollouts.lengths.sum(), np.nan)
    for computed in plan:
        promised = rollouts.sums(computed.promises) if computed.promises else None
        values = nothing if computed.values is None else computed.values
        row = check_row(values, promised, rollouts.lengths)
        for name in computed.methods:
            rows[name] = {
                "method": name,
                "label": labels[name],
                "kind": computed.credit.kind,
                "same_as": computed.methods[0] if name != computed.methods[0] else "",
                **row,
                "sums_to": computed.promises,
                "fallbacks": computed.fallbacks,
                "note": computed.note,
            }
    return pd.DataFrame([rows[name] for name in labels])


def _heat_map(
    pairs: pd.DataFrame,
    plan: Sequence[Computed],
    credits: Mapping[str, np.ndarray],
    labels: Mapping[str, str],
) -> Drawing:
    varied = [name for name, credit in credits.items() if np.nanmin(credit) < np.nanmax(credit)]
    constant = [labels[name] for name in credits if name not in varied]
    said = []
    if constant:
        said.append(f"Left out, as their credit does not vary: {', '.join(constant)}.")
    for computed in plan:
        first, *others = (labels[name] for name in computed.methods)
        if others and computed.methods[0] in varied:
            said.append(f"{first} stands for {', '.join(others)} too.")
        if computed.note:
            said.append(f"{first}: {computed.note}.")
    return figures.heat_map(pairs, {name: labels[name] for name in varied}, said)


def _gallery(
    credits: Mapping[str, np.ndarray],
    rollouts: Rollouts,
    labels: Mapping[str, str],
) -> Drawing:
    known = np.ones(rollouts.lengths.sum(), dtype=bool)
    for credit in credits.values():
        known &= np.isfinite(credit)
    edges = np.cumsum([0, *rollouts.lengths])
    complete = [bool(known[a:b].all()) for a, b in pairwise(edges)]
    picked = figures.pick(
        rollouts.lengths.tolist(), rollouts.sums("return"), rollouts.groups, complete
    )
    table = figures.gallery_table(picked, rollouts.trajectories, rollouts.steps, credits)
    return figures.gallery(table, {name: labels[name] for name in credits})


def _csv(table: pd.DataFrame, path: Path) -> None:
    table.to_csv(path, index=False, lineterminator="\n", float_format=_DIGITS)


def _summary(plan: Sequence[Computed], rollouts: Rollouts, elapsed: float) -> dict:
    returns = rollouts.sums("return")
    return {
        "round": rollouts.cached[0].round,
        "groups": len(rollouts.cached),
        "trajectories": len(rollouts.trajectories),
        "turns": int(rollouts.lengths.sum()),
        "mean_return": float(returns.mean()),
        "methods": {
            name: {"same_as": computed.methods[0] if name != computed.methods[0] else None}
            | {"seconds": computed.seconds, "report": computed.report}
            for computed in plan
            for name in computed.methods
        },
        "total_elapsed_s": elapsed,
    }


if __name__ == "__main__":
    run(main)
