"""`ParquetWriter`: a table in Parquet, written part by part."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from localexpert.cli.cells import load_module
from localexpert.cli.console import refuse
from localexpert.cli.out_column import OutColumn
from localexpert.cli.text_kinds import TextKinds


class ParquetWriter:
    """Writes parts as row groups.

    What texts are is known only when all have been seen: until then a table with texts
    is kept in a temporary file.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kinds: dict[str, TextKinds] | None = None
        self.kept: Any = None
        self.writer: Any = None

    def write(self, columns: Mapping[str, OutColumn]) -> None:
        """Write some rows as a row group."""
        if self.kinds is None:
            texts = {name: c for name, c in columns.items() if c.is_text}
            self.kinds = {name: TextKinds(c.dialect) for name, c in texts.items()}
            # Without a name: it ends with the process at the latest.
            self.kept = tempfile.TemporaryFile() if texts else None  # noqa: SIM115
        typed = {}
        for name, column in columns.items():
            if name not in self.kinds:
                typed[name] = column.typed()
                continue
            if not column.is_text:
                refuse(f"column {name!r} is text in some files and typed in others")
            self.kinds[name].add(column.cells)
            typed[name] = self.kinds[name].plain(column.cells)
        self._add(typed, self.kept or self.path)

    def close(self) -> None:
        """End the file, its texts typed as all of them can be."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None
        if self.kept is not None:
            self._type_texts()

    def _add(self, typed: Mapping[str, Any], target: Any) -> None:
        """Write arrays of Arrow, which must be of the types of those before."""
        table = load_module("pyarrow", "").table(dict(typed))
        if self.writer is None:
            parquet = load_module("pyarrow.parquet", "")
            self.writer = parquet.ParquetWriter(target, table.schema)
        for name, kind in zip(table.column_names, table.schema.types, strict=True):
            first = self.writer.schema.field(name).type
            if kind != first:
                refuse(
                    f"column {name!r} is {kind} in some files and {first} in others; "
                    "save it alike in all"
                )
        self.writer.write_table(table)

    def _type_texts(self) -> None:
        """Write what has been kept to where it belongs."""
        kinds = self.kinds or {}
        with self.kept as file:
            self.kept = None
            kept = load_module("pyarrow.parquet", "").ParquetFile(file)
            for group in range(kept.num_row_groups):
                held = kept.read_row_group(group)
                typed = dict(zip(held.column_names, held.columns, strict=True))
                for name, kind in kinds.items():
                    texts = held[name].fill_null("").to_pylist()
                    typed[name] = kind.typed(np.array(texts, dtype=object))
                self._add(typed, self.path)
            if self.writer is not None:
                self.writer.close()
                self.writer = None
