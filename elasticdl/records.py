"""Record files: RecordIO, TFRecord, CSV, TSV and NumPy (docs/formats/records.md)."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Literal

import numpy as np
import numpy.typing as npt

from elasticdl.native_module import RecordError, _native

__all__ = ["RecordError", "RecordReader", "RecordWriter", "open_records"]

_Path = str | os.PathLike[str]


def open_records(path: _Path, *, format: str | None = None, header: bool = False,
                 index_dir: _Path | None = None) -> RecordReader:
    """Opens a file, all files of a directory, or the files that match a pattern with *, ? or [].

    Counts the records, which reads the files once; the result is kept in an index file beside each
    large file, or in `index_dir` where the folder of the data cannot be written.

    format: "recordio", "tfrecord", "csv", "tsv" or "npy"; None: by content and name. header: the
    first line of each CSV or TSV file has the names of its columns, and is not a record.

    Raises RecordError, whose `code` is the reason and whose message has the path; a missing path is
    also a FileNotFoundError, a wrong argument also a ValueError.
    """
    return RecordReader(_native.Records(
        os.fspath(path), format=format or "", header=header,
        index_dir="" if index_dir is None else os.fspath(index_dir)))


class RecordReader:
    """The records of one or more files, numbered from 0 over all files in the order of their names.

    Made by `open_records`. Any thread may call it; reads release the GIL. A file that was changed
    or damaged raises RecordError with its path, and with the offset of the damage.
    """

    def __init__(self, records: _native.Records) -> None:
        self._records = records

    def __len__(self) -> int:
        return self._records.count()

    def read(self, a: int, b: int) -> list[bytes]:
        """The records [a, b)."""
        return self._records.read(a, b)

    def read_flat(self, a: int, b: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The records [a, b) one after the other in one array, and the b - a + 1 positions where
        they begin and end. Faster than `read` for small records. The arrays are read-only."""
        return self._records.read_flat(a, b)

    def shards(self) -> list[tuple[str, int, int]]:
        """(path, number of its first record, count) of each file."""
        return self._records.files()

    @property
    def format(self) -> str:
        """"recordio", "tfrecord", "csv", "tsv" or "npy"."""
        return self._records.format()

    @property
    def column_names(self) -> list[str]:
        """CSV and TSV with a header: the names of the columns; otherwise []."""
        return self._records.column_names()

    @property
    def dtype(self) -> np.dtype | None:
        """NumPy files: the type of an element."""
        return np.dtype(self._records.dtype()) if self.format == "npy" else None

    @property
    def record_shape(self) -> tuple[int, ...]:
        """NumPy files: the shape of a record."""
        return tuple(self._records.record_shape())


class RecordWriter:
    """Writes a RecordIO or TFRecord file. The file gets its name in `close`, so that readers see
    all records or none; a `with` block closes it, or removes it after an exception.

    compression, max_chunk_bytes and records_per_chunk are for RecordIO: a chunk is compressed as
    a whole, and ends before its records have more bytes (None: 32 MiB) or after as many records
    (None: no limit).
    """

    def __init__(self, path: _Path, *, format: str = "recordio",
                 compression: Literal["snappy", "none", "gzip"] = "snappy",
                 max_chunk_bytes: int | None = None, records_per_chunk: int | None = None) -> None:
        for name, value in (("max_chunk_bytes", max_chunk_bytes),
                            ("records_per_chunk", records_per_chunk)):
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}, and must be at least 1")
        self._writer = _native.RecordWriter(
            os.fspath(path), format=format, compression=compression,
            max_chunk_bytes=max_chunk_bytes or 0, records_per_chunk=records_per_chunk or 0)

    def write(self, record: bytes) -> None:
        """Adds a record."""
        self._writer.write(record)

    def close(self) -> None:
        """Completes the file."""
        self._writer.close()

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._writer.abandon()
