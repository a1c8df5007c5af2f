"""Let every credit assigner of a study credit the same rollouts, and say how far they agree.

Example:
  python -m hgrpo.cli.config configs/studies/bakeoff.yaml --stage credit_agreement \\
      > agreement.json
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
from pathlib import Path

from tqdm import tqdm

from hgrpo.atomic import atomic_folder
from hgrpo.cli.entry import (
    arguments,
    engine_section,
    env_section,
    read_config,
    run,
    section,
)
from hgrpo.credit.base import Context
from hgrpo.envs.make import env_factory
from hgrpo.envs.panels import read_panels
from hgrpo.errors import UserError
from hgrpo.evaluation.agreement_settings import AgreementConfig
from hgrpo.evaluation.shared_rollouts import (
    Computation,
    SharedRollouts,
    computations,
    compute,
    groups_for,
    name_groups,
)
from hgrpo.policy.settings import ModelConfig
from hgrpo.report.credit_tables import write
from hgrpo.trajectories.cached import read_groups
from hgrpo.trajectories.replay import add_situations
from hgrpo.trajectories.trajectory import Trajectory


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
    make_env = env_factory(env_section(config), args.assets)

    def situate(trajectories: Sequence[Trajectory]) -> None:
        add_situations(tqdm(trajectories, desc="situations", unit="traj"), make_env)

    cached = read_groups(args.rollouts, panel)
    rollouts = name_groups(cached, args.seed, config["stream"], situate)
    context = _context(args, config, any(computed.declared.needs_policy for computed in plan))
    for computed in plan:
        groups = groups_for(computed, rollouts, settings.counterfactual_groups)
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
    """What assigners may use beside the trajectories."""
    env = env_section(config)
    context = Context(env.name, cache_dir=args.cache)
    if not needs_policy:
        return context
    # Torch is imported here: assigners that read trajectories alone do without.
    from hgrpo.policy.policy import load_policy
    from hgrpo.rollout.collector import Collector
    from hgrpo.rollout.engine import Sampling
    from hgrpo.rollout.make import make_engine

    policy = load_policy(section(config, "model", ModelConfig), args.base, args.policy)
    conversation = policy.conversation
    play = config["play"]
    sampling = Sampling(play["temperature"], play["max_action_tokens"])
    engine = make_engine(
        engine_section(config), policy, play["in_flight"], sampling, conversation.end_id
    )
    collector = Collector(
        engine,
        conversation,
        env_factory(env, args.assets),
        env.turn_cap,
        play["max_action_tokens"],
    )
    return replace(context, policy=policy, conversation=conversation, collector=collector)


def _summary(plan: Sequence[Computation], rollouts: SharedRollouts, elapsed: float) -> dict:
    returns = rollouts.sums("return")
    return {
        "round": rollouts.stored[0].round,
        "groups": len(rollouts.stored),
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
