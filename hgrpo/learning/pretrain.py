"""Pretraining of the tiny base model: next-token prediction on the text of expert trajectories."""

from collections.abc import Callable
from pathlib import Path

from hgrpo.games.streams import generator
from hgrpo.learning.imitation import examples, imitate
from hgrpo.learning.optimisers import sft_optimisers
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.policy.load import load_policy
from hgrpo.policy.settings import ModelConfig

# Set every value that training reads, even to its default. The code hash covers this file, but not
# the defaults of settings.
_SETTINGS = SftConfig(
    epochs=1.0,
    batch_trajectories=32,
    matrix_lr=0.012,
    lr=2e-3,
    warmup_steps=10,
    weight_decay=0.0,
    microbatch_tokens=2048,
)


def pretrain(
    config: ModelConfig,
    demonstrations: list[dict],
    seed: int,
    folder: Path,
    on_step: Callable[[dict, int], None] = lambda row, steps: None,
) -> list[dict]:
    """Train the tiny model in `folder` in place for one epoch, and return the rows of `imitate`.

    The stream ("pretrain", seed) chooses `tiny.pretrain_trajectories` of the demonstrations. Those
    longer than `tiny.max_positions` tokens are skipped. `on_step` is called after each step with
    the row of this step and the total number of steps.
    """
    policy = load_policy(config.model_copy(update={"adapt": "full"}), folder)
    order = generator("pretrain", seed).permutation(len(demonstrations))
    chosen = [demonstrations[i] for i in order[: config.tiny.pretrain_trajectories]]
    train, _ = examples(chosen, policy.conversation, config.tiny.max_positions, whole_text=True)
    settings = _SETTINGS.model_copy(update={"seed": seed})
    steps = -(-len(train) // settings.batch_trajectories)
    optimisers = sft_optimisers(policy, settings)
    rows = imitate(policy, optimisers, train, [], settings, on_step=lambda row: on_step(row, steps))
    policy.save_adapter(folder)
    return rows
