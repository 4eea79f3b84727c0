"""The identity of this process and the address of its master, from the environment."""

import dataclasses
import os
from typing import Mapping, Optional, Tuple

from elasticai_api.common.constants import PodEnv
from elasticai_api.common.errors import MasterError

# WORKER_ID is unique in a job: the ids of each role start at a different multiple of a million.
_ROLES = ("worker", "chief", "evaluator", "ps")
_IDS_PER_ROLE = 1_000_000


@dataclasses.dataclass(frozen=True)
class Identity:
    """A replica: its role, and its id within the role."""

    role: str = "worker"
    replica_id: int = 0


def decode_worker_id(worker_id: int) -> Identity:
    """The replica with this WORKER_ID."""
    role = worker_id // _IDS_PER_ROLE
    if not 0 <= role < len(_ROLES):
        raise MasterError(
            f"{PodEnv.WORKER_ID}={worker_id} is out of range; it must be from 0 to "
            f"{len(_ROLES) * _IDS_PER_ROLE - 1}"
        )
    return Identity(_ROLES[role], worker_id % _IDS_PER_ROLE)


def _integer(env: Mapping[str, str], name: str) -> Optional[int]:
    text = env.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise MasterError(f"{name}={text!r} is not a number") from None


def identity_from_env(env: Optional[Mapping[str, str]] = None) -> Identity:
    """From WORKER_TYPE and ELASTICDL_REPLICA_ID, else from WORKER_ID, else worker 0."""
    env = os.environ if env is None else env
    worker_id = _integer(env, PodEnv.WORKER_ID)
    decoded = decode_worker_id(worker_id) if worker_id is not None else Identity()
    role = env.get(PodEnv.WORKER_TYPE, "") or decoded.role
    replica_id = _integer(env, PodEnv.REPLICA_ID)
    return Identity(role, decoded.replica_id if replica_id is None else replica_id)


def master_address(env: Optional[Mapping[str, str]] = None) -> str:
    """The host:port of the master, or "" if there is no master.

    DLROVER_MASTER_ADDR has precedence, because torch sets MASTER_ADDR to its own rendezvous host,
    without a port.
    """
    env = os.environ if env is None else env
    address = env.get(PodEnv.DLROVER_MASTER_ADDR, "")
    if address:
        return address
    address = env.get(PodEnv.MASTER_ADDR, "")
    return address if ":" in address else ""


def read_token(env: Optional[Mapping[str, str]] = None) -> Tuple[str, str]:
    """The job's token, and a description of its source for messages."""
    env = os.environ if env is None else env
    path = env.get(PodEnv.TOKEN_FILE, "")
    if path:
        try:
            with open(path, encoding="ascii") as file:
                token = file.read().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise MasterError(
                f"cannot read the job's token from {PodEnv.TOKEN_FILE}={path}: {error}"
            ) from error
        if not token:
            raise MasterError(
                f"{PodEnv.TOKEN_FILE}={path}: the file is empty; it must contain the job's token"
            )
        return token, f"{PodEnv.TOKEN_FILE}={path}"
    if env.get(PodEnv.TOKEN, ""):
        return env[PodEnv.TOKEN].strip(), PodEnv.TOKEN
    return "", f"neither {PodEnv.TOKEN_FILE} nor {PodEnv.TOKEN} is set"
