"""Who this process is and where its master listens, read from the environment."""

import dataclasses
import os
from typing import Mapping, Optional, Tuple

from elasticai_api.common.constants import PodEnv
from elasticai_api.common.errors import MasterError

# WORKER_ID is unique over all roles of a job: each role's ids start at its own million.
_ROLES = ("worker", "chief", "evaluator", "ps")
_IDS_PER_ROLE = 1_000_000


@dataclasses.dataclass(frozen=True)
class Identity:
    """A replica: its role, and its id within the role."""

    role: str = "worker"
    replica_id: int = 0


def decode_worker_id(worker_id: int) -> Identity:
    """The replica that a WORKER_ID stands for."""
    role = worker_id // _IDS_PER_ROLE
    if not 0 <= role < len(_ROLES):
        raise MasterError(
            f"{PodEnv.WORKER_ID}={worker_id} belongs to no role; it must be from 0 to "
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
    """WORKER_TYPE with ELASTICDL_REPLICA_ID, or what WORKER_ID says; worker 0 without either."""
    env = os.environ if env is None else env
    worker_id = _integer(env, PodEnv.WORKER_ID)
    decoded = decode_worker_id(worker_id) if worker_id is not None else Identity()
    role = env.get(PodEnv.WORKER_TYPE, "") or decoded.role
    replica_id = _integer(env, PodEnv.REPLICA_ID)
    return Identity(role, decoded.replica_id if replica_id is None else replica_id)


def master_address(env: Optional[Mapping[str, str]] = None) -> str:
    """The master's host:port, or "" where there is none.

    DLROVER_MASTER_ADDR goes first, since torch writes its own rendezvous host, without a port,
    to MASTER_ADDR.
    """
    env = os.environ if env is None else env
    address = env.get(PodEnv.DLROVER_MASTER_ADDR, "")
    if address:
        return address
    address = env.get(PodEnv.MASTER_ADDR, "")
    return address if ":" in address else ""


def read_token(env: Optional[Mapping[str, str]] = None) -> Tuple[str, str]:
    """The job's token, and in words where it came from."""
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
            raise MasterError(f"{PodEnv.TOKEN_FILE}={path} holds no token: the file is empty")
        return token, f"{PodEnv.TOKEN_FILE}={path}"
    if env.get(PodEnv.TOKEN, ""):
        return env[PodEnv.TOKEN].strip(), PodEnv.TOKEN
    return "", f"neither {PodEnv.TOKEN_FILE} nor {PodEnv.TOKEN} is set"
