"""`python -m elasticdl.worker`: the worker of a job with --model_def."""

from __future__ import annotations

import logging
import os
import signal
import sys

from elasticdl.model.errors import ModelError

# TensorFlow's own lines below warnings are of no use to a user.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main() -> int:
    from elasticai_api.common.master_client import build_master_client
    from elasticai_api.util.log_utils import default_logger as logger
    from elasticdl.worker.arguments import parse_arguments

    arguments = parse_arguments(sys.argv[1:])
    logging.basicConfig(
        level=arguments.log_level, stream=sys.stderr,
        format="[%(asctime)s] [%(levelname)s] [%(filename)s:%(lineno)d:%(funcName)s] %(message)s")
    master = build_master_client()
    try:
        run(arguments, master)
    except ModelError as error:
        logger.error("%s", error)
        logger.debug("the error was raised here:", exc_info=True)
        master.fail(str(error))
        return 1
    return 0


def run(arguments, master) -> None:
    from elasticdl.model.model_file import ModelFile, resolve_zoo
    from elasticdl.model.model_spec import ModelSpec
    from elasticdl.shard_trainer import job_client
    from elasticdl.worker.job import WorkerJob

    file = ModelFile(resolve_zoo(arguments.model_zoo), arguments.model_def)
    spec = ModelSpec(file, arguments.names, arguments.job_type)
    with job_client() as client:
        job = WorkerJob(arguments, spec, master, client)
        signal.signal(signal.SIGTERM, lambda *_: job.leave())
        job.run()


if __name__ == "__main__":
    sys.exit(main())
