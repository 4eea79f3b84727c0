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

    def shares(self) -> dict[str, float]:
        """The share of each activity in the time of the worker so far, the largest first, and
        "other" for the rest."""
        total = self._total()
        parts = sorted(self._seconds.items(), key=lambda part: -part[1])
        shares = {name: seconds / total for name, seconds in parts}
        return {**shares, "other": max(0.0, 1 - sum(shares.values()))}

    def summary(self) -> str:
        """Such as "step 81 %, pull 7 %, input 5 %, other 7 % of 12.3 s"."""
        shown = [f"{name} {100 * share:.0f} %" for name, share in self.shares().items()]
        return f"{', '.join(shown)} of {self._total():.1f} s"

    def _total(self) -> float:
        return max(time.monotonic() - self._begin, 1e-9)
