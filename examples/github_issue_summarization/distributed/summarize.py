"""Writes titles with the model that train.py exported.

    python summarize.py /model              # for ten issues that were not used for training
    python summarize.py /model issue.txt    # for the text in a file
"""

import json
import os
import sys
from typing import List

import numpy as np
import tensorflow as tf
from features import BODY_WORDS, END, SETTINGS, START, TITLE_WORDS, WordIndex


class Summarizer:
    """The newest model below `folder`, the MODEL of train.py."""

    def __init__(self, folder: str) -> None:
        versions = os.path.join(folder, "export", "issues")
        names = os.listdir(versions) if os.path.isdir(versions) else []
        numbers = [int(name) for name in names if name.isdecimal()]
        if not numbers:
            sys.exit(f"{versions} has no model: train.py writes it when training ends")
        path = os.path.join(versions, str(max(numbers)))
        self.loaded = tf.saved_model.load(path)
        self.predict = self.loaded.signatures["serving_default"]
        (self.output,) = self.predict.structured_outputs
        extra = os.path.join(path, "assets.extra")
        self.bodies = WordIndex.load(os.path.join(extra, BODY_WORDS))
        self.titles = WordIndex.load(os.path.join(extra, TITLE_WORDS))
        with open(os.path.join(extra, SETTINGS), encoding="utf-8") as file:
            self.settings = json.load(file)

    def titles_of(self, texts: List[str]) -> List[str]:
        """Takes the most probable word, again and again. Padding and <unknown> are not words."""
        length = self.settings["body_length"]
        bodies = np.array([self.bodies.body_row(text, length) for text in texts], np.int32)
        rows = np.full((len(texts), 1), self.titles.numbers[START], np.int32)
        for _ in range(self.settings["title_length"]):
            found = self.predict(body=tf.constant(bodies),
                                 title=tf.constant(rows))[self.output].numpy()
            found[:, -1, :3] = 0
            rows = np.hstack([rows, found[:, -1].argmax(axis=1)[:, None].astype(np.int32)])
        return [" ".join(self.words(row)) for row in rows]

    def words(self, row: np.ndarray) -> List[str]:
        """The words between start and end."""
        words = [self.titles.words[number] for number in row[1:]]
        return words[:words.index(END)] if END in words else words


def main(folder: str, *files: str) -> None:
    tf.get_logger().setLevel("ERROR")  # TensorFlow 2 warns about each variable of an Estimator
    summarizer = Summarizer(folder)
    if files:
        texts = []
        for name in files:
            with open(name, encoding="utf-8") as file:
                texts.append(file.read())
        print("\n".join(summarizer.titles_of(texts)))
        return
    with open(os.path.join(folder, "features", "test_issues.json"), encoding="utf-8") as file:
        issues = json.load(file)[:10]
    for (title, _), written in zip(issues, summarizer.titles_of([body for _, body in issues])):
        print(f"the user wrote:   {title}\nthe model writes: {written}\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: summarize.py MODEL [FILE...]")
    main(*sys.argv[1:])
