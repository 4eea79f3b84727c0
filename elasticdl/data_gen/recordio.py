"""Writes RecordIO files in pure Python.

A file is a sequence of chunks. A chunk has a header of five little-endian uint32 (magic number,
CRC-32 of the payload as stored, compressor, size of the payload as stored, number of records) and a
payload: the length of each record as uint32, and its bytes. Compressor 0 is none, 2 is gzip.
"""

import gzip
import os
import struct
import zlib
from typing import Any

MAGIC = 0x01020304
COMPRESSORS = {"none": 0, "gzip": 2}
CHUNK_BYTES = 1 << 20


class RecordWriter:
    """Writes one file. It gets its name when the writer is closed without an error, so a file with
    that name is complete. Use it as a context manager. Confined."""

    def __init__(self, path: str, compression: str = "none"):
        if compression not in COMPRESSORS:
            raise ValueError(
                f"compression {compression!r} is unknown; use one of {', '.join(COMPRESSORS)}")
        self._path = os.fspath(path)
        self._part = f"{self._path}.{os.getpid()}.part"
        self._compression = compression
        self._records: list = []
        self._bytes = 0
        self._file = open(self._part, "wb")

    def write(self, record: bytes) -> None:
        if self._bytes + len(record) > CHUNK_BYTES:
            self._write_chunk()
        self._records += (struct.pack("<I", len(record)), record)
        self._bytes += 4 + len(record)

    def close(self) -> None:
        self._write_chunk()
        self._file.close()
        os.replace(self._part, self._path)

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()
            os.unlink(self._part)

    def _write_chunk(self) -> None:
        if not self._records:
            return
        payload = b"".join(self._records)
        if self._compression == "gzip":
            # Without a time of compression, equal records give equal files.
            payload = gzip.compress(payload, compresslevel=1, mtime=0)
        self._file.write(struct.pack(
            "<5I", MAGIC, zlib.crc32(payload), COMPRESSORS[self._compression], len(payload),
            len(self._records) // 2))
        self._file.write(payload)
        self._records, self._bytes = [], 0
