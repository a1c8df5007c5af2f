"""The size of a piece's transformer. Importing this module imports no torch."""

from pydantic import Field

from hgrpo.config.strict import Strict


class TransformerSettings(Strict):
    """Size of a `hgrpo.sandbox.nets.transformer.Transformer`."""

    d_model: int = Field(64, gt=0, description="width of the transformer")
    nhead: int = Field(2, gt=0, description="attention heads")
    num_layers: int = Field(2, gt=0, description="blocks of the transformer")

    def heads_fit(self) -> tuple[bool, str]:
        """Whether the heads cannot share the width, and the line that says so."""
        return (
            self.d_model % self.nhead != 0,
            f"d_model {self.d_model} is no multiple of nhead {self.nhead}",
        )
