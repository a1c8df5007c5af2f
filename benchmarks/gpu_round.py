"""Time training steps on ALFWorld with a model of the shape of Qwen2.5-1.5B.

Each step collects 8 rollouts for each of 16 tasks.

The weights are random, so the policy learns nothing. Every reply reaches its token limit, and
every episode reaches its turn cap, so rollouts are as slow as possible. Advantages are drawn at
random. Otherwise all advantages would be 0, because every episode of a random policy fails. The
base is bfloat16, its LoRA adapter is float32, and gradient checkpointing is on. A step has all
parts of a real step: it pushes and checks weights, collects rollouts, computes the reference's
log-probs, and takes two optimiser steps. The first step is a warm-up and is not counted.

Model FLOPs of an update with LoRA:
- Weights: 2 FLOPs per weight and token in the forward pass, and 2 for the gradient of activations.
  Frozen weights have no gradient.
- Attention: 4 x layers x width x tokens x mean context in the forward pass, twice that in the
  backward pass.
- Reference: another forward pass over every 8th trajectory.
Recomputation due to checkpointing is not counted. MFU is the rate of these FLOPs divided by
--peak-tflops.

Examples:
  python benchmarks/gpu_round.py --peak-tflops 989        # an H100 or H200, dense bfloat16
  python benchmarks/gpu_round.py --rehearse               # the same steps, tiny, on any machine
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.optim import AdamW
from transformers import Qwen2Config, Qwen2ForCausalLM

from hgrpo.agent.conversation import Conversation
from hgrpo.agent.tokenizer import END, PAD, START, train_tokenizer
from hgrpo.games.alfworld import assets
from hgrpo.games.alfworld.settings import AlfworldSettings
from hgrpo.games.kinds import load
from hgrpo.learning.batch import TrainingSequence, training_sequences
from hgrpo.learning.settings import TrainingConfig
from hgrpo.learning.update import Learner
from hgrpo.policy.load import load_policy
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import autocast_dtype
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.canary import check_sync
from hgrpo.rollout.collector import Collector
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.torch.engine import TorchEngine
from hgrpo.trajectories.trajectory import Trajectory

SHAPES = {
    "qwen2.5-1.5b": {
        "vocab_size": 151_936,
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
    },
    "rehearsal": {
        "vocab_size": 4096,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
}
LENGTH, WATCHED = 8192, 8


def main() -> None:
    """Play and update a few times; print times and memory as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=2, help="timed steps, after one warm-up step")
    parser.add_argument("--tasks", type=int, default=16)
    parser.add_argument("--rollouts", type=int, default=8, help="rollouts per task, K")
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--reply", type=int, default=12, help="tokens per reply")
    parser.add_argument("--microbatch-tokens", type=int, default=32_768)
    parser.add_argument("--peak-tflops", type=float, help="peak TFLOP/s of the device, for MFU")
    parser.add_argument("--rehearse", action="store_true", help="use a tiny model and few turns")
    args = parser.parse_args()
    shape = "rehearsal" if args.rehearse else "qwen2.5-1.5b"
    if args.rehearse:
        args.tasks, args.rollouts, args.turns = 4, 2, 6
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), shape, args), indent=1))


def measure(folder: Path, shape: str, args: argparse.Namespace) -> dict:
    """Return all measurements. Games and base model are written to `folder`."""
    env, tasks = _games(folder / "assets", args.tasks)
    learner = _learner(folder, shape, args)
    policy = learner.policy
    conversation = Conversation(policy.tokenizer)
    sampling = Sampling(1.0, args.reply)
    capacity = args.tasks * args.rollouts
    engine = TorchEngine(policy, capacity, sampling)
    collector = Collector(engine, conversation, env, args.turns, args.reply)
    rows = []
    for step in range(1 + args.steps):
        _start_memory(policy.device)
        began = _now(policy.device)
        engine.load_weights(policy)
        check_sync(engine, policy, f"gpu-round {step}")
        pushed = _now(policy.device)
        groups = collector.collect(tasks, args.rollouts, ("gpu-round", step))
        played = _now(policy.device)
        flat = [trajectory for group in groups for trajectory in group]
        sequences = _random_advantages(flat, step)
        learner.update(sequences, range(len(sequences)))
        ended = _now(policy.device)
        rows.append(
            {
                "push_s": pushed - began,
                "play_s": played - pushed,
                "update_s": ended - played,
                "step_s": ended - began,
                "trajectories": len(flat),
                "sampled_tokens": sum(t.action_tokens for t in flat),
                "update_tokens": sum(len(t.token_ids) for t in flat),
                "update_flops": update_flops(policy, flat),
                "peak_gb": _peak_memory(policy.device),
            }
        )
    timed = rows[1:]
    total = {name: sum(row[name] for row in timed) for name in rows[0] if name != "peak_gb"}
    flops = total["update_flops"] / total["update_s"]
    return {
        "device": _device_name(policy.device),
        "shape": shape,
        "parameters": sum(p.numel() for p in policy.causal_lm.parameters()),
        "trajectories_per_s": total["trajectories"] / total["step_s"],
        "share_play": total["play_s"] / total["step_s"],
        "share_update": total["update_s"] / total["step_s"],
        "share_push": total["push_s"] / total["step_s"],
        "sampled_tokens_per_s": total["sampled_tokens"] / total["play_s"],
        "update_tokens_per_s": total["update_tokens"] / total["update_s"],
        "update_tflops": flops / 1e12,
        "mfu": flops / 1e12 / args.peak_tflops if args.peak_tflops else None,
        "peak_gb": max((row["peak_gb"] for row in rows if row["peak_gb"]), default=None),
        "steps": rows,
    }


