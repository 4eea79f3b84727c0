#!/usr/bin/env python3
"""The counting model: every record adds 1 to the row of its index, and every batch adds 1 to a
dense counter. After E epochs every row is E if and only if each batch was applied once.

It needs no TensorFlow, so it starts fast. Exits with 0 at the end of the data.
"""

import argparse
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

from elasticai_api.common.master_client import build_master_client
from elasticdl import ShardTrainer
from elasticdl.shard_trainer import job_client

TABLE = {"name": "rows", "dim": 1, "initializer": {"name": "zeros"}, "optimizer": {"name": "SGD"}}


def counter() -> dict:
    return {"name": "batches", "value": np.zeros(1, np.float32)}


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, required=True, help="records in the dataset")
    parser.add_argument("--batch", type=int, default=50, help="records in a batch")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--shard-batches", type=int, default=4, help="batches in a shard")
    parser.add_argument("--in-flight", type=int, default=2, help="pushes in flight")
    parser.add_argument("--reset-at", type=int, default=0,
                        help="worker 0 resets the dataset at this batch; 0: never")
    parser.add_argument("--batch-ms", type=float, default=0, help="time that each batch takes")
    parser.add_argument("--slow-ms", type=float, default=0, help="additional time of worker 0")
    parser.add_argument("--lose", type=float, default=0,
                        help="the fraction of answers at which a connection breaks")
    parser.add_argument("--transport", default="auto", help="auto or tcp")
    parser.add_argument("--ballast", type=int, default=0,
                        help="dimension of a second table that is only pulled, for longer saves")
    parser.add_argument("--threads", type=int, default=1,
                        help="trainers in this process, each on its own thread")
    parser.add_argument("--metrics-every", type=int, default=0,
                        help="report a metric after so many batches; 0: never")
    parser.add_argument("--log-reports", action="store_true",
                        help="print a line before and after each report")
    return parser.parse_args()


def log_reports(master) -> None:
    report_and_lease = master.report_and_lease

    def logged(reports, *more, **named):
        print(f"reports {len(reports)} shards", flush=True)
        answered = report_and_lease(reports, *more, **named)
        print("was answered", flush=True)
        return answered

    master.report_and_lease = logged


def put_relays_before_servers(lose: float) -> list:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from relay import Relay

    servers = os.environ["ELASTICDL_PS_ADDRS"].split(",")
    relays = [Relay(lambda address=address: address, seed=index, lose=lose)
              for index, address in enumerate(servers)]
    os.environ["ELASTICDL_PS_ADDRS"] = ",".join(relay.address for relay in relays)
    return relays


def main() -> None:
    args = parse_args()
    relays = put_relays_before_servers(args.lose) if args.lose else []
    client = job_client(transport="tcp" if relays else args.transport)
    ballast = [{"name": "ballast", "dim": args.ballast}] if args.ballast else []
    client.declare(tables=[TABLE, *ballast], tensors=[counter()])
    is_slow = os.environ["ELASTICDL_REPLICA_INDEX"] == "0"
    trained = 0
    master = build_master_client()
    if args.log_reports:
        log_reports(master)

    def train(records):
        nonlocal trained
        if trained == args.reset_at > 0 and os.environ["ELASTICDL_REPLICA_ID"] == "0":
            master.reset_dataset("records")
        time.sleep((args.batch_ms + (args.slow_ms if is_slow else 0)) / 1000)
        ids = np.asarray(records, np.int64)
        # A model would use these values; the counting model does not.
        client.pull_many({table: ids for table in ("rows", "ballast")[:1 + len(ballast)]})
        client.pull_tensors()
        trained += 1
        if args.metrics_every and trained % args.metrics_every == 0:
            master.report_metrics(trained, {"loss": 1 / trained})
        return {"tables": {"rows": (ids, np.full((len(ids), 1), -1, np.float32))},
                "tensors": {"batches": np.full(1, -1, np.float32)},
                "learning_rate": 1.0}

    def run() -> None:
        ShardTrainer(client, "records", size=args.size, batch_size=args.batch, epochs=args.epochs,
                     batches_per_shard=args.shard_batches, in_flight=args.in_flight,
                     shuffle_shards=True, master=master).run(train)

    others = [threading.Thread(target=run) for _ in range(args.threads - 1)]
    for thread in others:
        thread.start()
    run()
    for thread in others:
        thread.join()
    lost = sum(relay.lost for relay in relays)
    print(f"process {os.getpid()} trained {trained} batches, lost {lost} answers", flush=True)


if __name__ == "__main__":
    main()
