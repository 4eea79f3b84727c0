"""The datasets of elasticdl.data_gen: encoding, files, and what the records contain."""

import csv
import gzip
import os
import pickle
import re
import struct
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from elasticdl.data_gen import cifar10, example, frappe, images, mnist, recordio
from elasticdl.data_gen.__main__ import NAMES, main
from elasticdl.data_gen.output import Options, write_records

ROOT = Path(__file__).resolve().parents[3]


def read_chunks(path):
    """(compressor, records) of each chunk of a RecordIO file. Checks magic number and CRC."""
    data, at = Path(path).read_bytes(), 0
    while at < len(data):
        magic, crc, compressor, size, count = struct.unpack_from("<5I", data, at)
        payload = data[at + 20:at + 20 + size]
        at += 20 + size
        assert magic == 0x01020304
        assert len(payload) == size and zlib.crc32(payload) == crc
        if compressor == 2:
            payload = gzip.decompress(payload)
        records, place = [], 0
        while place < len(payload):
            (length,) = struct.unpack_from("<I", payload, place)
            records.append(payload[place + 4:place + 4 + length])
            place += 4 + length
        assert place == len(payload) and len(records) == count
        yield compressor, records


def read_folder(folder):
    """The records of all files of a folder. Nothing but data files may be in it."""
    files = sorted(os.listdir(folder))
    assert files == [f"data-{i:05d}" for i in range(len(files))]
    return [record for file in files for _, records in read_chunks(folder / file)
            for record in records]


def parse(record):
    import tensorflow as tf

    features = tf.train.Example.FromString(record).features.feature
    return {name: list(getattr(feature, feature.WhichOneof("kind")).value)
            for name, feature in features.items()}


@pytest.fixture(autouse=True)
def no_keras_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))


def test_an_example_has_the_bytes_of_protobuf():
    import tensorflow as tf

    ints = [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)]
    floats = [0.0, -1.5, 3.25, 1e30]
    texts = [b"", b"abc", "ü".encode() * 100]
    ours = example.encode({
        "ints": example.int64_list(ints), "a": example.float_list(floats),
        "texts": example.bytes_list(texts), "none": example.int64_list([]),
        "no_floats": example.float_list([]), "no_texts": example.bytes_list([])})

    theirs = tf.train.Example()
    features = theirs.features.feature
    features["ints"].int64_list.value.extend(ints)
    features["a"].float_list.value.extend(floats)
    features["texts"].bytes_list.value.extend(texts)
    features["none"].int64_list.SetInParent()
    features["no_floats"].float_list.SetInParent()
    features["no_texts"].bytes_list.SetInParent()
    assert ours == theirs.SerializeToString(deterministic=True)


def test_an_integer_beyond_64_bits_is_rejected():
    for value in (2**63, -(2**63) - 1):
        with pytest.raises(ValueError, match=str(value)):
            example.int64_list([value])


def test_images_are_encoded_as_single_examples_are(monkeypatch):
    monkeypatch.setattr(images, "BLOCK", 2)
    pixels = np.arange(3 * 4, dtype=np.uint8).reshape(3, 2, 2) * 20
    labels = np.array([0, 5, 9], np.uint8)
    assert list(images.encode_images(pixels, labels)) == [
        example.encode({"image": example.float_list(image.ravel().tolist()),
                        "label": example.int64_list([int(label)])})
        for image, label in zip(pixels, labels)]


@pytest.mark.parametrize("compression, number", [("none", 0), ("gzip", 2)])
def test_a_file_holds_its_records_in_chunks(tmp_path, monkeypatch, compression, number):
    monkeypatch.setattr(recordio, "CHUNK_BYTES", 100)
    records = [bytes([i]) * i for i in range(40)] + [b"x" * 500]
    with recordio.RecordWriter(tmp_path / "data", compression) as writer:
        for record in records:
            writer.write(record)
    chunks = list(read_chunks(tmp_path / "data"))
    assert len(chunks) > 5
    assert {compressor for compressor, _ in chunks} == {number}
    assert [record for _, chunk in chunks for record in chunk] == records


