#!/usr/bin/env python3
"""A training program that logs each record that it processes. It starts fast, without TensorFlow.

Each process appends one line of fixed length per record to its own file in --log-dir,
<role>-<replica id>-<pid>.log:

    <pid> <epoch> <lease> <record index>

It writes with O_APPEND and one write per line, so a killed process leaves only whole lines. A shard
is reported when its records are in the file. Exits with 0 at the end of the data.
"""

import argparse
import os
import sys
import time

from elasticai_api.common.data_shard_service import build_data_shard_service
from elasticai_api.common.identity import identity_from_env

LINE = "{:10d} {:6d} {:12d} {:12d}\n"


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, required=True, help="records in the dataset")
    parser.add_argument("--batch", type=int, default=10, help="records in a batch")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--shard-batches", type=int, default=1, help="batches in a shard")
    parser.add_argument("--shuffle", action="store_true", help="shards in random order")
    parser.add_argument("--dataset", default="records")
    parser.add_argument("--log-dir", required=True)
    parser.add_argument("--record-us", type=int, default=0, help="time per record")
    parser.add_argument("--fast-file", default="",
                        help="when this file exists, records take no time")
    return parser.parse_args()


def open_log(log_dir: str) -> int:
    identity = identity_from_env()
    os.makedirs(log_dir, exist_ok=True)
    path = os.path.join(log_dir, f"{identity.role}-{identity.replica_id}-{os.getpid()}.log")
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def main() -> int:
    args = parse_args()
    log = open_log(args.log_dir)
    service = build_data_shard_service(
        batch_size=args.batch,
        num_epochs=args.epochs,
        dataset_size=args.size,
        shuffle_shards=args.shuffle,
        num_minibatches_per_shard=args.shard_batches,
        dataset_name=args.dataset,
    )
    processed = 0
    reported_at = time.monotonic()
    for shard in service.shards():
        for record in shard.records():
            if args.record_us and not os.path.exists(args.fast_file):
                time.sleep(args.record_us / 1e6)
            os.write(log, LINE.format(os.getpid(), shard.epoch, shard.lease, record).encode())
        processed += shard.size
        service.report_batch_done(shard.size, task_ids=[shard.lease])
        if time.monotonic() - reported_at > 1:
            reported_at = time.monotonic()
            service.report_metrics(processed // args.batch, records=processed,
                                   loss=args.batch / processed)
    print(f"{processed} records processed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
