"""`python -m elasticdl.python.elasticdl.worker.main`: a worker that is started by hand. It attaches
to a master that runs with --attach_workers (`master.main`), and runs `python -m elasticdl.worker`
as the master says."""

from __future__ import annotations

import logging
import os
import sys
from argparse import Namespace
from typing import Sequence

from elasticdl.python.elasticdl.hand_flags import DEFAULT_PORT, FlagParser, model_of_file

MODULE = "elasticdl.python.elasticdl.worker.main"


def parse(arguments: Sequence[str]) -> tuple[FlagParser, Namespace]:
    parser = FlagParser(MODULE, (
        "Runs a worker of the job whose master listens at --master_addr. That job was started by\n"
        "  python -m elasticdl.python.elasticdl.master.main\n"
        "by the same user on the same machine. Data and model must have the same paths here."))
    parser.add_argument("--worker_id", default="", metavar="ID",
                        help="A name for the log. The master numbers its workers itself.")
    parser.add_argument("--master_addr", default=f"localhost:{DEFAULT_PORT}", metavar="HOST:PORT",
                        help="The address of the master. Default: %(default)s.")
    return parser, parser.parse(arguments)


def own_arguments(flags: Namespace) -> dict[str, str]:
    """Arguments of the worker process that replace those of the master. Raises ValueError with a
    message for users."""
    own = {}
    if flags.model_file:
        own["model_zoo"], own["model_module"] = model_of_file(flags.model_file)
    if flags.log_level:
        own["log_level"] = flags.log_level
    return own


def read_token_file(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            token = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--token_file={path}: cannot read the token: {error}") from None
    if not token:
        raise ValueError(f"--token_file={path}: the file is empty; it must contain the token")
    return token


def main(arguments: Sequence[str]) -> int:
    parser, flags = parse(arguments)
    try:
        own = own_arguments(flags)
        token = read_token_file(flags.token_file) if flags.token_file else ""
        if ":" not in flags.master_addr:
            raise ValueError(f"--master_addr={flags.master_addr}: expected HOST:PORT")
    except ValueError as error:
        parser.error(str(error))
    from elasticdl.python.elasticdl.worker.attached_worker import AttachedWorker

    logging.basicConfig(
        level=flags.log_level or "INFO", stream=sys.stderr,
        format="[%(asctime)s] [%(levelname)s] [%(filename)s:%(lineno)d:%(funcName)s] %(message)s")
    python = os.environ.get("ELASTICDL_PYTHON") or sys.executable
    return AttachedWorker(flags.master_addr, token, python, own, flags.worker_id).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
