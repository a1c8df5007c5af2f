"""Canonical JSON and hash of settings."""

import hashlib
import json
from collections.abc import Mapping


def as_json(settings: Mapping) -> str:
    """One line of JSON with sorted keys."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"))


def settings_digest(settings: Mapping) -> str:
    """Hash (16 hex digits) of `as_json`."""
    return hashlib.sha256(as_json(settings).encode()).hexdigest()[:16]
