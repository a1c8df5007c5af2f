"""Trains one arm with all its seeds, and writes its rows."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hgrpo import parquet
from hgrpo.atomic import atomic_folder, write_json
from hgrpo.config.read import validate
from hgrpo.sandbox.command_line import prepare_torch
from hgrpo.sandbox.studies.pieces import PIECES

ROWS, SUMMARY = "rows.parquet", "summary.json"


def train_arm(piece: str, values: Mapping[str, Any], code: str, target: Path) -> None:
    """Train a run with the settings `values` and create the folder `target` atomically.

    rows.parquet has one row per evaluation and seed. summary.json contains the piece, the settings,
    the hash of the code and the training time in seconds.

    Raises:
        UserError: the settings are invalid, or training fails.
    """
    import pandas as pd
    import torch

    prepare_torch()
    settings = validate(PIECES[piece].model, values, piece)
    begin = time.perf_counter()
    rows = PIECES[piece].rows(settings)
    seconds = time.perf_counter() - begin
    summary = {
        "piece": piece,
        "settings": settings.model_dump(mode="json"),
        "code": code,
        "seconds": round(seconds, 3),
        "torch": torch.__version__,
    }
    with atomic_folder(target) as folder:
        pd.DataFrame(rows).to_parquet(folder / ROWS, index=False, **parquet.WRITE)
        write_json(folder / SUMMARY, summary)
