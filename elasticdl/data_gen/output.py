"""The folder of a generated dataset: OUT/train, OUT/test, and CSV files beside them."""

import csv
import itertools
import os
import re
import shutil
from dataclasses import dataclass
from typing import Iterable, Sequence

from elasticdl.data_gen.recordio import RecordWriter

DATA_FILE = re.compile(r"data-\d{5}(\.\d+\.part)?")


@dataclass
class Options:
    """What the command line of a generator says."""

    folder: str
    fraction: float = 1.0
    records_per_file: int = 16384
    seed: int = 1
    compression: str = "none"

    def records(self, all_records: int) -> int:
        """The number of records to generate of a part of the dataset; at least 1."""
        return max(1, round(all_records * self.fraction))


def write_records(options: Options, part: str, records: Iterable[bytes]) -> None:
    """Writes data-00000, data-00001, ... to OUT/<part>, instead of those that are there.

    The reader of a folder reads all of its files, so the folder gets its name when it is complete,
    and a folder with other files is not touched.
    """
    folder = os.path.join(options.folder, part)
    refuse_other_files(folder)
    os.makedirs(options.folder, exist_ok=True)
    unfinished = os.path.join(options.folder, f".{part}.{os.getpid()}.part")
    os.makedirs(unfinished)
    try:
        count, files = 0, 0
        records = iter(records)
        for first in records:
            path = os.path.join(unfinished, f"data-{files:05d}")
            with RecordWriter(path, options.compression) as writer:
                writer.write(first)
                count += 1
                for record in itertools.islice(records, options.records_per_file - 1):
                    writer.write(record)
                    count += 1
            files += 1
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    print(f"{folder}: {count} records in {files} files", flush=True)


def refuse_other_files(folder: str) -> None:
    if not os.path.isdir(folder):
        return
    other = [name for name in os.listdir(folder) if not DATA_FILE.fullmatch(name)]
    if other:
        raise FileExistsError(
            f"{folder} contains {other[0]}, which is not a file of a dataset; give another folder")


def write_csv(options: Options, part: str, rows: Iterable[Sequence[object]]) -> None:
    """Writes OUT/<part>.csv without a header line, because every line is a record."""
    os.makedirs(options.folder, exist_ok=True)
    path = os.path.join(options.folder, f"{part}.csv")
    unfinished = f"{path}.{os.getpid()}.part"
    with open(unfinished, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    os.replace(unfinished, path)
    print(f"{path}: written", flush=True)
