"""Finds settings that a run of rl does not read."""

from hgrpo.sandbox.command_line import unread_fields
from hgrpo.sandbox.rl.settings import BANDITS, RlSettings


def unread(run: RlSettings) -> list[str]:
    """Return a line for each setting that was changed although this run does not read it."""
    task, rule = run.task, run.declared
    sequences, text, replays = task not in BANDITS, task == "lm_bandit", run.replay_capacity > 0
    return unread_fields(
        run,
        {
            f"task {task}": {
                "hidden": task == "mnist",
                "score_len": task == "masked_reversal",
                "model_name": text,
                "context_len": text,
                **dict.fromkeys(("vocab_size", "seq_len", "binary_reward"), sequences),
                **dict.fromkeys(("d_model", "nhead", "num_layers"), sequences or text),
            },
            rule.name: {
                "baseline": not rule.grouped,
                "group_size": run.samples_groups or rule.candidates,
                "grouped": not (rule.grouped or rule.candidates),
            },
            "a run without replay": {"replay_priority": replays, "replay_age_decay": replays},
            f"replay by {run.replay_priority}": {
                "replay_age_decay": not replays or run.replay_priority == "fresh_delight",
            },
        },
    )
