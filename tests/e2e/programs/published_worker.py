#!/usr/bin/env python3
"""A training program for an unmodified, published elasticai_api, to be run with the interpreter of
an environment that has one. Each process logs the records that it processes, as lines `<part>
<record>`, to its own file in --log-dir.

--parts selects the ways to fetch data. They run one after the other, each with its own dataset.
"""

import argparse
import os
import random
import sys
import time

from elasticai_api.common import data_shard_service as api


def by_shards(args, name):
    """Calls fetch_shard and report_batch_done."""
    service = api.build_data_shard_service(
        batch_size=args.batch, num_epochs=args.epochs, dataset_size=args.size,
        num_minibatches_per_shard=2, dataset_name=name)
    while True:
        shard = service.fetch_shard()
        if not shard:
            return
        for start in range(shard.start, shard.end, args.batch):
            batch = range(start, min(start + args.batch, shard.end))
            yield from batch
            service.report_batch_done(len(batch))


def by_index(args, name):
    """Uses RecordIndexService, one record at a time."""
    service = api.RecordIndexService(
        batch_size=args.batch, num_epochs=args.epochs, dataset_size=args.size,
        num_minibatches_per_shard=2, dataset_name=name)
    pending = 0
    while True:
        try:
            index = service.fetch_record_index()
        except StopIteration:
            break
        if index is None:
            break
        yield index
        pending += 1
        if pending == args.batch:
            service.report_batch_done(pending)
            pending = 0
    if pending:
        service.report_batch_done(pending)


def by_generator(args, name):
    """The generator of the tutorial, with a shuffle buffer and batches like those of tf.data."""
    service = api.build_data_shard_service(
        batch_size=args.batch, num_epochs=args.epochs, dataset_size=args.size,
        num_minibatches_per_shard=1, dataset_name=name)

    def generator():
        while True:
            shard = service.fetch_shard()
            if not shard:
                break
            yield from range(shard.start, shard.end)

    def shuffled(records, size):
        buffer = []
        for record in records:
            buffer.append(record)
            if len(buffer) > size:
                yield buffer.pop(random.randrange(len(buffer)))
        random.shuffle(buffer)
        yield from buffer

    batch = []
    for record in shuffled(generator(), 100):
        batch.append(record)
        if len(batch) == args.batch:
            yield from batch
            service.report_batch_done()
            batch = []
    yield from batch
    if batch:
        service.report_batch_done()


PARTS = {"shards": by_shards, "index": by_index, "generator": by_generator}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default="shards,index,generator")
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--record-us", type=int, default=1000)
    parser.add_argument("--log-dir", required=True)
    args = parser.parse_args()
    os.makedirs(args.log_dir, exist_ok=True)
    path = os.path.join(args.log_dir, "worker-%s-%d.log" % (os.environ["WORKER_ID"], os.getpid()))
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for part in args.parts.split(","):
        for record in PARTS[part](args, part):
            time.sleep(args.record_us / 1e6)
            os.write(log, b"%s %d\n" % (part.encode(), record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
