"""elasticdl.open_records and elasticdl.RecordWriter, beside TensorFlow, NumPy and Python's csv."""

import csv
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from harness import ROOT

import elasticdl
from elasticdl import RecordError, RecordWriter, open_records

RECORDS = [b"" if i % 50 == 0 else b"record %d" % i + b"x" * (i % 300) for i in range(5000)]


def write(path: Path, records=RECORDS, **more) -> Path:
    with RecordWriter(path, **more) as writer:
        for record in records:
            writer.write(record)
    return path


@pytest.mark.parametrize("more", [
    {}, {"compression": "none"}, {"compression": "gzip", "max_chunk_bytes": 10_000},
    {"records_per_chunk": 7}, {"format": "tfrecord"}], ids=str)
def test_what_is_written_is_read(tmp_path, more):
    records = open_records(write(tmp_path / "data-00000", **more))
    assert len(records) == len(RECORDS)
    assert records.format == more.get("format", "recordio")
    assert records.read(0, len(records)) == RECORDS
    assert [records.read(i, i + 1)[0] for i in (4999, 0, 50, 2500)] == [
        RECORDS[i] for i in (4999, 0, 50, 2500)]
    assert records.read(10, 10) == []


def test_the_flat_array_has_the_same_records(tmp_path):
    records = open_records(write(tmp_path / "a"))
    data, offsets = records.read_flat(3, 60)
    assert data.dtype == np.uint8 and offsets.dtype == np.int64
    assert [data[a:b].tobytes() for a, b in zip(offsets, offsets[1:])] == RECORDS[3:60]
    del records
    assert data[:8].tobytes() == b"record 3"
    empty, offsets = open_records(tmp_path / "a").read_flat(0, 1)
    assert len(empty) == 0 and offsets.tolist() == [0, 0]


def test_tensorflow_reads_what_we_write_and_we_read_what_it_writes(tmp_path):
    import tensorflow as tf

    ours = write(tmp_path / "ours.tfrecord", format="tfrecord")
    assert list(tf.data.TFRecordDataset(str(ours)).as_numpy_iterator()) == RECORDS
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for record in RECORDS:
            writer.write(record)
    assert open_records(tmp_path / "theirs").read(0, len(RECORDS)) == RECORDS
    with tf.io.TFRecordWriter(str(tmp_path / "packed"), "GZIP") as writer:
        writer.write(b"x")
    with pytest.raises(RecordError, match="packed is compressed with gzip") as raised:
        open_records(tmp_path / "packed")
    assert raised.value.code == "UNIMPLEMENTED"


def test_csv_has_the_rows_of_pythons_csv(tmp_path):
    rows = [["age", "text", "n"]] + [
        [str(i), 'say "hi",\nthen go' if i % 3 == 0 else "plain", ""] for i in range(3000)]
    for name, dialect in (("a.csv", "excel"), ("a.tsv", "excel-tab")):
        path = tmp_path / name
        with open(path, "w", newline="") as file:
            csv.writer(file, dialect).writerows(rows)
        records = open_records(path, header=True)
        assert records.column_names == rows[0] and len(records) == len(rows) - 1
        text = b"\n".join(records.read(0, len(records))).decode()
        assert list(csv.reader(io.StringIO(text, newline=""), dialect)) == rows[1:]
        assert len(open_records(path)) == len(rows)


@pytest.mark.parametrize("dtype", ["<f4", ">i8", "|u1", "<U3", "|S5", "<M8[s]", "<c16", "|b1"])
def test_numpy_records_are_elements_of_the_first_axis(tmp_path, dtype):
    array = np.arange(24).reshape(6, 2, 2).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    records = open_records(tmp_path / "a.npy")
    assert records.dtype == array.dtype and records.record_shape == (2, 2)
    back = np.frombuffer(b"".join(records.read(1, 5)), records.dtype).reshape(4, 2, 2)
    np.testing.assert_array_equal(back, array[1:5])


def test_records_are_numbered_over_the_files_of_a_directory(tmp_path):
    for name in ("b", "a", ".hidden", "_SUCCESS"):
        write(tmp_path / name, [f"{name} {i}".encode() for i in range(3)])
    records = open_records(tmp_path)
    assert records.shards() == [(str(tmp_path / "a"), 0, 3), (str(tmp_path / "b"), 3, 3)]
    assert records.read(2, 4) == [b"a 2", b"b 0"]
    assert len(open_records(str(tmp_path / "[b]"))) == 3


def test_errors_have_the_path_and_a_code(tmp_path):
    path = write(tmp_path / "a")
    records = open_records(path)
    with pytest.raises(ValueError, match="5000 records") as raised:
        records.read(0, 5001)
    assert isinstance(raised.value, RecordError) and raised.value.code == "OUT_OF_RANGE"
    with pytest.raises(FileNotFoundError, match="missing") as raised:
        open_records(tmp_path / "missing")
    assert raised.value.code == "NOT_FOUND"
    with pytest.raises(ValueError, match="'parquet'"):
        open_records(path, format="parquet")
    with pytest.raises(ValueError, match="only CSV and TSV"):
        open_records(path, header=True)

    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))
    with pytest.raises(RecordError, match=f"{path} was changed") as raised:
        records.read(0, 1)
    assert raised.value.code == "FAILED_PRECONDITION"
    with pytest.raises(RecordError, match=f"{path} at offset 0: .*checksum") as raised:
        open_records(path).read(0, 1)
    assert raised.value.code == "DATA_LOSS"


def test_an_index_is_kept_beside_the_data_or_in_the_given_folder(tmp_path):
    data, indexes = tmp_path / "data", tmp_path / "indexes"
    data.mkdir()
    path = write(data / "a", RECORDS * 4, compression="none")
    open_records(path, index_dir=indexes)
    index = data / ".a.edlindex"
    assert index.exists() and not indexes.exists()
    index.unlink()
    index.mkdir()  # no user can replace a directory by a file
    assert len(open_records(path, index_dir=indexes)) == 4 * len(RECORDS)
    assert len(list(indexes.iterdir())) == 1
    assert len(open_records(path, index_dir=indexes)) == 4 * len(RECORDS)
    assert len(open_records(path)) == 4 * len(RECORDS)


def test_processes_may_build_an_index_at_once(tmp_path):
    path = write(tmp_path / "a", RECORDS * 40, compression="none", records_per_chunk=10)
    code = "import sys, elasticdl; print(len(elasticdl.open_records(sys.argv[1])))"
    running = [subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE,
                                text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
               for _ in range(4)]
    assert [int(process.communicate(timeout=120)[0]) for process in running] == [200_000] * 4
    assert sorted(os.listdir(tmp_path)) == [".a.edlindex", "a"]


def test_an_exception_in_the_block_leaves_no_file(tmp_path):
    with pytest.raises(KeyError), RecordWriter(tmp_path / "a") as writer:
        writer.write(b"x")
        raise KeyError
    assert os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match="max_chunk_bytes"):
        RecordWriter(tmp_path / "a", max_chunk_bytes=0)
    with pytest.raises(TypeError):
        RecordWriter(tmp_path / "a").write("text")


def test_threads_share_a_reader(tmp_path):
    records = open_records(write(tmp_path / "a", records_per_chunk=100))
    wrong = []

    def read(first):
        for start in range(first, 4900, 400):
            if records.read(start, start + 70) != RECORDS[start:start + 70]:
                wrong.append(start)

    threads = [threading.Thread(target=read, args=(first,)) for first in range(0, 400, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_names_are_exported():
    assert {"open_records", "RecordWriter", "RecordReader", "RecordError"} <= set(dir(elasticdl))
