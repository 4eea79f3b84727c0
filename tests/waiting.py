"""The only function with which tests wait."""

import time
from typing import Callable


def wait_for(what: str, check: Callable[[], object], seconds: float = 60) -> object:
    """Polls until `check` returns a true value, and returns it. Fails after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"timed out after {seconds} s waiting for {what}")
        time.sleep(0.02)
