"""DeepFM with its tables on a parameter server beside the same with its tables in the process.

Both train on the same records with the same compiled TensorFlow step (benchmarks/deepfm_model.py),
from the same first values, Adagrad on rows and Adam on dense parameters; what differs is where
parameters live (benchmarks/deepfm_sides.py). Each side has its best setting of threads, found
first; then both train the same batches in turns, so that noise of the machine meets both. Records
come from tests/planted.py, made before the clock starts, and all rows are there by then.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List

import numpy as np
from common import TESTS, figure, median
from planted import Generator, Records, area_under_curve

from ps import servers

HERE = Path(__file__).resolve().parent
BATCH = 2048
MOST_CATEGORIES = 1_000_000  # of a column; 5.6 M ids in all
HELD_OUT = 100 * BATCH
WARM_UP = 10  # steps, of each process
SEARCH_ROUNDS = 9  # of each pair of settings

Setting = Dict[str, Any]

# Where a search begins, and what else it tries, one thing after the other.
CHOICES: Dict[str, Dict[str, List[Any]]] = {
    "plain": {"intra": [2, 1], "xla": [False, True], "unique": ["in the step", "ahead"],
              "inter": [1, 2]},
    "ps": {"intra": [2, 1], "xla": [False, True], "pull": ["after", "ahead"], "lanes": [2, 1],
           "transport": ["shm", "tcp"], "inter": [1, 2]},
}


class Side:
    """A process that trains, and its server."""

    def __init__(self, process: subprocess.Popen, setting: Setting):
        self._process = process
        self._setting = setting
        self._answer()  # it is ready
        self.train(0, WARM_UP)

    def __str__(self) -> str:
        return ", ".join(f"{key} {value}" for key, value in self._setting.items())

    def train(self, first: int, steps: int) -> float:
        """Samples a second."""
        return steps * BATCH / self._ask({"first": first, "steps": steps})["seconds"]

    def auc(self) -> float:
        return self._ask({"evaluate": True})["auc"]

    def _ask(self, question: Dict[str, Any]) -> Dict[str, Any]:
        print(json.dumps(question), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process with {self} ended")
        return json.loads(line)


@contextmanager
def side(name: str, setting: Setting, folder: Path) -> Iterator[Side]:
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(TESTS)])
    with servers(lanes=setting.get("lanes", 2)) as (server,):
        with subprocess.Popen(
                [sys.executable, str(HERE / "deepfm_sides.py"), name, json.dumps(setting),
                 str(folder), f"127.0.0.1:{server.port}"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        ) as process:
            try:
                yield Side(process, setting)
            finally:
                process.stdin.close()


def write(folder: Path, name: str, records: Records) -> None:
    for field, array in records._asdict().items():
        np.save(folder / f"{name}.{field}.npy", array)


def make_records(folder: Path, batches: int) -> None:
    generator = Generator(MOST_CATEGORIES)
    held_out = generator.draw(HELD_OUT)
    write(folder, "held_out", held_out)
    write(folder, "train", generator.draw(batches * BATCH))
    (folder / "known.json").write_text(json.dumps(generator.known))
    best = area_under_curve(held_out.chances, held_out.labels)
    figure("deepfm.auc_of_the_planted_model", best, "")


def is_faster(name: str, one: Setting, other: Setting, folder: Path, steps: int) -> bool:
    """Whether the other is. Both run in turns, for the machine is not the same a minute later."""
    with side(name, one, folder) as first, side(name, other, folder) as second:
        ratios = []
        for round in range(SEARCH_ROUNDS):
            batch = WARM_UP + round * steps
            speed = first.train(batch, steps)
            ratios.append(second.train(batch, steps) / speed)
        print(f"{name}: {second}: {median(ratios):.2f} times as fast as {first}", flush=True)
        return median(ratios) > 1


def best_setting(name: str, folder: Path, steps: int) -> Setting:
    best = {key: values[0] for key, values in CHOICES[name].items()}
    for key, values in CHOICES[name].items():
        for value in values[1:]:
            other = {**best, key: value}
            if is_faster(name, best, other, folder, steps):
                best = other
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=60, help="of a round")
    parser.add_argument("--search_steps", type=int, default=30)
    for name in CHOICES:
        parser.add_argument(f"--{name}", type=json.loads,
                            help="its setting as JSON, instead of a search")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        make_records(folder, WARM_UP + max(given.rounds * given.steps,
                                            SEARCH_ROUNDS * given.search_steps))
        best = {name: getattr(given, name) or best_setting(name, folder, given.search_steps)
                for name in CHOICES}
        sides = {name: stack.enter_context(side(name, setting, folder))
                 for name, setting in best.items()}
        speeds: Dict[str, List[float]] = {name: [] for name in sides}
        for round in range(given.rounds):
            for name, trained in sides.items():
                speeds[name].append(trained.train(WARM_UP + round * given.steps, given.steps))
        aucs = {name: trained.auc() for name, trained in sides.items()}
        for name, trained in sides.items():
            print(f"{name}: {trained}: " + " ".join(f"{speed:.0f}" for speed in speeds[name]),
                  flush=True)
    for name in sides:
        figure(f"deepfm.{name}_samples_per_s", median(speeds[name]), "samples/s")
    ratios = [ps / plain for ps, plain in zip(speeds["ps"], speeds["plain"])]
    figure("deepfm.ratio", median(ratios), "")
    for name in sides:
        figure(f"deepfm.{name}_auc", aucs[name], "")
    figure("deepfm.auc_difference", aucs["ps"] - aucs["plain"], "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
