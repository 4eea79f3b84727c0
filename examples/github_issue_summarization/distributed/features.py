"""Turns titles and bodies of issues into rows of word numbers.

One process prepares the features; others load them. `prepare` writes the whole folder under another
name first, so the folder is complete when it appears.
"""

import collections
import csv
import json
import os
import random
import re
import shutil
from typing import Dict, Iterable, List, Tuple

import numpy as np

PADDING, UNKNOWN, START, END = "<padding>", "<unknown>", "<start>", "<end>"
SPECIAL = (PADDING, UNKNOWN, START, END)  # their numbers are 0, 1, 2 and 3
BODY_WORDS, TITLE_WORDS, SETTINGS = "body_words.json", "title_words.json", "settings.json"
ASSETS = (BODY_WORDS, TITLE_WORDS, SETTINGS)  # what users of the model need
PARTS = ("train", "test")


def words_of(text: str) -> List[str]:
    """Lower-case words; a number, also one with dots, is one word."""
    return re.findall(r"[^\W\d_]+|\d+(?:\.\d+)*", text.lower())


class WordIndex:
    """The numbers of the most frequent words. The file format is a JSON list of words."""

    def __init__(self, words: List[str]) -> None:
        self.words = words
        self.numbers = {word: number for number, word in enumerate(words)}

    @classmethod
    def of(cls, texts: Iterable[List[str]], keep: int) -> "WordIndex":
        """Keeps the `keep` most frequent words; words that occur equally often by the alphabet."""
        counts = collections.Counter(word for text in texts for word in text)
        by_count = sorted(counts, key=lambda word: (-counts[word], word))
        return cls([*SPECIAL, *by_count[:keep]])

    @classmethod
    def load(cls, path: str) -> "WordIndex":
        with open(path, encoding="utf-8") as file:
            return cls(json.load(file))

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.words, file)

    def __len__(self) -> int:
        return len(self.words)

    def row(self, words: List[str]) -> List[int]:
        unknown = self.numbers[UNKNOWN]
        return [self.numbers.get(word, unknown) for word in words]

    def body_row(self, text: str, length: int) -> List[int]:
        """The first words. Padding comes first, so that the encoder ends with the words."""
        row = self.row(words_of(text)[:length])
        return [0] * (length - len(row)) + row

    def title_row(self, text: str, length: int) -> List[int]:
        """Start, the first words, end, padding."""
        row = self.row([START, *words_of(text)[:length - 2], END])
        return row + [0] * (length - len(row))


def read_issues(path: str, rows: int) -> List[Tuple[str, str]]:
    """(title, body) of a random sample of the rows, always the same one."""
    csv.field_size_limit(1 << 24)
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        missing = {"issue_title", "body"} - set(reader.fieldnames or ())
        if missing:
            raise ValueError(f"{path} has no column {', '.join(sorted(missing))}; "
                             f"its columns are {reader.fieldnames}")
        issues = [(row["issue_title"], row["body"]) for row in reader
                  if row["issue_title"] and row["body"]]
    if len(issues) < 20:
        raise ValueError(f"{path} has {len(issues)} issues with a title and a body, "
                         "and 20 are needed")
    return random.Random(0).sample(issues, min(rows, len(issues)))


def prepare(table: str, folder: str, settings: Dict[str, int]) -> None:
    """Writes the features of a csv file to `folder`: nine issues of ten are for training."""
    issues = read_issues(table, settings["rows"])
    size = len(issues) * 9 // 10
    parts = dict(zip(PARTS, (issues[:size], issues[size:])))
    bodies = WordIndex.of((words_of(body) for _, body in parts["train"]), settings["body_words"])
    titles = WordIndex.of((words_of(title) for title, _ in parts["train"]),
                          settings["title_words"])
    partial = f"{folder}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    for part, rows in parts.items():
        np.save(os.path.join(partial, f"{part}_bodies.npy"), np.array(
            [bodies.body_row(body, settings["body_length"]) for _, body in rows], np.int32))
        np.save(os.path.join(partial, f"{part}_titles.npy"), np.array(
            [titles.title_row(title, settings["title_length"]) for title, _ in rows], np.int32))
    with open(os.path.join(partial, "test_issues.json"), "w", encoding="utf-8") as file:
        json.dump(parts["test"], file)
    bodies.save(os.path.join(partial, BODY_WORDS))
    titles.save(os.path.join(partial, TITLE_WORDS))
    with open(os.path.join(partial, SETTINGS), "w", encoding="utf-8") as file:
        json.dump(settings, file)
    os.rename(partial, folder)


class Features:
    """What `prepare` wrote."""

    def __init__(self, folder: str, settings: Dict[str, int]) -> None:
        with open(os.path.join(folder, SETTINGS), encoding="utf-8") as file:
            found = json.load(file)
        if found != settings:
            raise ValueError(
                f"the features in {folder} were prepared with {found}, but this process has "
                f"{settings}; give all replicas the same environment, and remove {folder} and the "
                "checkpoints beside it to begin again")
        self.folder = folder
        self.bodies = WordIndex.load(os.path.join(folder, BODY_WORDS))
        self.titles = WordIndex.load(os.path.join(folder, TITLE_WORDS))

    def arrays(self, part: str) -> Tuple[np.ndarray, np.ndarray]:
        """The rows of bodies and of titles of a part."""
        return (np.load(os.path.join(self.folder, f"{part}_bodies.npy")),
                np.load(os.path.join(self.folder, f"{part}_titles.npy")))
