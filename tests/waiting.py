"""The one poll of the tests: nothing else in them is a clock."""

import time
from typing import Callable


def wait_for(what: str, check: Callable[[], object], seconds: float = 60) -> object:
    """Polls until `check` returns something true, and returns that."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.02)
