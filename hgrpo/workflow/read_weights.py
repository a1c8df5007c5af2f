"""Checks the weights that jobs read, before Snakemake removes what these jobs wrote earlier."""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from hgrpo.errors import UserError

_SUFFIX = ".safetensors"


def check_read_weights(jobs: Iterable[tuple[Collection[str], Collection[str]]]) -> None:
    """Refuse to start if a job would lose its earlier results because it reads damaged weights.

    A damaged file is newer than the results that were made from it, so their jobs run again. Each
    of these jobs would find the damage, but only after Snakemake has removed its earlier outputs.
    Weights that the same run makes anew are not read, nor those of jobs without earlier outputs.

    Args:
        jobs: (input files, output files) of each job to run.

    Raises:
        UserError: a file is no whole safetensors file, or does not match the checksum in it. The
            message says how to make it again: a later run of the study might not miss it.
    """
    jobs = list(jobs)
    made = {path for _, outputs in jobs for path in outputs}
    read = {
        path
        for inputs, outputs in jobs
        if any(map(os.path.exists, outputs))
        for path in inputs
        if path.endswith(_SUFFIX) and path not in made and os.path.exists(path)
    }
    if not read:
        return
    # Imported here: most runs do not need the packages that read weights.
    from hgrpo.base_model.safetensors_file import DamagedFileError, check_checksum

    for path in sorted(read):
        try:
            check_checksum(Path(path))
        except DamagedFileError as error:
            # The error's own advice is for downloaded models too.
            raise UserError(
                f"{error.damage}; nothing has run, and all results are kept; delete the file, then "
                f"`snakemake {path}`, with this command's profile and --config, makes it again"
            ) from None
