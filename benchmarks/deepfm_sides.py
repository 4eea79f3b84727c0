"""One variant of the DeepFM benchmark as a process, which trains on request and reports the time.

    python benchmarks/deepfm_sides.py ps '{"intra": 2, "inter": 1, ...}' FOLDER SERVER

Reads lines of JSON, {"first": batch, "steps": n} or {"evaluate": true}, and answers each with a
line.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import deepfm_model as model  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from planted import Records, area_under_curve  # noqa: E402

from elasticdl import ParameterClient  # noqa: E402
from elasticdl.parameter_client import Prefetch  # noqa: E402

BATCH = 2048
TABLE = {"name": "ids", "dim": model.ROW, "optimizer": model.ADAGRAD,
         "initializer": {"name": "uniform", "minval": -0.01, "maxval": 0.01}}
DENSE = list(model.dense_parameters())
AT_ONCE = 1 << 18  # rows per request when all rows are pulled

Setting = Dict[str, Any]


def load(folder: Path, name: str) -> Records:
    return Records(*(np.asarray(np.load(folder / f"{name}.{field}.npy", mmap_mode="r"))
                     for field in Records._fields))


def connect(server: str, transport: str) -> ParameterClient:
    client = ParameterClient(server, transport=transport)
    client.declare(tables=[TABLE], tensors=[
        {"name": name, "value": value, "optimizer": model.ADAM}
        for name, value in model.dense_parameters().items()])
    return client


def seen(tensor: tf.Tensor) -> np.ndarray:
    """The values of a tensor without a copy, unlike .numpy()."""
    return np.asarray(memoryview(tensor))


def rates(step: int) -> Dict[str, float]:
    of_rows, of_dense = model.rates(step)
    return {"ids": of_rows, **dict.fromkeys(DENSE, of_dense)}


def all_rows(client: ParameterClient, known: int, create: bool) -> Iterator[np.ndarray]:
    for first in range(0, known, AT_ONCE):
        yield client.pull("ids", np.arange(first, min(first + AT_ONCE, known)), create=create)


class Ps:
    """Tables and dense parameters on the server. The setting "pull" determines when the parameters
    of the next batch are pulled: "ahead", while the current batch is computed, so they lack its
    gradients; or "after" its push, so they equal those of one process."""

    def __init__(self, setting: Setting, server: str, known: int):
        self._pulls_ahead = setting["pull"] == "ahead"
        self._client = connect(server, setting["transport"])
        for _ in all_rows(self._client, known, create=True):
            pass  # rows exist before the measurement, as in the other variant
        self._step = tf.function(model.make_step(setting["xla"]), input_signature=[
            model.dense_signature(), *model.signature()])
        self._logits = tf.function(
            lambda dense, rows, places, numbers: model.logits(
                dense, model.used_rows(rows, places), numbers),
            input_signature=[model.dense_signature(), *model.signature()[:-1]])

    def train(self, batch_at: Callable[[int], Records], first: int, steps: int) -> float:
        last = first + steps - 1
        coming, sent, loss = self._prefetch(batch_at(first)), None, 0.0
        for number in range(first, last + 1):
            (rows, places), = coming.result().values()
            ids, dense, batch = coming.ids()["ids"], coming.tensors(), batch_at(number)
            if self._pulls_ahead and number < last:
                coming = self._prefetch(batch_at(number + 1))
            got = self._step(dense, rows, places, batch.numbers, batch.labels)
            if sent is not None:
                sent.result()
            sent = self._client.push_async(
                {"ids": (ids, seen(got.rows))},
                {name: seen(gradient) for name, gradient in got.dense.items()},
                learning_rate=rates(number))
            if not self._pulls_ahead and number < last:
                coming = self._prefetch(batch_at(number + 1))
            loss = got.loss
        sent.result()
        return float(loss)

    def scores(self, batch: Records) -> np.ndarray:
        coming = self._prefetch(batch, create=False)
        rows, places = coming.result()["ids"]
        return self._logits(coming.tensors(), rows, places, batch.numbers).numpy()

    def _prefetch(self, batch: Records, create: bool = True) -> Prefetch:
        return self._client.prefetch({"ids": batch.ids}, create=create, tensors=DENSE)


class Plain:
    """Tables and dense parameters in variables of this process, which TensorFlow's operations
    change in the graph of the step. The setting "unique" determines where ids are deduplicated:
    "ahead", by tf.data while the previous batch is computed, or "in the step"."""

    def __init__(self, setting: Setting, server: str, known: int):
        self._unique_ahead = setting["unique"] == "ahead"
        self._step = model.make_step(setting["xla"])
        rows = np.empty((known, model.ROW), np.float32)
        with connect(server, "auto") as client:  # the initial values of the other variant
            filled = 0
            for some in all_rows(client, known, create=False):
                rows[filled:filled + len(some)] = some
                filled += len(some)
        self._rows = tf.Variable(rows)
        self._squares = tf.Variable(tf.fill(rows.shape,
                                            model.ADAGRAD["initial_accumulator_value"]))
        self._dense = {name: tf.Variable(value)
                       for name, value in model.dense_parameters().items()}
        self._moments = {name: (tf.Variable(tf.zeros_like(value)),
                                tf.Variable(tf.zeros_like(value)))
                         for name, value in self._dense.items()}
        self._powers = [tf.Variable(model.ADAM["beta_1"]), tf.Variable(model.ADAM["beta_2"])]
        _, places, numbers, labels = model.signature()
        rate = tf.TensorSpec([], tf.float32)
        self._train = tf.function(self._train_once, input_signature=[
            tf.TensorSpec([None], tf.int64), places, numbers, labels, rate, rate])
        self._train_ids = tf.function(self._find_and_train, input_signature=[
            tf.TensorSpec([None, model.COLUMNS], tf.int64), numbers, labels, rate, rate])
        self._logits = tf.function(self._compute_logits, input_signature=[
            tf.TensorSpec([None, model.COLUMNS], tf.int64), numbers])

    def train(self, batch_at: Callable[[int], Records], first: int, steps: int) -> float:
        loss = 0.0
        if self._unique_ahead:
            data = tf.data.Dataset.from_generator(
                lambda: ((*batch_at(number)[:3], *model.rates(number))
                         for number in range(first, first + steps)),
                output_signature=self._train_ids.input_signature)
            data = data.map(lambda ids, *rest: (*unique(ids), *rest), num_parallel_calls=1)
            for batch in data.prefetch(2):
                loss = self._train(*batch)
        else:
            for number in range(first, first + steps):
                loss = self._train_ids(*batch_at(number)[:3], *model.rates(number))
        return float(loss)

    def scores(self, batch: Records) -> np.ndarray:
        return self._logits(batch.ids, batch.numbers).numpy()

    def _compute_logits(self, ids, numbers):
        distinct, places = unique(ids)
        used = model.used_rows(tf.gather(self._rows, distinct), places)
        return model.logits(self._dense, used, numbers)

    def _find_and_train(self, ids, numbers, labels, row_rate, dense_rate):
        return self._train_once(*unique(ids), numbers, labels, row_rate, dense_rate)

    def _train_once(self, ids, places, numbers, labels, row_rate, dense_rate):
        dense = {name: tf.convert_to_tensor(variable) for name, variable in self._dense.items()}
        got = self._step(dense, tf.gather(self._rows, ids), places, numbers, labels)
        tf.raw_ops.ResourceSparseApplyAdagrad(
            var=self._rows.handle, accum=self._squares.handle, lr=row_rate, grad=got.rows,
            indices=ids)
        for name, variable in self._dense.items():
            first, second = self._moments[name]
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle, m=first.handle, v=second.handle, grad=got.dense[name],
                beta1_power=self._powers[0], beta2_power=self._powers[1], lr=dense_rate,
                beta1=model.ADAM["beta_1"], beta2=model.ADAM["beta_2"],
                epsilon=model.ADAM["epsilon"])
        self._powers[0].assign(self._powers[0] * model.ADAM["beta_1"])
        self._powers[1].assign(self._powers[1] * model.ADAM["beta_2"])
        return got.loss


def unique(ids):
    """The unique ids, and the index of each given id among them."""
    distinct, places = tf.unique(tf.reshape(ids, [-1]))
    return distinct, tf.reshape(places, [-1, model.COLUMNS])


SIDES = {"ps": Ps, "plain": Plain}


def main(name: str, setting_text: str, folder_name: str, server: str) -> None:
    setting, folder = json.loads(setting_text), Path(folder_name)
    tf.config.threading.set_intra_op_parallelism_threads(setting["intra"])
    tf.config.threading.set_inter_op_parallelism_threads(setting["inter"])
    records, held_out = load(folder, "train"), load(folder, "held_out")
    known = json.loads((folder / "known.json").read_text())
    side = SIDES[name](setting, server, known)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        begin, begin_cpu = time.monotonic(), time.process_time()
        if "evaluate" in asked:
            scores = [side.scores(held_out.batch(number, BATCH))
                      for number in range(len(held_out) // BATCH)]
            told = {"auc": area_under_curve(np.concatenate(scores), held_out.labels)}
        else:
            loss = side.train(lambda number: records.batch(number, BATCH), asked["first"],
                              asked["steps"])
            told = {"loss": loss, "seconds": time.monotonic() - begin,
                    "cpu_seconds": time.process_time() - begin_cpu}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
