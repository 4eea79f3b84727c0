"""Records of images: feature "image" has all values 0..255 as floats, feature "label" a class."""

import os
from typing import Iterator, Optional, Tuple

import numpy as np

from elasticdl.data_gen.example import encode, feature_entry, float_list, int64_list

BLOCK = 4096  # images that are encoded at once


def encode_images(images: np.ndarray, labels: np.ndarray) -> Iterator[bytes]:
    """The records of images of one shape (uint8) with labels 0..127.

    All records have the same length and differ only in the values and in the last byte, the label,
    so NumPy fills a copy of the first record.
    """
    values = int(np.prod(images.shape[1:]))
    first = encode({"image": float_list([0.0] * values), "label": int64_list([0])})
    end = len(first) - len(feature_entry("label", int64_list([0])))
    start = end - 4 * values
    template = np.frombuffer(first, np.uint8)
    for at in range(0, len(images), BLOCK):
        block = images[at:at + BLOCK].reshape(-1, values).astype("<f4")
        records = np.tile(template, (len(block), 1))
        records[:, start:end] = block.view(np.uint8)
        records[:, -1] = labels[at:at + BLOCK]
        yield from map(bytes, records)


def keras_cache() -> str:
    """The folder in which Keras stores the datasets that it has downloaded."""
    home = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    return os.path.join(home, "datasets")


Images = Tuple[np.ndarray, np.ndarray]


def first_images(images: Images, count: Optional[int]) -> Images:
    return images[0][:count], images[1][:count]


def transform(sources: np.ndarray, size: int, box: int, rng: np.random.Generator) -> np.ndarray:
    """Draws each of `sources` (n, h, w; values 0..1) into a size x size image of floats, rotated,
    scaled, slanted and shifted at random. Unchanged, a source would fill a centred square of `box`
    pixels. Values between pixels are interpolated linearly."""
    count, height, width = sources.shape
    angle = rng.normal(0, 0.1, (count, 1)).clip(-0.3, 0.3)
    slant = rng.normal(0, 0.08, (count, 1)).clip(-0.25, 0.25)
    zoom = rng.uniform(0.9, 1.1, (count, 2, 1)) * box
    shift = rng.normal(0, 0.6, (count, 2, 1)).clip(-2, 2)

    # The position of each pixel of the result in the source.
    grid = np.arange(size, dtype=np.float32) - (size - 1) / 2
    y, x = (axis.reshape(1, -1) for axis in np.meshgrid(grid, grid, indexing="ij"))
    y, x = y - shift[:, 0], x - shift[:, 1]
    y, x = np.cos(angle) * y - np.sin(angle) * x, np.sin(angle) * y + np.cos(angle) * x
    x = x + slant * y
    y = (y / zoom[:, 0] * height + (height + 1) / 2).clip(0, height + 0.999).astype(np.float32)
    x = (x / zoom[:, 1] * width + (width + 1) / 2).clip(0, width + 0.999).astype(np.float32)

    # A border of zeros: outside of the source there is nothing.
    padded = np.zeros((count, height + 2, width + 2), np.float32)
    padded[:, 1:-1, 1:-1] = sources
    flat = padded.ravel()
    row, column = y.astype(np.int32), x.astype(np.int32)
    dy, dx = y - row, x - column
    at = row * (width + 2) + column + (np.arange(count, dtype=np.int32) * padded[0].size)[:, None]
    top = flat[at] * (1 - dx) + flat[at + 1] * dx
    below = at + (width + 2)
    np.minimum(below, flat.size - 2, out=below)
    bottom = flat[below] * (1 - dx) + flat[below + 1] * dx
    return (top * (1 - dy) + bottom * dy).reshape(count, size, size)
