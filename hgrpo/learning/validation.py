"""Reads how well a policy does on the validation panel, from the summary of its evaluation."""

import json
from pathlib import Path

from hgrpo.errors import UserError


def greedy_validation(summary: Path) -> float:
    """Greedy success on the validation panel, from the summary of an evaluation.

    Raises:
        UserError: the file is damaged, or that panel was not played.
    """
    try:
        return float(json.loads(summary.read_bytes())["success"]["validation T=0"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{summary}: no greedy success on the validation panel") from None
