"""Learns to read digits with parameter servers, as one replica of a TFJob. Without TF_CONFIG it
learns alone.

The digits are pictures of 28 x 28 like those of MNIST, but this program makes them: a fixed pattern
for each digit, and noise.
"""

import json
import os

import numpy as np
import tensorflow as tf

STEPS, BATCH, SIDE, DIGITS = 150, 64, 28, 10
v1 = tf.compat.v1


def batch(random: np.random.Generator, patterns: np.ndarray, size: int):
    labels = random.integers(0, DIGITS, size)
    return patterns[labels] + random.normal(0, 1, (size, SIDE * SIDE)), labels


def main() -> None:
    v1.disable_eager_execution()
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    cluster, task = config.get("cluster"), config.get("task", {"type": "worker", "index": 0})
    target, device = "", None
    if cluster:
        server = v1.train.Server(tf.train.ClusterSpec(cluster), job_name=task["type"],
                                 task_index=task["index"])
        if task["type"] == "ps":
            server.join()
        target = server.target
        device = v1.train.replica_device_setter(
            cluster=cluster, worker_device=f"/job:worker/task:{task['index']}")
    with v1.device(device):
        pictures = v1.placeholder(tf.float32, [None, SIDE * SIDE])
        labels = v1.placeholder(tf.int64, [None])
        weights = v1.get_variable("weights", [SIDE * SIDE, DIGITS])
        logits = tf.matmul(pictures, weights)
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        correct = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        step = v1.train.get_or_create_global_step()
        train = v1.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
    patterns = np.random.default_rng(1).normal(0, 0.3, (DIGITS, SIDE * SIDE))
    random = np.random.default_rng(100 + task["index"])
    right = 0.0
    with v1.train.MonitoredTrainingSession(
            master=target, is_chief=task["index"] == 0,
            hooks=[v1.train.StopAtStepHook(last_step=STEPS)]) as session:
        while not session.should_stop():
            some, digits = batch(random, patterns, BATCH)
            _, right = session.run([train, correct], {pictures: some, labels: digits})
    print(f"{task['type']} {task['index']} reads {100 * right:.0f} % of the digits", flush=True)


if __name__ == "__main__":
    main()
