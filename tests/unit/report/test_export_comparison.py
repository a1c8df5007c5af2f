"""methods_comparison.json on a study small enough to work out by hand."""

import json
from types import SimpleNamespace

import pandas as pd

from hgrpo.config.canonical import settings_digest
from hgrpo.report.export_comparison import methods_comparison


def played(method, number, returns, panel="test", temperature=0.0):
    """Episodes of one round; only a return of 1 is a success."""
    return pd.DataFrame(
        {
            "method": method,
            "round": number,
            "panel": panel,
            "temperature": temperature,
            "env_return": returns,
            "success": [value == 1.0 for value in returns],
        }
    )


def test_every_field_by_hand():
    episodes = pd.concat(
        [
            played("SFTOnly", 0, [1.0, 0.0, 0.0, 0.0]),
            # Other temperatures and panels do not count.
            played("SFTOnly", 0, [1.0, 1.0, 1.0, 1.0], temperature=0.7),
            played("New", 2, [1.0, 1.0, 1.0, 1.0], panel="validation"),
            # Rounds 1 and 3 have the same mean return; round 3 has the higher success.
            played("New", 2, [0.5, 0.0, 0.0, 0.0]),
            played("New", 1, [0.5, 0.5, 0.5, 0.5]),
            played("New", 3, [1.0, 1.0, 0.0, 0.0]),
            played("New", 4, [1.0, 0.5, 0.0, 0.0]),
        ],
        ignore_index=True,
    )
    comparison = SimpleNamespace(
        # The supervised policy has a second row, at its best temperature.
        methods=pd.DataFrame({"method": ["SFTOnly", "SFTOnly", "New"]}),
        protocol=SimpleNamespace(untrained="SFTOnly"),
        best_temperature=0.7,
        endpoints=pd.DataFrame(
            [
                ["area", True, "SFTOnly", 0.0, 0.25],
                ["area", True, "SFTOnly", 0.7, 1.0],
                ["last_round", False, "New", 0.0, 0.25],
                ["area", True, "New", 0.0, 0.1875],
            ],
            columns=["endpoint", "declared", "method", "temperature", "mean"],
        ).assign(score="success", lower=0.125, upper=0.5),
    )
    manifest = methods_comparison(
        comparison, episodes, {"SFTOnly": "SFT", "New": "New (rubric)"}, {"seeds": [1]}
    )
    assert list(manifest) == ["SFTOnly", "New"]
    assert manifest["New"] == {
        "n_rounds": 4,
        "best_eval_return": 0.5,
        "last_eval_return": 0.375,
        "mean_eval_return": (0.5 + 0.125 + 0.5 + 0.375) / 4,
        "best_pct_success": 0.5,
        "last_pct_success": 0.25,
        "mean_pct_success": (0.0 + 0.0 + 0.5 + 0.25) / 4,
        "total_eval_episodes": 16,
        "_per_round_eval": [
            {"round": 1, "avg_R": 0.5, "pct_success": 0.0, "pct_paid": 1.0, "n_ok": 4},
            {"round": 2, "avg_R": 0.125, "pct_success": 0.0, "pct_paid": 0.25, "n_ok": 4},
            {"round": 3, "avg_R": 0.5, "pct_success": 0.5, "pct_paid": 0.5, "n_ok": 4},
            {"round": 4, "avg_R": 0.375, "pct_success": 0.25, "pct_paid": 0.5, "n_ok": 4},
        ],
        "_endpoint": {
            "name": "area",
            "score": "success",
            "mean": 0.1875,
            "lower": 0.125,
            "upper": 0.5,
        },
        "_label": "New (rubric)",
        "_study": settings_digest({"seeds": [1]}),
    }
    only = manifest["SFTOnly"]
    assert (only["n_rounds"], only["best_eval_return"], only["total_eval_episodes"]) == (1, 0.25, 4)
    assert only["_endpoint"]["mean"] == 0.25
    assert (only["_label"], "T=0.7" in only["_notes"]) == ("SFT", True)
    json.dumps(manifest)
