"""Read Parquet files and validate their numbers; define options for reading and writing.

Pages have checksums. Without them, a corrupted byte in a column of numbers would not be detected.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.errors import UserError, one_line

if TYPE_CHECKING:
    import pyarrow as pa

WRITE = {"compression": "zstd", "write_page_checksum": True}
READ = {"page_checksum_verification": True}


def read(
    path: Path, columns: Sequence[str] | None = None, missing: str = "no such file"
) -> "pa.Table":
    """Read columns of a Parquet file, by default all.

    Raises:
        UserError: the file is damaged, lacks a column, or does not exist (message: `missing`).
    """
    import pyarrow.parquet as pq

    names = None if columns is None else list(columns)
    try:
        return pq.read_table(path, columns=names, partitioning=None, **READ)
    except FileNotFoundError:
        raise UserError(f"{path}: {missing}") from None
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path}: damaged, or not a Parquet file ({one_line(error)})") from None


def check_numbers(table: "pa.Table", path: Path, optional: Collection[str] = ()) -> "pa.Table":
    """Return the table; raise UserError if a number (also in a list) is null or not finite.

    Nulls are allowed in the columns `optional`. In the returned table, pandas index columns are
    ordinary columns.
    """
    import pyarrow.compute as pc
    from pyarrow import types

    for name in table.column_names:
        values, rows = table[name].combine_chunks(), None
        if types.is_list(values.type) or types.is_fixed_size_list(values.type):
            values, rows = pc.list_flatten(values), pc.list_parent_indices(values)
        if not (types.is_floating(values.type) or types.is_integer(values.type)):
            continue
        place = pc.index(pc.fill_null(pc.is_finite(values), name in optional), False).as_py()
        if place >= 0:
            row = place if rows is None else rows[place].as_py()
            keys = [key for key in ("task_id", "rollout", "turn") if key in table.column_names]
            where = " ".join([f"{path}: row {row}", *(f"{key} {table[key][row]}" for key in keys)])
            expected = "a finite number" + (" or null" if name in optional else "")
            raise UserError(f"{where}: {name} is {values[place]}; {expected} was expected")
    return table.replace_schema_metadata()
