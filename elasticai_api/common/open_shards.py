"""Counts trained records to determine which of the fetched shards are trained."""

import dataclasses
import weakref
from typing import Any, Collection, Dict, List, Optional

from elasticai_api.common.shard import Outcome, Report, Shard


@dataclasses.dataclass
class _Open:
    shard: Shard
    left: int
    by: Any  # the thread that fetched the shard
    error: str = ""


class OpenShards:
    """The shards that are fetched but not reported, oldest first. Confined: a service's lock guards
    it.

    A program reports how many records it has trained, but not which. They are credited to the
    oldest open shards. Records beyond those that were fetched are ignored, so a batch that was
    shorter than reported (usually the last one) is never credited to a shard that is fetched later.

    `by` represents a thread. The records of a thread that fetches and reports are credited to the
    shards that it fetched. A thread that reports without having fetched trains shards of other
    threads, and its records are credited to the shards of threads that have never reported. If
    there are several such threads at the same time, it is unknown to which shard a record belongs,
    and they have to name the shard.
    """

    def __init__(self) -> None:
        self._open: Dict[int, _Open] = {}
        self._reporters: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self._fed: "weakref.WeakSet[Any]" = weakref.WeakSet()  # reported shards of others

    def __len__(self) -> int:
        return len(self._open)

    def add(self, shard: Shard, by: Any) -> None:
        self._open[shard.lease] = _Open(shard, shard.size, by)

    def oldest(self, by: Any) -> Optional[Shard]:
        """The oldest shard to which records of `by` would be credited."""
        return next((self._open[lease].shard for lease in self._trained_by(by)), None)

    def credit(
        self, records: int, by: Any, error: str = "", leases: Collection[int] = ()
    ) -> List[Report]:
        """Credits `records` as trained, or with an `error` as failed. Returns reports of the shards
        that are complete now. If `leases` is given, only these shards are credited.

        Raises ValueError if several threads train shards that others fetched, and `leases` is
        empty."""
        if not leases:
            self._check_unambiguous(by)
        self._reporters.add(by)
        complete = []
        for lease in list(leases) or self._trained_by(by):
            entry = self._open.get(lease)
            if entry is None or records <= 0:
                continue
            counted = min(records, entry.left)
            records -= counted
            entry.left -= counted
            entry.error = entry.error or error
            if entry.left == 0:
                del self._open[lease]
                complete.append(_report(entry))
        return complete

    def complete_all(self) -> List[Report]:
        """Removes all shards and reports them as done."""
        return self._take(_report)

    def give_back(self) -> List[Report]:
        """Removes all shards and reports them as given back, because they may not be trained."""
        return self._take(lambda entry: Report(entry.shard.lease, Outcome.GIVEN_BACK))

    def fail(self, error: str) -> List[Report]:
        return self._take(lambda entry: Report(entry.shard.lease, Outcome.FAILED, error))

    def _check_unambiguous(self, by: Any) -> None:
        candidates = [self._open[lease] for lease in self._trained_by(by)]
        if not candidates or candidates[0].by is by:
            return
        self._fed.add(by)
        if len(candidates) > 1 and any(other is not by and other.is_alive() for other in self._fed):
            raise ValueError(
                "several threads report batches of shards that other threads fetched: pass "
                "task_ids=[shard.lease] to report_batch_done, or let each thread fetch its own "
                "shards"
            )

    def _trained_by(self, by: Any) -> List[int]:
        own = [lease for lease, entry in self._open.items() if entry.by is by]
        if own:
            return own
        return [lease for lease, entry in self._open.items() if entry.by not in self._reporters]

    def _take(self, make_report) -> List[Report]:
        taken, self._open = self._open, {}
        return [make_report(entry) for entry in taken.values()]


def _report(entry: _Open) -> Report:
    outcome = Outcome.FAILED if entry.error else Outcome.DONE
    return Report(entry.shard.lease, outcome, entry.error)
