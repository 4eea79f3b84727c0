"""`python -m elasticdl.python.elasticdl.master.main`: the master of a job whose workers are started
by hand. It becomes one `elasticdl train --attach_workers`."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace
from typing import Sequence

from elasticdl.python.elasticdl.hand_flags import DEFAULT_PORT, FlagParser, model_of_file

MODULE = "elasticdl.python.elasticdl.master.main"
# Flags of `elasticdl train` that are passed to it unchanged.
PASSED = (
    "num_epochs", "grads_to_wait", "minibatch_size", "max_step", "evaluation_steps",
    "checkpoint_steps", "checkpoint_dir", "checkpoint_dir_for_init", "keep_checkpoint_max",
    "output", "tensorboard_log_dir", "use_async", "sync_version_tolerance", "get_model_steps",
    "lr_staleness_modulation", "log_loss_steps", "data_reader_params", "custom_data_reader", "feed",
    "loss", "optimizer", "callbacks", "eval_metrics_fn", "num_workers", "num_ps_pods", "envs",
    "relaunch_on_worker_failure", "max_bad_shards", "resume", "dry_run",
)
# Older names of flags of `elasticdl train`.
RENAMED = {"training_data_dir": "training_data", "evaluation_data_dir": "validation_data",
           "checkpoint_filename_for_init": "checkpoint_dir_for_init", "num_worker": "num_workers"}


def parse(arguments: Sequence[str]) -> tuple[FlagParser, Namespace]:
    parser = FlagParser(MODULE, (
        "Starts the master and one parameter server of a job. Start each worker by hand with\n"
        "  python -m elasticdl.python.elasticdl.worker.main --master_addr=localhost:PORT"))
    parser.add_argument("--job_name", required=True, metavar="NAME",
                        help="The job's name: small letters, digits and '-'.")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, metavar="N",
                        help="The port of the master, on 127.0.0.1. Default: %(default)s.")
    parser.add_argument("--records_per_task", type=int, metavar="N",
                        help="Records in a shard, rounded up to whole batches.")
    for name in (*RENAMED, *PASSED):
        meaning = RENAMED.get(name, name)
        parser.add_argument(f"--{name}", metavar="VALUE",
                            help=f"As --{meaning} of `elasticdl train`.")
    return parser, parser.parse(arguments)


def train_command(flags: Namespace) -> list[str]:
    """The arguments of `elasticdl`. Raises ValueError with a message for users."""
    if not flags.model_file:
        raise ValueError("--model_file is missing: give the file of the model to train")
    folder, module = model_of_file(flags.model_file)
    given = {name: value for name, value in vars(flags).items() if value is not None}
    train = {"backend": "local", "attach_workers": "true", "job_name": flags.job_name,
             "master_port": port_of(flags), "model_zoo": folder,
             "model_def": f"{module}.custom_model", "python": sys.executable, "num_workers": "1"}
    if flags.token_file:
        train["token_file"] = flags.token_file
    if flags.log_level:
        train["log_level"] = flags.log_level
    for name in (*RENAMED, *PASSED):
        if name in given:
            train[RENAMED.get(name, name)] = given[name]
    if flags.records_per_task is not None:
        train["num_minibatches_per_task"] = str(batches_per_task(flags))
    return ["train", *(f"--{name}={value}" for name, value in train.items())]


def port_of(flags: Namespace) -> str:
    if not 1 <= flags.port <= 65535:
        raise ValueError(f"--port={flags.port}: a port is from 1 to 65535")
    return str(flags.port)


def batches_per_task(flags: Namespace) -> int:
    text = "64" if flags.minibatch_size is None else flags.minibatch_size
    batch = int(text) if text.isdecimal() else 0
    if batch < 1:
        raise ValueError(f"--minibatch_size={text}: the number of records in a batch must be 1 or "
                         "more")
    if flags.records_per_task < 1:
        raise ValueError(f"--records_per_task={flags.records_per_task}: the number of records in a "
                         "shard must be 1 or more")
    return -(-flags.records_per_task // batch)


def find_binary() -> str:
    """The program `elasticdl`. Raises ValueError with a message for users."""
    given = os.environ.get("ELASTICDL_BIN")
    beside = os.path.join(os.path.dirname(sys.executable), "elasticdl")
    found = given or (beside if os.access(beside, os.X_OK) else shutil.which("elasticdl"))
    if not found:
        raise ValueError(f"the program elasticdl is neither beside {sys.executable} nor in PATH; "
                         "install it with `pip install elasticdl-client`, or name it with "
                         "ELASTICDL_BIN")
    if not os.access(found, os.X_OK):
        raise ValueError(f"ELASTICDL_BIN={found}: there is no such program")
    return found


def main(arguments: Sequence[str]) -> None:
    parser, flags = parse(arguments)
    try:
        binary, command = find_binary(), train_command(flags)
    except ValueError as error:
        parser.error(str(error))
    sys.stdout.flush()
    os.execv(binary, [binary, *command])


if __name__ == "__main__":
    main(sys.argv[1:])
