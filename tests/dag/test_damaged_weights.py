"""Damaged weights are found before Snakemake removes what was made from them."""

import numpy as np
import pytest
from project_copy import paths_below
from safetensors.numpy import save

from hgrpo.base_model.safetensors_file import write_with_checksum

ROUND = "results/grid/rl/flatGRPO/seed_11/round_1"


@pytest.mark.parametrize(
    ("kept", "said"),
    [(-1, "does not match its checksum"), (40, "not a whole safetensors file")],
)
def test_damaged_weights_cost_no_result_that_was_made_from_them(checkout, kept, said):
    weights = checkout.root / ROUND / "adapter/model.safetensors"
    write_with_checksum(save({"w": np.zeros(4, np.float32)}), weights)
    whole = weights.read_bytes()
    weights.write_bytes(whole[:kept] + b"!")
    assert "flatGRPO, seed 11: evaluation of round 1" in checkout.planned()
    before = paths_below(checkout.root / "results")
    done = checkout.snakemake()
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"error: {ROUND}/adapter/model.safetensors: {said}")
    assert last.endswith("; nothing has run, and all results are kept")
    assert paths_below(checkout.root / "results") == before
    # A run that makes the weights anew does not read the damaged ones.
    done = checkout.snakemake("--forcerun", f"{ROUND}/adapter/model.safetensors")
    assert done.returncode == 0, done.stdout + done.stderr
