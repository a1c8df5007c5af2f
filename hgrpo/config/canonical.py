"""Write settings as one text or one hash, which are the same for equal settings."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

# Holds the digest of its job's settings, if the stage records one.
SUMMARY = "summary.json"


def as_json(settings: Mapping) -> str:
    """One line of JSON with sorted keys."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"))


def settings_digest(settings: Mapping) -> str:
    """Hash (16 hex digits) of `as_json`."""
    return hashlib.sha256(as_json(settings).encode()).hexdigest()[:16]


def made_with(summary: Path, settings: str) -> bool:
    """Whether a job wrote its summary.json with settings of this digest, as far as is known."""
    try:
        recorded = json.loads(summary.read_bytes()).get("settings")
    except (OSError, ValueError):
        recorded = None
    return settings in ("", recorded or settings)
