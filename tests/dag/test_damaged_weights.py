"""Damaged weights are found before Snakemake removes what was made from them."""

import re

import numpy as np
import pytest
from project_copy import paths_below
from safetensors.numpy import save

from hgrpo.base_model.safetensors_file import write_with_checksum
from hgrpo.cli import plan
from hgrpo.errors import UserError

ROUND = "results/grid/rl/flatGRPO/seed_11/round_1"


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (-1, "does not match its checksum"),
        pytest.param(40, "not a whole safetensors file", marks=pytest.mark.slow),
    ],
)
def test_damaged_weights_cost_no_result_that_was_made_from_them(checkout, kept, said, monkeypatch):
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
    assert "; nothing has run, and all results are kept; delete the file, then `snakemake" in last
    assert paths_below(checkout.root / "results") == before
    with monkeypatch.context() as changed, pytest.raises(UserError) as refused:
        changed.chdir(checkout.root)
        changed.setattr("sys.argv", ["plan", "study=grid"])
        plan.main()
    assert f"error: {refused.value}" == last
    # A run that makes the weights anew does not read the damaged ones.
    done = checkout.snakemake("--forcerun", f"{ROUND}/adapter/model.safetensors")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_advice_about_damaged_weights_makes_them_again(checkout):
    weights = checkout.root / ROUND / "adapter/model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:20])
    last = checkout.snakemake().stderr.splitlines()[-1]
    (path,) = re.findall("delete the file, then `snakemake (.*)`", last)
    weights.unlink()
    # The study's own command does not miss the file: the report is newer than what rests on it.
    assert checkout.planned() == set()
    done = checkout.snakemake(path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert weights.read_bytes() == whole
    # A real round takes other seconds than before; later rounds and evaluations do not read these.
    for name in ("train_log.json", "summary.json"):
        with (checkout.root / ROUND / name).open("a", encoding="utf-8") as file:
            file.write("\n")
    assert checkout.planned() == {
        "Merge the episodes of all arms",
        "Figures",
        "Tables and the report",
    }
