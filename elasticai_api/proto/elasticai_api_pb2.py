"""The task types, under the name that programs for the published packages import.

It has no messages: programs get plain objects (elasticai_api.common.shard).
"""

from elasticai_api.common.constants import TaskType

NONE = TaskType.NONE
TRAINING = TaskType.TRAINING
EVALUATION = TaskType.EVALUATION
PREDICTION = TaskType.PREDICTION
WAIT = TaskType.WAIT
TRAIN_END_CALLBACK = TaskType.TRAIN_END_CALLBACK