def test_a_failed_write_leaves_no_file(tmp_path):
    with pytest.raises(RuntimeError):
        with recordio.RecordWriter(tmp_path / "data") as writer:
            writer.write(b"record")
            raise RuntimeError("the disk is full")
    assert os.listdir(tmp_path) == []


def test_an_unknown_compression_is_named(tmp_path):
    with pytest.raises(ValueError, match="snappy"):
        recordio.RecordWriter(tmp_path / "data", "snappy")


def test_records_are_divided_into_files_and_replace_older_ones(tmp_path):
    options = Options(str(tmp_path), records_per_file=4)
    write_records(options, "train", [b"old"] * 20)
    write_records(options, "train", [bytes([i]) for i in range(9)])
    assert [sum(len(records) for _, records in read_chunks(tmp_path / "train" / f"data-{i:05d}"))
            for i in range(3)] == [4, 4, 1]
    assert read_folder(tmp_path / "train") == [bytes([i]) for i in range(9)]
    assert os.listdir(tmp_path) == ["train"]


def test_a_folder_with_other_files_is_not_replaced(tmp_path, capsys):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "thesis.txt").write_text("x")
    assert main(["heart", str(tmp_path), "--fraction=0.01"]) == 1
    assert "thesis.txt" in capsys.readouterr().err
    assert os.listdir(tmp_path / "train") == ["thesis.txt"]


@pytest.mark.parametrize("name", NAMES)
def test_a_dataset_is_reproducible_and_its_parts_differ(name, tmp_path):
    for out in ("a", "b"):
        assert main([name, str(tmp_path / out), "--fraction=0.01", "--seed=7"]) == 0
    train, test = (read_folder(tmp_path / "a" / part) for part in ("train", "test"))
    assert train == read_folder(tmp_path / "b" / "train")
    assert test == read_folder(tmp_path / "b" / "test")
    assert not set(train) & set(test)
    if name != "iris":  # another seed only shuffles iris
        assert main([name, str(tmp_path / "c"), "--fraction=0.01", "--seed=8"]) == 0
        assert train != read_folder(tmp_path / "c" / "train")


def test_mnist_has_the_shape_of_the_real_set(tmp_path):
    main(["mnist", str(tmp_path), "--fraction=0.01"])
    records = [parse(record) for record in read_folder(tmp_path / "train")]
    assert len(records) == 600 and len(read_folder(tmp_path / "test")) == 100
    assert all(len(record["image"]) == 784 for record in records)
    values = np.array([record["image"] for record in records])
    assert values.min() == 0 and 200 < values.max() <= 255
    assert np.array_equal(values, values.round())
    assert {record["label"][0] for record in records} == set(range(10))


def test_mnist_draws_train_and_test_images_of_different_sources(monkeypatch):
    used = []
    monkeypatch.setattr(mnist, "draw", lambda sources, labels, *_: used.append(sources))
    mnist.load(Options("unused"))
    train, test = ({source.tobytes() for source in sources} for sources in used)
    assert len(train) + len(test) == 1797 and not train & test


def test_mnist_comes_from_the_cache_of_keras(tmp_path):
    cache = tmp_path / "keras" / "datasets"
    cache.mkdir(parents=True)
    pixels = np.arange(3 * 784, dtype=np.uint32).reshape(3, 28, 28).astype(np.uint8)
    np.savez(cache / "mnist.npz", x_train=pixels, y_train=[1, 2, 3], x_test=pixels[:1], y_test=[9])
    main(["mnist", str(tmp_path / "out")])
    train = [parse(record) for record in read_folder(tmp_path / "out" / "train")]
    assert [record["label"] for record in train] == [[1], [2], [3]]
    assert train[1]["image"] == pixels[1].ravel().tolist()


