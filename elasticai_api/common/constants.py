"""Names and numbers that programs for the published packages use."""

import enum


class TaskType(enum.IntEnum):
    """The purpose of the records of a dataset. The numbers are those of the published API."""

    NONE = 0
    TRAINING = 1
    EVALUATION = 2
    PREDICTION = 3
    WAIT = 4
    TRAIN_END_CALLBACK = 5


class DefaultDatasetName:
    """The name of a dataset for which the program gives no name."""

    TRAINING = "_EDL_DEFAULT_TRAINING_DATA"
    EVALUATION = "_EDL_DEFAULT_EVALUATION_DATA"


class DatasetShardRemainder:
    """Accepted as `remainder`, without effect: every record is handed out."""

    FILL = "fill"
    DROP = "drop"


class TaskExecCounterKey:
    FAIL_COUNT = "fail_count"


class TrainingLoopStatus:
    START = 1
    END = 2
    PENDING = 3


class PodEnv:
    """Environment variables of a replica."""

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
