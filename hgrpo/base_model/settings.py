"""Settings of a base model that is built (tiny) or unpacked from a Python package."""

from pydantic import Field

from hgrpo.config.strict import Strict


class TinyModel(Strict):
    """A small model of the Qwen2 architecture with random initial weights, for environment text."""

    hidden_size: int = Field(128, gt=0, description="width of the hidden states")
    layers: int = Field(3, gt=0, description="number of transformer layers")
    heads: int = Field(2, gt=0, description="number of attention heads")
    kv_heads: int = Field(2, gt=0, description="number of key-value heads")
    intermediate_size: int = Field(256, gt=0, description="width inside the feed-forward layers")
    max_positions: int = Field(1024, gt=0, description="maximum conversation length in tokens")
    max_vocab: int = Field(
        2048,
        gt=256,
        description="maximum vocabulary size; the vocabulary is learnt from environment text",
    )
    cut: str | None = Field(
        None,
        description="name of the rule that splits text into pieces; null: the environment's rule, "
        "which is also the only valid name",
    )
    embedding_std: float = Field(
        0.02,
        gt=0,
        description="standard deviation of the initial token embeddings; if it is too small, rare "
        "tokens cannot become probable",
    )
    pretrain_trajectories: int = Field(
        0, ge=0, description="expert trajectories for pretraining, with a loss on every token"
    )


class PackagedModel(Strict):
    """A pretrained model stored as a GGUF file in the wheel of a Python package."""

    name: str = Field(description="name of the package", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    version: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9.+!_-]*$", description="version of the package"
    )
    sha256: str | None = Field(
        None, description="SHA-256 of the wheel, in hex", pattern=r"^[0-9a-f]{64}$"
    )
    wheel: str | None = Field(
        None,
        min_length=1,
        description="path of the wheel or of its folder, for machines without network access; may "
        "contain $VARIABLES",
    )