def update_flops(policy: Policy, trajectories: Sequence[Trajectory]) -> float:
    """Model FLOPs of one update with LoRA, as defined in the module's docstring."""
    config = policy.architecture
    weights = sum(p.numel() for n, p in policy.causal_lm.named_parameters() if "embed" not in n)
    lengths = np.array([len(t.token_ids) for t in trajectories], dtype=float)
    sampled = float(sum(t.action_tokens for t in trajectories))
    width = config.num_attention_heads * (config.hidden_size // config.num_attention_heads)
    attention = 4 * config.num_hidden_layers * width * float((lengths**2 / 2).sum())
    head = 2 * config.vocab_size * config.hidden_size * sampled
    forward = 2 * weights * float(lengths.sum()) + attention + head
    return 2 * weights * float(lengths.sum()) + 2 * attention + head + forward * (1 + 1 / WATCHED)


def _games(folder: Path, number: int):
    config = AlfworldSettings(
        name="alfworld",
        games={"generate": {}},
        panels={"train": number, "validation": 1, "test": 1},
    )
    made = assets.make(config, 0, folder, {})
    tasks = [task for split, task in made if split == "train"]
    return load(config.name).factory(config, folder), tasks


def _learner(folder: Path, shape: str, args: argparse.Namespace) -> Learner:
    """Make a policy with random weights and the given shape, its reference, and an optimiser."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in sorted((folder / "assets").rglob("game.tw-pddl"))
    ]
    tokenizer = train_tokenizer([text[:20_000] for text in texts], 2048, load("alfworld").cut)
    base, adapter = folder / "base", folder / "adapter"
    config = Qwen2Config(
        **SHAPES[shape],
        max_position_embeddings=LENGTH,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.token_to_id(START),
        eos_token_id=tokenizer.token_to_id(END),
        pad_token_id=tokenizer.token_to_id(PAD),
    )
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(base)
    tokenizer.save(str(base / "tokenizer.json"))
    model = ModelConfig(
        name=shape,
        path=str(base),
        adapt="lora",
        base_dtype="bfloat16",
        attention="sdpa",
        gradient_checkpointing=True,
    )
    policy = load_policy(model, base)
    policy.save_adapter(adapter)
    policy.load_reference(adapter)
    training = TrainingConfig(
        tasks_per_step=args.tasks,
        rollouts_per_task=args.rollouts,
        max_action_tokens=args.reply,
        microbatch_tokens=args.microbatch_tokens,
        lr=1e-5,
    )
    optimiser = AdamW([parameter for _, parameter in policy.trainable], lr=training.lr)
    dtype = autocast_dtype(model, policy.device)
    return Learner(policy, optimiser, training.kl.init, training, dtype)


def _random_advantages(trajectories: Sequence[Trajectory], step: int) -> list[TrainingSequence]:
    rng = np.random.default_rng(step)
    for trajectory in trajectories:
        for turn in trajectory.turns:
            turn.advantage = float(rng.normal())
    return training_sequences(trajectories)


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _start_memory(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()


def _peak_memory(device: torch.device) -> float | None:
    """Peak memory of the device in GB; None on a CPU."""
    return torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else None


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name() if device.type == "cuda" else "CPU"


if __name__ == "__main__":
    main()
