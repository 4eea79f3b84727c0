"""CIFAR-10: colour images, 32x32, of ten classes.

The real dataset is used if Keras has downloaded it. Otherwise a class is a texture: waves with the
direction, length and colour of the class, at a random position, under noise.
"""

import os
import pickle
import tarfile
from typing import Tuple

import numpy as np

from elasticdl.data_gen.images import BLOCK, Images, encode_images, first_images, keras_cache
from elasticdl.data_gen.output import Options, write_records

TRAIN_IMAGES, TEST_IMAGES = 50000, 10000
SIZE, CLASSES = 32, 10
FOLDER = "cifar-10-batches-py"


def draw(count: int, seed: int) -> Images:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, count).astype(np.uint8)
    # Five directions, each with two lengths of wave; ten pairs of colours.
    angle = np.pi * np.arange(CLASSES) / 5
    waves = np.where(np.arange(CLASSES) < 5, 0.45, 0.9)
    colours = np.random.default_rng(10).uniform(-1, 1, (CLASSES, 3)).astype(np.float32)
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float32)
    images = np.empty((count, SIZE, SIZE, 3), np.uint8)
    for at in range(0, count, BLOCK):
        label = labels[at:at + BLOCK]
        direction = (angle[label] + rng.normal(0, 0.1, len(label)))[:, None, None]
        phase = rng.uniform(0, 2 * np.pi, (len(label), 1, 1))
        wave = np.sin(waves[label][:, None, None] * (np.cos(direction) * x + np.sin(direction) * y)
                      + phase).astype(np.float32)
        shade = rng.normal(0, 0.3, (len(label), 1, 1, 3)).astype(np.float32)
        noise = rng.standard_normal((len(label), SIZE, SIZE, 3), dtype=np.float32)
        value = wave[..., None] * colours[label][:, None, None] + shade + 0.4 * noise
        images[at:at + BLOCK] = (128 + 60 * value).clip(0, 255)
    return images, labels


def read_batches(archive: str) -> Tuple[Images, Images]:
    """The images in the archive that Keras downloads: pickled batches of rows of 3x32x32 values."""
    def read(tar: tarfile.TarFile, name: str) -> Images:
        file = tar.extractfile(f"{FOLDER}/{name}")
        if file is None:
            raise ValueError(f"{archive} has no file {FOLDER}/{name}; delete it, so that Keras "
                             "downloads it again")
        batch = pickle.load(file, encoding="bytes")
        rows = np.asarray(batch[b"data"], np.uint8).reshape(-1, 3, SIZE, SIZE)
        return rows.transpose(0, 2, 3, 1), np.asarray(batch[b"labels"], np.uint8)

    with tarfile.open(archive) as tar:
        parts = [read(tar, f"data_batch_{i}") for i in range(1, 6)]
        train = (np.concatenate([images for images, _ in parts]),
                 np.concatenate([labels for _, labels in parts]))
        return train, read(tar, "test_batch")


def load(options: Options) -> Tuple[Images, Images]:
    train, test = options.records(TRAIN_IMAGES), options.records(TEST_IMAGES)
    # Keras stores the archive under this name, without the suffix in older versions.
    for name in (f"{FOLDER}.tar.gz", f"{FOLDER}"):
        archive = os.path.join(keras_cache(), name)
        if os.path.isfile(archive):
            print(f"cifar10: from {archive}")
            real = read_batches(archive)
            return first_images(real[0], train), first_images(real[1], test)
    print(f"cifar10: there is no {FOLDER} in {keras_cache()}; drawing textures")
    return draw(train, options.seed), draw(test, options.seed + 1_000_003)


def generate(options: Options) -> None:
    for part, (images, labels) in zip(("train", "test"), load(options)):
        write_records(options, part, encode_images(images, labels))
