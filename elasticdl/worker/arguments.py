"""The arguments of the worker. `elasticdl train` passes them; docs/flags.md explains the flags."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

from elasticai_api.util.log_utils import default_logger as logger
from elasticdl.model.model_spec import SymbolNames


@dataclasses.dataclass
class Arguments:
    job_type: str = "training"
    job_name: str = ""
    model_zoo: str = ""
    model_def: str = ""
    names: SymbolNames = dataclasses.field(default_factory=SymbolNames)
    data_reader_params: str = ""
    training_data: str = ""
    validation_data: str = ""
    prediction_data: str = ""
    minibatch_size: int = 64
    num_minibatches_per_task: int = 8
    evaluation_steps: int = 0
    get_model_steps: int = 1
    use_async: bool = False
    grads_to_wait: int = 1
    log_loss_steps: int = 100
    output: str = ""
    tensorboard_log_dir: str = ""
    seed: int = 0
    log_level: str = "INFO"

    @property
    def records_per_task(self) -> int:
        return self.minibatch_size * self.num_minibatches_per_task


def parse_arguments(arguments: Sequence[str]) -> Arguments:
    parser = argparse.ArgumentParser(
        prog="python -m elasticdl.worker", allow_abbrev=False,
        description="The worker of a job with --model_def. `elasticdl train` starts it.")
    parser.add_argument("--job_type", choices=("training", "evaluation", "prediction"),
                        default="training")
    for field in dataclasses.fields(Arguments):
        if field.name in ("names", "job_type"):
            continue
        kind = {"int": int, "bool": _boolean}.get(str(field.type), str)
        parser.add_argument(f"--{field.name}", type=kind, default=field.default)
    for field in dataclasses.fields(SymbolNames):
        parser.add_argument(f"--{field.name}", default=field.default)
    known, unknown = parser.parse_known_args(arguments)
    if unknown:
        logger.warning("ignoring arguments that this version does not know: %s", " ".join(unknown))
    parsed = vars(known)
    names = SymbolNames(**{field.name: parsed.pop(field.name)
                           for field in dataclasses.fields(SymbolNames)})
    return Arguments(names=names, **parsed)


def _boolean(text: str) -> bool:
    return text.strip().lower() in ("true", "yes", "t", "y", "1")
