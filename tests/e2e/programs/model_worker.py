#!/usr/bin/env python3
"""Plays the worker of a job with --model_def, without TensorFlow: --python names this file.

--training_data, --validation_data and --prediction_data are numbers of records. A part of an
evaluation results in the numbers of its records, which a merge checks and counts. The export
writes the version. --custom_data_reader=fail fails the job.
"""

import argparse
import json
import os
import sys
import time

from elasticai_api.common.errors import MasterError
from elasticai_api.common.master_client import MasterClient, build_master_client
from elasticai_api.common.messages import Answer
from elasticai_api.common.shard import DatasetSpec, Outcome, Report, Shard


def evaluate(shard: Shard) -> bytes:
    return json.dumps([shard.version, *shard.records()]).encode()


def merge(client: MasterClient, shard: Shard, size: int) -> Report:
    generation = client.get_dataset("evaluation").generation
    try:
        parts = [json.loads(part) for _, part in client.get_results("evaluation", generation)]
    except MasterError as error:
        return Report(shard.lease, Outcome.FAILED, str(error))
    records = sorted(record for part in parts for record in part[1:])
    versions = {part[0] for part in parts}
    if records != list(range(size)) or versions != {shard.version}:
        return Report(shard.lease, Outcome.FAILED, f"{len(records)} records of {versions}")
    text = {"text": str({"records": len(records)}), "metrics": {"records": len(records)}}
    return Report(shard.lease, result=json.dumps(text).encode())


def export(shard: Shard, path: str) -> None:
    with open(path + ".part", "w") as file:
        file.write(str(shard.version))
    os.replace(path + ".part", path)


def work(client: MasterClient, shard: Shard, args: argparse.Namespace) -> Report:
    time.sleep(args.log_loss_steps / 1e3)  # the work of a shard: --log_loss_steps ms
    if shard.name == "evaluation":
        return Report(shard.lease, result=evaluate(shard))
    if shard.name == "evaluation_merge":
        return merge(client, shard, int(args.validation_data))
    if shard.name == "export":
        export(shard, args.output)
    return Report(shard.lease)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-m", dest="module")
    parser.add_argument("--job_type", required=True)
    for name in ("training_data", "validation_data", "prediction_data", "output",
                 "custom_data_reader"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--log_loss_steps", type=int, default=0)
    args, _ = parser.parse_known_args()
    client = build_master_client()
    if args.custom_data_reader == "fail":
        client.fail("cannot import the model:\nNo module named 'nowhere'")
        return 1
    sizes = {"training": args.training_data, "evaluation": args.validation_data,
             "prediction": args.prediction_data}
    for name, size in sizes.items():
        if size and (args.job_type != "evaluation" or name == "evaluation"):
            client.register_dataset(DatasetSpec(name, int(size), epochs=0, task_type=name))
    dataset, reports = args.job_type, []
    while True:
        got = client.report_and_lease(reports, dataset, 1, 5.0)
        if got.answer == Answer.FINISHED:
            return 0
        dataset = got.next_dataset
        reports = [work(client, shard, args) for shard in got.shards]


if __name__ == "__main__":
    sys.exit(main())
