"""Downloads missing data files, and records name, size and hash of each file for the manifest.

The URLs come from `setup.sh` in the repository princeton-nlp/WebShop and, for trajectories, from
its issues 14 and 21. WebShop publishes no checksums. The checksums below were computed from public
copies of the files. All copies of a file were identical.
"""

import hashlib
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.games.fetch import Source, fetch
from hgrpo.games.user_path import files_below

# `confirm=t` skips Google Drive's confirmation page for large files.
_DRIVE = "https://drive.usercontent.google.com/download?id={}&export=download&confirm=t"

OFFICIAL = {
    "items_shuffle.json": Source(
        _DRIVE.format("1A2whVgOO0euk5O13n2iYDM0bQRkkRduB"),
        5_479_720_229,
        "2ef591d65df3af89e972ab72468eb82cbf124d876552d9f3678667edd620a6c8",
    ),
    "items_ins_v2.json": Source(
        _DRIVE.format("1s2j6NgHljiZzQNL3veZaAiyW_qDEgBNi"),
        186_295_270,
        "1d36af476bdb8f82a5da62bd8acdabe54cd8de2fa84010d37da5c4890feb447e",
    ),
    "items_shuffle_1000.json": Source(
        _DRIVE.format("1EgHdxQ_YxqIQlvvq5iKlCrkEKR6-j0Ib"),
        4_467_013,
        "30a4765c3a327af72d9a9a95a6b2486d516f0fa1d3ecd83681901ce82a21b269",
    ),
    "items_ins_v2_1000.json": Source(
        _DRIVE.format("1IduG0xl544V_A_jv3tHXC0kyFi7PnyBu"),
        147_099,
        "f88a36314a397b53b3d9c3fa5878e5f7b26d35019a51ec83fbedeca61a948f6f",
    ),
    "items_human_ins.json": Source(
        _DRIVE.format("14Kb5SPBk_jfdLZ_CDBNitW98QLDlKR5O"),
        5_137_548,
        "cf78667548a71786e1d9049c24b802e48e1084ad4bb021cae56ce1f6d96954a3",
    ),
    "all_trajs.zip": Source(_DRIVE.format("1GWC8UlUzfT9PRTRxgYOwuKSJp4hyV1dp")),
    "il_trajs_finalized_images.zip": Source(
        "https://github.com/princeton-nlp/WebShop/raw/master/"
        "baseline_models/data/il_trajs_finalized_images.zip"
    ),
}


def provide(path: Path, download: bool) -> dict[str, str | int]:
    """Return the name, size (bytes) and sha256 (hex) of a data file.

    With `download`, a file with an official name is downloaded if it is missing, and verified if it
    exists. The hash is always computed, because a stored hash could be outdated. A folder is
    treated as the concatenation of all its files in path order.

    Raises UserError if the file is missing and not downloaded, or if verification fails.
    """
    if download and path.name in OFFICIAL:
        return {"name": path.name} | fetch(OFFICIAL[path.name], path, "products.download")
    if not path.exists():
        raise UserError(
            f"{path}: not found; set `products.download: true` to download official files"
        )
    files = [file for file, _ in files_below(path)]
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as handle:
            hashlib.file_digest(handle, lambda: digest)
    size = sum(file.stat().st_size for file in files)
    return {"name": path.name, "size": size, "sha256": digest.hexdigest()}