def test_cifar10_comes_from_the_cache_of_keras(tmp_path):
    cache = tmp_path / "keras" / "datasets"
    cache.mkdir(parents=True)
    with tarfile.open(cache / "cifar-10-batches-py.tar.gz", "w:gz") as tar:
        for number, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
            file = tmp_path / name
            rows = np.full((2, 3072), number, np.uint8)
            rows[:, 1024:] += 100  # green and blue
            file.write_bytes(pickle.dumps({b"data": rows, b"labels": [number, number]}))
            tar.add(file, f"cifar-10-batches-py/{name}")
    (train, labels), (test, _) = cifar10.load(Options("unused"))
    assert train.shape == (10, 32, 32, 3) and test.shape == (2, 32, 32, 3)
    assert labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert train[2, 5, 7].tolist() == [1, 101, 101]


def test_frappe_has_ten_fields_with_separate_ids(tmp_path):
    main(["frappe", str(tmp_path), "--fraction=0.01"])
    records = [parse(record) for record in read_folder(tmp_path / "train")]
    ids = np.array([record["feature"] for record in records])
    first = frappe.offsets()
    assert sum(frappe.FIELDS.values()) == 5382
    assert ids.shape == (2020, 10)
    assert (ids >= first).all() and (ids < [*first[1:], 5383]).all()
    positive = np.mean([record["label"][0] for record in records])
    assert 0.25 < positive < 0.45


def test_criteo_has_its_forty_columns(tmp_path):
    main(["criteo", str(tmp_path), "--fraction=0.01"])
    records = [parse(record) for record in read_folder(tmp_path / "train")]
    assert set(records[0]) == {"label", *(f"I{i}" for i in range(1, 14)),
                               *(f"C{i}" for i in range(1, 27))}
    assert all(len(values) == 1 for record in records for values in record.values())
    assert isinstance(records[0]["I1"][0], float) and isinstance(records[0]["C1"][0], bytes)
    assert 0.15 < np.mean([record["label"][0] for record in records]) < 0.4


@pytest.mark.parametrize("name, label, columns, low, high", [
    ("census", "label", 15, 0.15, 0.35), ("heart", "target", 14, 0.35, 0.6),
    ("iris", "class", 5, 0.5, 0.9)])
def test_tables_are_also_csv_files_with_the_same_rows(name, label, columns, low, high, tmp_path):
    main([name, str(tmp_path), f"--fraction={1 if name == 'iris' else 0.05}"])
    records = [parse(record) for record in read_folder(tmp_path / "train")]
    with open(tmp_path / "train.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == len(records)
    assert all(len(row) == columns for row in rows)
    assert [int(row[-1]) for row in rows] == [record[label][0] for record in records]
    assert [float(row[0]) for row in rows] == pytest.approx(
        [next(iter(v for k, v in record.items() if k in ("age", "sepal_length")))[0]
         for record in records])
    assert low < np.mean([record[label][0] > 0 for record in records]) < high


def test_the_script_of_tutorial_5_needs_no_build_and_no_tensorflow(tmp_path):
    (tmp_path / "no").mkdir()
    (tmp_path / "no" / "tensorflow.py").write_text("raise ImportError('data_gen uses TensorFlow')")
    subprocess.run(
        [str(ROOT / "scripts/gen_dataset.sh"), "data", "--fraction=0.001"], cwd=tmp_path,
        check=True, timeout=60, capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ELASTICDL_PYTHON": sys.executable,
             "PYTHONPATH": str(tmp_path / "no")})
    assert sorted(os.listdir(tmp_path / "data")) == ["frappe", "heart", "mnist"]
    for name in ("mnist", "frappe", "heart"):
        for part in ("train", "test"):
            assert read_folder(tmp_path / "data" / name / part)


@pytest.mark.parametrize("arguments", [
    ["mnist", "x", "--fraction=0"], ["mnist", "x", "--fraction=1.1"], ["imagenet", "x"],
    ["mnist", "x", "--records_per_file=0"]])
def test_wrong_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    assert refused.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_the_command_line_knows_the_same_datasets():
    source = (ROOT / "src/cli/data_gen.cc").read_text()
    names = source[source.index("names = {"):source.index("};", source.index("names = {"))]
    assert tuple(re.findall(r'"(\w+)"', names)) == NAMES
