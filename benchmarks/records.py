"""Reads the same records with open_records, TensorFlow's TFRecordDataset and Python's csv.

Files are in the page cache: what is measured is the reader. Values are medians of rounds, in bytes
of records per second. Each reader gives Python objects in batches: a list of bytes, a tensor, or a
row of strings.
"""

import argparse
import csv
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List

from common import figure, median

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf  # noqa: E402

import elasticdl  # noqa: E402

BATCH = 1024
RANGES = 2000
RANGE = 32


def make_rows(count: int) -> List[bytes]:
    """Rows as those of a click log: a label, 13 numbers and 26 ids, which repeat."""
    source = random.Random(4)
    ids = [f"{source.getrandbits(32):08x}" for _ in range(10_000)]
    return [",".join([str(source.getrandbits(1)), *(str(source.randrange(500)) for _ in range(13)),
                      *source.choices(ids, k=26)]).encode() for _ in range(count)]


def write(folder: Path, rows: List[bytes]) -> Dict[str, Path]:
    paths = {name: folder / name for name in ("rows.recordio", "plain.recordio", "rows.tfrecord",
                                              "rows.csv")}
    for name, more in (("rows.recordio", {}), ("plain.recordio", {"compression": "none"}),
                       ("rows.tfrecord", {"format": "tfrecord"})):
        with elasticdl.RecordWriter(paths[name], **more) as writer:
            for row in rows:
                writer.write(row)
    paths["rows.csv"].write_bytes(b"\n".join(rows) + b"\n")
    return paths


def read_ours(path: Path) -> int:
    records = elasticdl.open_records(path)
    return sum(len(records.read(first, min(first + BATCH, len(records))))
               for first in range(0, len(records), BATCH))


def read_flat(path: Path) -> int:
    records = elasticdl.open_records(path)
    return sum(len(records.read_flat(first, min(first + BATCH, len(records)))[1]) - 1
               for first in range(0, len(records), BATCH))


def read_tensorflow(path: Path) -> int:
    return sum(len(batch) for batch in tf.data.TFRecordDataset(str(path)).batch(BATCH))


def read_csv(path: Path) -> int:
    with open(path, newline="") as file:
        return sum(1 for _ in csv.reader(file))


def count_anew(path: Path) -> int:
    path.with_name(f".{path.name}.edlindex").unlink(missing_ok=True)
    return len(elasticdl.open_records(path))


def seconds(act: Callable[[Path], int], path: Path, expected: int) -> float:
    begin = time.monotonic()
    count = act(path)
    took = time.monotonic() - begin
    assert count == expected, f"{count} records of {path.name}, not {expected}"
    return took


def range_microseconds(path: Path) -> float:
    """The median of reads of RANGE records anywhere."""
    records = elasticdl.open_records(path)
    source = random.Random(5)
    times = []
    for _ in range(RANGES):
        first = source.randrange(len(records) - RANGE)
        begin = time.perf_counter()
        records.read(first, first + RANGE)
        times.append(time.perf_counter() - begin)
    return median(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rows = make_rows(arguments.records)
    megabytes = sum(map(len, rows)) / 1e6
    measured = [("recordio.read", read_ours, "rows.recordio"),
                ("recordio.none.read", read_ours, "plain.recordio"),
                ("recordio.none.read_flat", read_flat, "plain.recordio"),
                ("tfrecord.read", read_ours, "rows.tfrecord"),
                ("tfrecord.read_flat", read_flat, "rows.tfrecord"),
                ("tensorflow.tfrecord.read", read_tensorflow, "rows.tfrecord"),
                ("csv.read", read_ours, "rows.csv"),
                ("csv.read_flat", read_flat, "rows.csv"),
                ("python.csv.read", read_csv, "rows.csv"),
                ("recordio.count", count_anew, "rows.recordio"),
                ("tfrecord.count", count_anew, "rows.tfrecord"),
                ("csv.count", count_anew, "rows.csv")]
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as folder:
        paths = write(Path(folder), rows)
        print(f"{len(rows)} records, {megabytes:.0f} MB; "
              + ", ".join(f"{name} {path.stat().st_size / 1e6:.0f} MB"
                          for name, path in paths.items()), flush=True)
        times: Dict[str, List[float]] = {name: [] for name, _, _ in measured}
        for _ in range(arguments.rounds):
            for name, act, path in measured:
                times[name].append(seconds(act, paths[path], len(rows)))
        for name, took in times.items():
            figure(f"records.{name}", megabytes / median(took), "MB/s")
        for name in ("recordio", "tfrecord", "csv"):
            figure(f"records.{name}.range_us", range_microseconds(paths[f"rows.{name}"]), "us")


if __name__ == "__main__":
    main()
