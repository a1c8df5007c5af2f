"""docs/commands.md and docs/artefacts.md against the code: every command, every log column."""

from hgrpo.credit.judge.protocol import CALL_FAILURES, FALLBACKS
from hgrpo.stages.order import STAGES

SHARED = {"__init__", "entry", "run_stage", "stage"}
COLUMNS = {
    "judge/accounting.py": [
        *("judged", "cache_hits", "calls", "retries", "input_tokens", "output_tokens"),
        *("dollars", "dollars_unconfirmed", "fallbacks", "fallback_share"),
    ],
    "turnrd/diagnostics.py": [
        *("alpha_mean", "alpha_var", "alpha_max", "alpha_entropy", "alpha_entropy_ratio"),
        "alpha_progress_corr",
    ],
    "turnrd/model.py": ["cls_query_norm"],
    "../rollout/continuations.py": ["cf_branches", "cf_replies", "cf_replayed_turns", "cf_tokens"],
    "state_graph/diagnostics.py": [
        *("step_nonzero_share", "state_single_share", "state_one_rollout_share"),
        *("step_floored_share", "action_stochastic_share", "step_to_trajectory"),
        *("step_corr_gigpo", "step_corr_grpo"),
    ],
}


def test_every_command_is_on_the_page(project):
    page = (project / "docs/commands.md").read_text(encoding="utf-8")
    commands = {path.stem for path in (project / "hgrpo/cli").glob("*.py")} - SHARED
    commands |= set(STAGES)
    assert [name for name in sorted(commands) if f"`{name}`" not in page] == []


def test_every_log_column_of_an_assigner_is_explained(project):
    page = (project / "docs/artefacts.md").read_text(encoding="utf-8")
    for source, names in COLUMNS.items():
        code = (project / "hgrpo/credit" / source).read_text(encoding="utf-8")
        prefix = "judge_" if source.startswith("judge") else ""
        assert [name for name in names if f'"{name}"' not in code] == []
        assert [name for name in names if f"`{prefix}{name}`" not in page] == []
    assert [name for name in (*CALL_FAILURES, *FALLBACKS) if f"`{name}`" not in page] == []
