"""Settings for the recovery of TensorFlow's chief and workers after a loss.

RunConfig does not offer them, so they are set on tf.train.SessionManager for the whole process.
Call each function once, before training.
"""

import functools
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.training import session_manager

from elasticai_api.util.log_utils import default_logger as logger


def look_for_the_chief_every(secs: float) -> None:
    """Makes workers check every `secs` seconds whether the chief has initialised the model.

    TensorFlow checks every 30 s, at the start and after each loss of a ps or of the chief, so a
    worker that checks slightly too early is idle for half a minute.
    """
    make = _original("__init__")

    @functools.wraps(make)
    def with_shorter_wait(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) < 5:
            kwargs.setdefault("recovery_wait_secs", secs)
        make(self, *args, **kwargs)

    session_manager.SessionManager.__init__ = with_shorter_wait


def keep_what_the_ps_has() -> None:
    """Makes a restarted chief continue with the model on the ps.

    TensorFlow's chief restores the last checkpoint whenever it creates a session. This discards all
    training since then, although every ps still has it. With this setting, the chief restores only
    if a variable is missing: at the start, and after the loss of a ps.
    """
    restore = _original("_restore_checkpoint")

    @functools.wraps(restore)
    def restore_if_missing(self: Any, master: str, *args: Any, **kwargs: Any) -> Any:
        if master:  # without a master there is no ps, and a new session has no variables
            session = tf.Session(master, graph=self._graph, config=kwargs.get("config"))
            complete, _ = self._model_ready_for_local_init(session)
            if complete:
                logger.warning("the ps has the whole model: no checkpoint is restored")
                return session, True
            session.close()
        return restore(self, master, *args, **kwargs)

    session_manager.SessionManager._restore_checkpoint = restore_if_missing


def _original(method: str) -> Any:
    found = getattr(session_manager.SessionManager, method)
    return getattr(found, "__wrapped__", found)
