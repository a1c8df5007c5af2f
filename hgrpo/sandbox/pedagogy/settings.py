"""Settings of a run of pedagogy, named like the flags of the original sandbox."""

from typing import Literal

from pydantic import Field

from hgrpo.formulas import kinds
from hgrpo.formulas.rule import Need
from hgrpo.sandbox.run_settings import RunSettings, TransformerSettings, unread

RULES = kinds.of_piece("pedagogy")
NEEDS: dict[str, Need["PedagogySettings"]] = {
    "groups": Need("groups (group_size above 1)", lambda run: run.group_size > 1),
    "teacher_steps": Need(
        "a teacher that learns (teacher_steps above 0)", lambda run: run.teacher_steps > 0
    ),
    "penalty_counts": Need(
        "a learnability_lambda above 0; otherwise, all forms of the reward equal success",
        lambda run: run.rule.strength > 0,
        degenerate=True,
    ),
    "tokens_to_compare": Need(
        "a completion_len above 1; for a single token, the spike equals the mean",
        lambda run: run.rule.penalty != "spike" or run.completion_len > 1,
        degenerate=True,
    ),
}


class PedagogySettings(RunSettings, TransformerSettings):
    """Settings of one arm of pedagogy, for a set of seeds."""

    RULES = RULES
    NEEDS = NEEDS

    method: str = Field("PedagogicalRL", description="name of the update rule")
    num_steps: int = Field(300, gt=0, description="training steps")
    batch_size: int = Field(96, gt=0, description="rollouts per batch")
    teacher_steps: int = Field(1, ge=0, description="teacher batches per training step")
    student_steps: int = Field(1, gt=0, description="student batches per training step")
    inner_epochs: int = Field(
        1, gt=0, description="GRPO updates on each batch; with 1, the clip has no effect"
    )
    teacher_lr: float = Field(1e-3, gt=0, description="learning rate of the teacher's Adam")
    student_lr: float = Field(1e-3, gt=0, description="learning rate of the student's Adam")
    max_grad_norm: float = Field(1.0, gt=0, description="norm to which gradients are clipped")
    content_vocab_size: int = Field(5, ge=2, le=64, description="modulus n; numbers are below n")
    completion_len: int = Field(3, gt=0, description="tokens per rollout")
    answer_len: int = Field(
        1, gt=0, description="number of answer tokens at the end: x0 + x1, x0 + 2 x1, ..."
    )
    compat: Literal["none", "reference"] = Field(
        "none",
        description="inputs of an evaluation. reference: 1000 random ones, as in the original; "
        "none: every input once",
    )

    def refusals(self) -> tuple[tuple[bool, str], ...]:
        """Checks that do not depend on the rule, as pairs (whether the check fails, message)."""
        return (
            *super().refusals(),
            (
                self.answer_len > self.completion_len,
                f"answer_len {self.answer_len} exceeds completion_len {self.completion_len}",
            ),
            *unread(self, self.method, teacher_lr=self.rule.teaches),
            (
                self.teacher_steps > 1 and not self.rule.teaches,
                f"teacher_steps: {self.method} does not use this setting; remove it",
            ),
        )
