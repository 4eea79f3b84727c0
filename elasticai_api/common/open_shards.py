"""Which of the shards that this program fetched it has trained, by counting records."""

import dataclasses
from typing import Collection, Dict, List, Optional

from elasticai_api.common.shard import Outcome, Report, Shard


@dataclasses.dataclass
class _Open:
    shard: Shard
    left: int
    error: str = ""


class OpenShards:
    """The shards fetched and not reported yet, oldest first. Confined: a service's lock guards it.

    A program says how many records it trained, not which: they are credited to the oldest open
    shards. What is said beyond the records fetched is dropped, so a batch that was shorter than
    said (the last of the data usually is) never counts for a shard that is fetched later.
    """

    def __init__(self) -> None:
        self._open: Dict[int, _Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, shard: Shard) -> None:
        self._open[shard.lease] = _Open(shard, shard.size)

    def oldest(self) -> Optional[Shard]:
        return next((o.shard for o in self._open.values()), None)

    def credit(
        self, records: int, error: str = "", leases: Collection[int] = ()
    ) -> List[Report]:
        """Counts `records` as trained, or as failed where there is an `error`, in the shards of
        `leases` only where given. Reports of the shards that are complete with that."""
        complete = []
        for lease in list(leases) or list(self._open):
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

    def _take(self, make_report) -> List[Report]:
        taken, self._open = self._open, {}
        return [make_report(entry) for entry in taken.values()]


def _report(entry: _Open) -> Report:
    outcome = Outcome.FAILED if entry.error else Outcome.DONE
    return Report(entry.shard.lease, outcome, entry.error)
