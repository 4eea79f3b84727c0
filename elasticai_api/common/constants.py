"""Names and numbers that programs written for the published packages refer to."""

import enum


class TaskType(enum.IntEnum):
    """What the records of a dataset are for. The numbers are those of the published wire."""

    NONE = 0
    TRAINING = 1
    EVALUATION = 2
    PREDICTION = 3
    WAIT = 4
    TRAIN_END_CALLBACK = 5


class DefaultDatasetName:
    """The name of a dataset whose program gave it none."""

    TRAINING = "_EDL_DEFAULT_TRAINING_DATA"
    EVALUATION = "_EDL_DEFAULT_EVALUATION_DATA"


class DatasetShardRemainder:
    """Accepted as `remainder`. Every record is handed out, so neither changes anything."""

    FILL = "fill"
    DROP = "drop"


class TaskExecCounterKey:
    FAIL_COUNT = "fail_count"


class TrainingLoopStatus:
    START = 1
    END = 2
    PENDING = 3


class PodEnv:
    """The environment of a replica."""

    MASTER_ADDR = "MASTER_ADDR"
    DLROVER_MASTER_ADDR = "DLROVER_MASTER_ADDR"
    WORKER_ID = "WORKER_ID"
    WORKER_TYPE = "WORKER_TYPE"
    WORKER_NUM = "WORKER_NUM"
    RELAUNCHED_POD = "RELAUNCHED_POD"
    ELASTICDL_ENABLED = "ELASTICDL_ENABLED"
    TOKEN_FILE = "ELASTICDL_TOKEN_FILE"
    TOKEN = "ELASTICDL_TOKEN"
    JOB_NAME = "ELASTICDL_JOB_NAME"
    REPLICA_ID = "ELASTICDL_REPLICA_ID"


WorkerEnv = PodEnv
