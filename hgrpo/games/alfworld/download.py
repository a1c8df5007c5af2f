"""Downloads the published games.

The URLs are copied from `alfworld-download` (package alfworld 0.4.2). One archive contains the
games (`game.tw-pddl`), and the other contains annotated goals (`traj_data.json`). Both use
the layout `json_2.1.1/<split>/<task>/<trial>/`. The authors publish no checksums, so those of the
downloaded archives are recorded in a receipt next to the games.

Because an archive could be malicious, only files with these two names are unpacked. They are
written only to paths of this layout, never as links, and only up to a maximum size.
"""

import json
import re
import zipfile
from pathlib import Path

from hgrpo.errors import BROKEN_ZIP, UserError
from hgrpo.games import tracking
from hgrpo.games.fetch import Source, fetch

_RELEASES = "https://github.com/alfworld/alfworld/releases/download"
ARCHIVES = {
    "tw-pddl.zip": Source(f"{_RELEASES}/0.4.0/json_2.1.2_tw-pddl.zip"),
    "json.zip": Source(f"{_RELEASES}/0.2.2/json_2.1.1_json.zip"),
}
RECEIPT = "downloaded.json"
_MEMBER = re.compile(
    r"json_2\.1\.1/(?P<path>(?:train|valid_seen|valid_unseen)/[^/.\\][^/\\]*/[^/.\\][^/\\]*"
    r"/(?:game\.tw-pddl|traj_data\.json))"
)

# Maximum size (bytes) of a file to unpack, about 100 times the size of a game's file.
_LARGEST = 1 << 25


def fetch_games(root: Path) -> list[dict]:
    """Download the games to `root`; return the name, size and SHA-256 of each archive.

    If an earlier call has already downloaded the games to `root`, return its result. If `root`
    contains games from another source, download nothing and return []. Archives are deleted only
    after both have been unpacked, so that an interrupted download can be resumed.

    Raises:
        UserError: the network is unavailable, or a file is not a zip archive of games.
    """
    receipt = root / RECEIPT
    if receipt.exists():
        return json.loads(receipt.read_bytes())
    unpacking = any((root / name).exists() for name in ARCHIVES)
    if not unpacking and any(root.glob("*/*/*/game.tw-pddl")):
        return []
    rows = [
        {"name": source.url} | fetch(source, root / name, "games.download")
        for name, source in ARCHIVES.items()
    ]
    for name in ARCHIVES:
        _unpack(root / name, root)
    written = receipt.with_suffix(".tmp")
    written.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    written.replace(receipt)
    for name in ARCHIVES:
        (root / name).unlink()
    return rows


def _unpack(archive: Path, root: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as opened:
            members = {
                member: match["path"]
                for member in opened.namelist()
                if (match := _MEMBER.fullmatch(member))
            }
            if not members:
                raise UserError(
                    f"{archive}: contains no games of json_2.1.1; delete it to try again"
                )
            for member, path in tracking.bar(members.items(), desc=archive.name, unit="file"):
                size = opened.getinfo(member).file_size
                if size > _LARGEST:
                    raise UserError(f"{archive}: {member}: too large for a game ({size:,} bytes)")
                target = root / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(opened.read(member))
    except BROKEN_ZIP as error:
        raise UserError(f"{archive}: not a zip archive ({error}); delete it to try again") from None
