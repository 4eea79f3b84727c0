"""How soon a worker notices that the chief has made the model ready."""

import functools
from typing import Any

from tensorflow.python.training import session_manager


def look_for_the_chief_every(secs: float) -> None:
    """Lets TensorFlow's workers ask every `secs` seconds whether the chief is ready.

    TensorFlow asks every 30 s, at the start and after each loss of a ps or of the chief, and no
    RunConfig changes that: a worker that comes a moment too early idles for half a minute. Call
    it once, before training.
    """
    make = session_manager.SessionManager.__init__
    make = getattr(make, "__wrapped__", make)

    @functools.wraps(make)
    def impatient(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) < 5:
            kwargs.setdefault("recovery_wait_secs", secs)
        make(self, *args, **kwargs)

    session_manager.SessionManager.__init__ = impatient
