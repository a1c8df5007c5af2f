"""Rank correlation of arms' agreement with the truth and their endpoints."""

import agreement_speed
import pandas as pd
import pytest
from scipy.stats import spearmanr


def test_points_are_arms_with_their_mean_endpoint(tmp_path):
    truth = pd.DataFrame(
        {
            "round": [0, 0, 0, 0, 0, 2],
            "method": ["flatGRPO", "flatGRPO_AA", "B", "truth", "shuffled", "B"],
            "advantage_pearson": [0.2, 0.2, 0.5, 1.0, 0.1, 0.9],
            "within_pearson": [None, None, 0.4, 1.0, 0.0, 0.9],
            "cosine": [0.4, 0.4, 0.7, 1.0, 0.4, 0.9],
        }
    ).assign(label="", advantage_pearson_lower=0.0, advantage_pearson_upper=1.0)
    truth.to_csv(tmp_path / "truth.csv", index=False)
    runs = pd.DataFrame(
        {
            "method": ["SFTOnly", "SFTOnly", "flatGRPO", "flatGRPO", "B", "B"],
            "temperature": [0.0, 0.3, 0.0, 0.0, 0.0, 0.0],
            "seed": [1, 1, 1, 2, 1, 2],
            "endpoint": [0.1, 0.2, 0.3, 0.5, 0.6, 0.8],
        }
    )
    runs.to_csv(tmp_path / "seeds.csv", index=False)
    arms = agreement_speed.points(tmp_path).set_index("method")
    assert list(arms.index) == ["flatGRPO", "B"]
    assert arms["mean"].tolist() == pytest.approx([0.4, 0.7])
    assert arms["sem"].tolist() == pytest.approx([0.1, 0.1])
    assert arms["advantage_pearson"].tolist() == [0.2, 0.5]
    assert arms["within_pearson"].tolist() == [0.0, 0.4]  # constant within trajectories


def test_correlations_are_spearmans(tmp_path):
    agreement = [0.1, 0.2, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    endpoint = [0.30, 0.32, 0.31, 0.36, 0.33, 0.35, 0.41, 0.38, 0.40]
    arms = pd.DataFrame(dict.fromkeys(agreement_speed.MEASURES, agreement)).assign(mean=endpoint)
    arms.loc[0, "cosine"] = None
    ranks = agreement_speed.correlations(arms).set_index("measure")
    assert ranks["arms"].tolist() == [9, 9, 8]
    whole = ranks.loc["advantage_pearson"]
    assert whole["spearman"] == pytest.approx(spearmanr(agreement, endpoint).statistic, abs=1e-12)
    assert whole["lower"] < whole["spearman"] < whole["upper"] <= 1
    assert ranks.loc["cosine", "spearman"] == pytest.approx(
        spearmanr(agreement[1:], endpoint[1:]).statistic, abs=1e-12
    )
