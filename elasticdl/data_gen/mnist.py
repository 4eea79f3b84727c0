"""MNIST: images of handwritten digits, 28x28.

The real dataset is used if Keras has downloaded it. Otherwise the images are made of 1,797 smaller
images of handwritten digits (digits.txt), each drawn many times with other distortions. Train and
test images are made of different ones.
"""

import os
from typing import Tuple

import numpy as np

from elasticdl.data_gen.images import BLOCK, Images, encode_images, keras_cache, transform
from elasticdl.data_gen.output import Options, write_records

TRAIN_IMAGES, TEST_IMAGES = 60000, 10000
SIZE = 28
BOX = 20  # MNIST's digits fill a square of 20 pixels
TEST_EVERY = 5  # every fifth bundled image is for tests, so that all writers are in both parts


def read_digits() -> Images:
    """The bundled images, 8x8 with values 0..1, and their digits."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.txt")
    with open(path, encoding="ascii") as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    pixels = [[int(pixel, 17) for pixel in text] for _, text in lines]
    images = np.array(pixels, np.float32).reshape(-1, 8, 8) / 16
    return images, np.array([int(digit) for digit, _ in lines], np.uint8)


def draw(sources: np.ndarray, labels: np.ndarray, count: int, seed: int) -> Images:
    """`count` images, each of a source that is drawn at random."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(sources), count)
    images = np.empty((count, SIZE, SIZE), np.uint8)
    for at in range(0, count, BLOCK):
        block = transform(sources[chosen[at:at + BLOCK]], SIZE, BOX, rng)
        # Interpolation blurs: more contrast makes the strokes as sharp as MNIST's.
        block = (block * 1.9 - 0.45).clip(0, 1) * rng.uniform(0.85, 1, (len(block), 1, 1))
        # As in MNIST, the background is exactly 0.
        noise = rng.standard_normal(block.shape, np.float32) * 15 * (block > 0)
        images[at:at + BLOCK] = (block * 255 + noise).clip(0, 255)
    return images, labels[chosen]


def load(options: Options) -> Tuple[Images, Images]:
    """The images for training and for tests."""
    train, test = options.records(TRAIN_IMAGES), options.records(TEST_IMAGES)
    cache = os.path.join(keras_cache(), "mnist.npz")
    if os.path.exists(cache):
        print(f"mnist: from {cache}")
        with np.load(cache) as arrays:
            return ((arrays["x_train"][:train], arrays["y_train"][:train]),
                    (arrays["x_test"][:test], arrays["y_test"][:test]))
    print(f"mnist: there is no {cache}; drawing images of bundled digits")
    images, labels = read_digits()
    for_tests = np.arange(len(images)) % TEST_EVERY == 0
    return (draw(images[~for_tests], labels[~for_tests], train, options.seed),
            draw(images[for_tests], labels[for_tests], test, options.seed + 1_000_003))


def generate(options: Options) -> None:
    for part, (images, labels) in zip(("train", "test"), load(options)):
        write_records(options, part, encode_images(images, labels))
