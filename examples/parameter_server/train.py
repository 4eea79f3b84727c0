"""Matrix factorisation on a parameter server, in NumPy.

    elasticdl ps --port=40001 &
    python examples/parameter_server/train.py 127.0.0.1:40001

Users and items are rows of two tables, which grow as needed; the global mean is a tensor. Any
number of these programs may train the same parameters at the same time.
"""

import sys

import numpy as np

from elasticdl import ParameterClient

USERS, ITEMS, RANK = 300, 200, 4


def main(server, steps=300, batch=512):
    random = np.random.default_rng(0)
    # Ratings with a structure that the model can learn.
    tastes, styles = random.normal(size=(USERS, RANK)), random.normal(size=(ITEMS, RANK))

    with ParameterClient(server) as client:
        client.declare(
            tables=[{"name": name, "dim": RANK, "optimizer": {"name": "Adagrad"},
                     "initializer": {"name": "normal", "stddev": 0.3}}
                    for name in ("users", "items")],
            tensors=[{"name": "mean", "value": np.zeros(1, np.float32)}])
        for step in range(steps):
            ids = {"users": random.integers(USERS, size=batch),
                   "items": random.integers(ITEMS, size=batch)}
            ratings = 3.5 + (tastes[ids["users"]] * styles[ids["items"]]).sum(1)

            rows = client.pull_many(ids)
            mean = client.pull_tensors()["mean"]
            errors = ((rows["users"] * rows["items"]).sum(1) + mean - ratings).astype(np.float32)
            client.push({"users": (ids["users"], errors[:, None] * rows["items"]),
                         "items": (ids["items"], errors[:, None] * rows["users"])},
                        {"mean": errors.mean(keepdims=True)}, learning_rate=0.3)
            if step % 50 == 0 or step == steps - 1:
                print(f"step {step}: error {np.sqrt((errors ** 2).mean()):.3f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
