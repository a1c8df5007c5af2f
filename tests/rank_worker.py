"""One of several processes that share a gradient and a round; `test_ranks.py` starts them."""

import sys
from pathlib import Path

import numpy as np
import torch
from hall import collect
from tiny_policy import make_policy
from torch.optim import SGD
from toy_round import TRAINING, imitate_random_doors, make_round

from hgrpo.learning.batch import training_sequences
from hgrpo.learning.ranks import Ranks, joined_ranks
from hgrpo.learning.settings import KlConfig
from hgrpo.learning.update import Learner


def shared_gradient(policy, reference: Path, ranks: Ranks, cap: float | None) -> dict:
    """The gradient of one minibatch, and its diagnostics."""
    rng = np.random.default_rng(3)
    trajectories = collect(policy, 12)
    for trajectory in trajectories:
        for turn in trajectory.turns:
            turn.advantage = float(rng.normal())
    sequences = training_sequences(trajectories)
    policy.load_reference(reference)
    training = TRAINING.model_copy(
        update={
            "kl": KlConfig(init=0.1),
            "microbatch_tokens": 60,
            "minibatches": 1,
            "importance_cap": cap,
        }
    )
    parameters = [parameter for _, parameter in policy.trainable]
    learner = Learner(policy, SGD(parameters, lr=1.0), 0.1, training, None, ranks)
    before = policy.trained_state()
    row = learner.update(sequences, range(len(sequences)))
    moved = {name: before[name] - parameter.detach() for name, parameter in policy.trainable}
    policy.load_trained_state(before)
    return {"row": row, "moved": moved}


def measure(folder: Path, ranks: Ranks) -> dict:
    """Gradients, then the weights and log rows of a round of two steps."""
    policy = make_policy(folder)
    imitate_random_doors(policy)
    outcome = {
        "plain": shared_gradient(policy, folder, ranks, None),
        "corrected": shared_gradient(policy, folder, ranks, 2.0),
    }
    play = make_round(policy, folder, folder / "scratch")
    (folder / "scratch").mkdir(exist_ok=True)
    play.learner.training = TRAINING.model_copy(update={"steps_per_round": 2, "tasks_per_step": 5})
    play.learner.ranks = ranks
    rows = play.run(lambda row: None, lambda: None)
    state = {name: parameter.detach() for name, parameter in policy.trainable}
    return outcome | {"rows": rows, "weights": state}


def main() -> None:
    """Write what this process found into a folder of its own."""
    ranks = joined_ranks()
    root = Path(sys.argv[1])
    folder = root / f"rank_{ranks.index}"
    folder.mkdir()
    torch.save(measure(folder, ranks), folder / "measured.pt")


if __name__ == "__main__":
    main()
