"""Writes records to an Arrow file, and reads its rows through a shared memory map."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pyarrow as pa

from hgrpo.errors import UserError

_BATCH = 8192


def write_rows(path: Path, schema: pa.Schema, records: Iterable[dict]) -> None:
    """Write records in order, in full batches; only the last may be shorter."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        rest = iter(records)
        while batch := list(islice(rest, _BATCH)):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))


class ArrowRows:
    """The records of a file that `write_rows` wrote; errors call this kind of file `what`.

    UserError if the file is missing, is not an Arrow file, or has another schema.
    """

    def __init__(self, path: Path, schema: pa.Schema, what: str) -> None:
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
        except FileNotFoundError:
            raise UserError(f"{path}: no such {what}; run the assets stage first") from None
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(f"{path}: not a {what} ({error})") from None
        if reader.schema != schema:
            raise UserError(f"{path}: not a {what} of this version; run the assets stage again")
        self._source = f"{path}: the {what}"
        self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._length = sum(batch.num_rows for batch in self._batches)

    def __len__(self) -> int:
        return self._length

    def record(self, row: int) -> dict:
        """The record of a row, counted from 0; UserError if there is no such row."""
        if not 0 <= row < len(self):
            raise UserError(
                f"{self._source} holds {len(self)} rows, so it has no row {row}; "
                "run the assets stage again"
            )
        batch, place = divmod(row, _BATCH)
        return self._batches[batch].slice(place, 1).to_pylist()[0]
