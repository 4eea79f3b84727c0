"""Where the time of a worker goes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class Stopwatch:
    """Adds up how long the main thread of the worker spends in each activity."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._begin = time.monotonic()

    @contextlib.contextmanager
    def measure(self, activity: str) -> Iterator[None]:
        begin = time.monotonic()
        try:
            yield
        finally:
            passed = time.monotonic() - begin
            self._seconds[activity] = self._seconds.get(activity, 0.0) + passed

    def seconds(self) -> dict[str, float]:
        return dict(self._seconds)

    def summary(self) -> str:
        """Such as "step 81 %, pull 7 %, input 5 %, other 7 % of 12.3 s"."""
        total = max(time.monotonic() - self._begin, 1e-9)
        parts = sorted(self._seconds.items(), key=lambda part: -part[1])
        rest = max(0.0, total - sum(self._seconds.values()))
        shown = [f"{name} {100 * seconds / total:.0f} %" for name, seconds in parts]
        return ", ".join([*shown, f"other {100 * rest / total:.0f} %"]) + f" of {total:.1f} s"
