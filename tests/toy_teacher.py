"""Teaches a tiny policy to play a toy game, by imitation of scripted games."""

from collections.abc import Callable, Iterable

import numpy as np

from hgrpo.agent.conversation import Conversation
from hgrpo.games.streams import generator
from hgrpo.learning.imitation import Example, imitate
from hgrpo.learning.optimisers import sft_optimisers
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.policy.policy import Policy


def teach(
    policy: Policy,
    opening: str,
    game: Callable[[np.random.Generator], Iterable[tuple[str, str]]],
    stream: str,
    epochs: int,
) -> None:
    """Imitate 400 games; `game` draws the replies of one, each with the answer to it."""
    conversation, rng = Conversation(policy.tokenizer), generator(stream, 0)
    examples = []
    for _ in range(400):
        ids, spans = conversation.opening(opening), []
        for command, answer in game(rng):
            reply = conversation.reply(command)
            spans.append((len(ids), len(ids) + len(reply)))
            ids = ids + reply + conversation.observation(answer)
        examples.append(Example(ids[: spans[-1][1]], spans))
    settings = SftConfig(
        epochs=epochs,
        batch_trajectories=16,
        matrix_lr=0.02,
        lr=1e-2,
        warmup_steps=3,
        microbatch_tokens=4096,
    )
    imitate(policy, sft_optimisers(policy, settings), examples, [], settings)
