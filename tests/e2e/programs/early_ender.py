#!/usr/bin/env python3
"""A program that ends its training in an unusual way, which --how selects."""

import argparse
import sys

from elasticai_api.common.data_shard_service import build_data_shard_service
from elasticai_api.common.identity import identity_from_env


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--how", choices=("leaves", "finishes", "never-reports", "nan", "empty",
                                          "fails", "gives-no-sizes"), required=True)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--fixed-file", default="", help="when this file exists, no record fails")
    args = parser.parse_args()
    size = 0 if args.how == "empty" else args.size
    sizes = dict(batch_size=10, num_epochs=1, num_minibatches_per_shard=1)
    if args.how == "gives-no-sizes":
        sizes = dict(batch_size=None)
    service = build_data_shard_service(dataset_size=size, dataset_name="records", **sizes)
    seen = 0
    for shard in service.shards():
        seen += shard.size
        if args.how == "never-reports":
            continue
        if args.how == "nan":
            service.report_metrics(seen, loss=float("nan"), norm=float("inf"))
        error = ""
        if args.how == "fails" and shard.start == 500:
            try:
                open(args.fixed_file).close()
            except OSError:
                error = "record 500 is broken"
        service.report_batch_done(shard.size, err_msg=error, task_ids=[shard.lease])
        if args.how in ("leaves", "finishes") and seen >= 80:
            break
    if args.how == "finishes":
        service.finish()
    print(f"{identity_from_env().role} seen {seen}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
