#!/usr/bin/env python3
"""Holds each shard for a while, and logs when it was leased and done, for benchmarks/recovery.py.

Each process writes lines `<seconds since 1970> leased|done <replica id> <shard ordinal>` to its own
file.
"""

import argparse
import os
import sys
import time

from elasticai_api.common.data_shard_service import build_data_shard_service


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, required=True, help="shards, of one record each")
    parser.add_argument("--hold-ms", type=int, required=True)
    parser.add_argument("--log-dir", required=True)
    args = parser.parse_args()
    replica = os.environ["ELASTICDL_REPLICA_ID"]
    log = os.open(os.path.join(args.log_dir, f"{replica}.log"),
                  os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def note(event: str, ordinal: int) -> None:
        os.write(log, f"{time.time():.6f} {event} {replica} {ordinal}\n".encode())

    note("started", -1)
    service = build_data_shard_service(batch_size=1, num_epochs=1, dataset_size=args.size,
                                       num_minibatches_per_shard=1, dataset_name="shards")
    for shard in service.shards():
        note("leased", shard.ordinal)
        time.sleep(args.hold_ms / 1e3)
        service.report_batch_done(1)
        note("done", shard.ordinal)
    return 0


if __name__ == "__main__":
    sys.exit(main())
