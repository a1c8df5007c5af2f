"""The oracle's ceiling on real products: what a perfect shopper is paid."""

from collections import Counter

import numpy as np
import pytest
from places import SHARED

from hgrpo.games.webshop import assets
from hgrpo.games.webshop.env import open_goals
from hgrpo.games.webshop.expert import ceiling
from hgrpo.games.webshop.reward import normalise
from hgrpo.games.webshop.settings import WebshopSettings

SAMPLE = SHARED / "data/webshop_sample"


@pytest.mark.extra("webshop")
def test_the_ceiling_on_the_official_sample(tmp_path, capsys):
    """People's goals all pay 1; a few synthetic ones cannot, and only because of colours."""
    if not SAMPLE.is_dir():
        pytest.skip(f"the official sample is not on this machine: {SAMPLE}")
    config = WebshopSettings(
        name="webshop",
        goals="both",
        products={"folder": str(SAMPLE)},
        panels={"test": 1, "validation": 1},
    )
    tasks = [task for _, task in assets.make(config, 0, tmp_path, Counter())]
    goals = open_goals(tmp_path)
    # `make` leaves out goals that occur twice.
    assert len(goals) - 5 <= len(tasks) <= len(goals)
    paid: dict[str, list[float]] = {"synthetic": [], "human": []}
    for task, row in zip(tasks, ceiling(config, tmp_path, tasks), strict=True):
        goal = goals.goal(int(task.path))
        human = any(isinstance(option, str) for option in goal.options)
        paid["human" if human else "synthetic"].append(row["score"])
        if row["score"] < 1.0:
            # Normalising the chosen value gives a colour that is not one of its words.
            assert any(normalise(value) not in value.split() for _, value in goal.options)
    with capsys.disabled():
        for kind, scores in paid.items():
            print(
                f"\nceiling, {len(scores)} {kind} goals: mean {np.mean(scores):.4f}, "
                f"success {np.mean(np.array(scores) == 1.0):.4f}, least {min(scores):.3f}"
            )
    assert paid["human"]
    assert set(paid["human"]) == {1.0}
    assert 0.99 <= np.mean(paid["synthetic"]) < 1.0
    assert min(paid["synthetic"]) >= 0.5
    # The published data had 194 of 200.
    assert np.mean(np.array(paid["synthetic"]) == 1.0) >= 0.97
