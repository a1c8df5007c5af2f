"""Export methods_comparison.json: a study's results in the format of H-GRPO's file of that name.

The plotting scripts of the H-GRPO code base read this file. Each arm has the fields below, computed
from greedy evaluations on the test panel, with the episodes of all seeds pooled:

  n_rounds                        number of evaluated rounds
  best_, last_, mean_eval_return  mean return in the best round, in the last, and over all rounds
  best_, last_, mean_pct_success  the same for the share of successes (a fraction, not a percentage)
  total_eval_episodes             episodes of all rounds
  _per_round_eval                 for each round: round, avg_R (mean return), pct_success, n_ok
                                  (number of episodes) and pct_paid
  _endpoint                       the study's declared endpoint: its name, its score (success or
                                  return), and the arm's mean with its interval (null with one seed)
  _label                          the arm's label in the report
  _study                          digest of the study's settings
  _notes                          only for the supervised policy

The best round has the highest avg_R; ties are broken by pct_success. One definition differs: in
H-GRPO, an episode with a return above 0 is a success. Here `pct_success` uses the environment's
definition, and `pct_paid` uses that of H-GRPO.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from hgrpo.config.canonical import settings_digest
from hgrpo.evaluation.breakdowns import paid_share
from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import GREEDY, TEST


def methods_comparison(
    comparison: Comparison, episodes: pd.DataFrame, labels: Mapping[str, str], study: Mapping
) -> dict[str, dict]:
    """Compute the content of methods_comparison.json: the fields of each arm, in display order.

    `study` is the content of the study's config.yaml.
    """
    greedy = episodes[(episodes["panel"] == TEST) & (episodes["temperature"] == GREEDY)]
    manifest = {}
    for method in dict.fromkeys(comparison.methods["method"]):
        manifest[method] = _summary(greedy[greedy["method"] == method])
        if method == comparison.protocol.untrained:
            manifest[method]["_notes"] = (
                "no reinforcement learning; greedy. For its best temperature on validation, "
                f"T={comparison.best_temperature:g}, see tables/methods.csv"
            )
        manifest[method]["_endpoint"] = _endpoint(comparison.endpoints, method)
        manifest[method]["_label"] = labels[method]
        manifest[method]["_study"] = study_digest(study)
    return manifest


def study_digest(config: Mapping) -> str:
    """Digest of the settings in a study's config.yaml, without its provenance."""
    return settings_digest({key: value for key, value in config.items() if key != "provenance"})


def _endpoint(endpoints: pd.DataFrame, method: str) -> dict:
    greedy = endpoints["declared"] & (endpoints["temperature"] == GREEDY)
    row = endpoints[greedy & (endpoints["method"] == method)].iloc[0]
    return {
        "name": row["endpoint"],
        "score": row["score"],
        "mean": float(row["mean"]),
        **{end: None if pd.isna(row[end]) else float(row[end]) for end in ("lower", "upper")},
    }


def _summary(episodes: pd.DataFrame) -> dict:
    rounds = [
        {
            "round": int(number),
            "avg_R": float(group["env_return"].mean()),
            "pct_success": float(group["success"].mean()),
            "pct_paid": paid_share(group),
            "n_ok": len(group),
        }
        for number, group in episodes.groupby("round", sort=True)
    ]
    best = max(rounds, key=lambda row: (row["avg_R"], row["pct_success"]))
    summary = {"n_rounds": len(rounds)}
    for name, column in (("eval_return", "avg_R"), ("pct_success", "pct_success")):
        summary[f"best_{name}"] = best[column]
        summary[f"last_{name}"] = rounds[-1][column]
        summary[f"mean_{name}"] = float(np.mean([row[column] for row in rounds]))
    return summary | {"total_eval_episodes": len(episodes), "_per_round_eval": rounds}
