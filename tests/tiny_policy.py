"""A very small policy over a handful of sentences, and a toy environment to play it in."""

from pathlib import Path

from hgrpo.agent.tokenizer import train_tokenizer
from hgrpo.base_model.make import build_tiny
from hgrpo.base_model.settings import TinyModel
from hgrpo.games.base import Observation, Step, Task
from hgrpo.games.kinds import load
from hgrpo.policy.load import load_policy
from hgrpo.policy.policy import Policy
from hgrpo.policy.settings import LoraConfig, ModelConfig

DOORS = ("door 1", "door 2", "door 3")
TEXTS = [
    "You are in a hall with a door 1, a door 2, and a door 3.\n\nYour task is to: find a coin.",
    "open door 1",
    "open door 2",
    "open door 3",
    "The door 1 is empty.",
    "The door 2 is empty.",
    "The door 3 is empty.",
    "Nothing happens.",
]


def make_policy(
    folder: Path, adapt: str = "full", kv_heads: int = 2, hidden_size: int = 32
) -> Policy:
    """A fresh policy whose base is written to `folder`."""
    tiny = TinyModel(
        hidden_size=hidden_size,
        layers=2,
        heads=4,
        kv_heads=kv_heads,
        intermediate_size=48,
        max_vocab=400,
    )
    config = ModelConfig(
        name="test",
        tiny=tiny,
        adapt=adapt,
        lora=LoraConfig(rank=4, alpha=8) if adapt == "lora" else LoraConfig(),
        train_dtype="float32",
    )
    tokenizer = train_tokenizer(TEXTS * 3, tiny.max_vocab, load("alfworld").cut)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    full = config.model_copy(update={"adapt": "full"})
    Policy(build_tiny(tiny, tokenizer, seed=1), full, folder).save_adapter(folder)
    return load_policy(config, folder)


class HallEnv:
    """A coin lies behind one of three doors; which one is in the task's id."""

    def reset(self, task: Task) -> Observation:
        self._coin = f"door {task.task_id[-1]}"
        self._opened = []
        return Observation("find a coin.", TEXTS[0])

    def step(self, action: str) -> Step:
        door = action.removeprefix("open ")
        known = action.startswith("open ") and door in DOORS
        won = known and door == self._coin
        self._opened += [door] if known else []
        text = f"The {door} is empty." if known else "Nothing happens."
        return Step(
            Observation("find a coin.", text),
            float(won),
            float(won),
            won,
            won,
            {"admissible": known},
        )

    def situation(self) -> tuple[str, str]:
        return f"opened {' '.join(sorted(set(self._opened)))}", "all doors"

    def admissible_commands(self) -> list[str]:
        return [f"open {door}" for door in DOORS]


def hall_tasks(number: int) -> list[Task]:
    """Tasks of the hall; the door changes from one to the next."""
    return [
        Task(f"hall-{i}-{i % 3 + 1}", f"hall-{i}", f"hash-{i}", f"door{i % 3 + 1}")
        for i in range(number)
    ]
