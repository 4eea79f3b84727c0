"""Which of the shards that this program fetched it has trained, by counting records."""

import dataclasses
import weakref
from typing import Any, Collection, Dict, List, Optional

from elasticai_api.common.shard import Outcome, Report, Shard


@dataclasses.dataclass
class _Open:
    shard: Shard
    left: int
    by: Any  # who fetched it
    error: str = ""


class OpenShards:
    """The shards fetched and not reported yet, oldest first. Confined: a service's lock guards it.

    A program says how many records it trained, not which: they are credited to the oldest open
    shards. What is said beyond the records fetched is dropped, so a batch that was shorter than
    said (the last of the data usually is) never counts for a shard that is fetched later.

    `by` stands for a thread. A thread that fetches and reports trains what it fetched, and its
    records count for its own shards only. One that reports and has no shard of its own is fed by
    others, and its records count for the shards of threads that have never reported. If several
    such threads live at the same time, nobody knows whose shard a record belongs to: they have to
    name it.
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
        """The oldest shard that a report by `by` would count for."""
        return next((self._open[lease].shard for lease in self._trained_by(by)), None)

    def credit(
        self, records: int, by: Any, error: str = "", leases: Collection[int] = ()
    ) -> List[Report]:
        """Counts `records` as trained, or as failed where there is an `error`, in the shards of
        `leases` only where given. Reports of the shards that are complete with that.

        ValueError: several threads train shards that others fetched, and `leases` is empty."""
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
        """All were trained to their last record."""
        return self._take(_report)

    def give_back(self) -> List[Report]:
        """None was, as far as one can know."""
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
