"""The membership of this process in its job: joining, heartbeats, leases and numbered calls."""

import dataclasses
import os
import socket
import threading
import time
from typing import Any, Iterable, List, Optional, Sequence, Set

from elasticai_api.common import messages
from elasticai_api.common.connection import Backoff, Connection, JoinAgain, Unreachable
from elasticai_api.common.errors import MasterError
from elasticai_api.common.identity import Identity
from elasticai_api.common.shard import Answered, Report, Shard
from elasticai_api.util.log_utils import default_logger as logger

CALL_S = 10.0  # the timeout of a call, in addition to the time that it may be held
_LEAVE_S = 1.0
_MUTE_S = 30.0  # after this time without an answer, a new connection is made


@dataclasses.dataclass
class _Call:
    """A ReportAndLease call in progress. `joins_sent`: the Joins that were sent before it."""

    ledger: int
    incarnation: int
    number: int
    joins_sent: int
    reports: List[Report]


class Session:
    """Joins the job, sends heartbeats, and keeps the list of leases that it holds. Thread-safe.

    A call that the master does not answer is sent again, unchanged and with the same number, until
    it is answered. A restarted master sends the answer that it has stored, so a lost answer does no
    harm. A master that answers ABORTED has considered this process lost. The session then joins
    again and lists its leases; leases that went to other processes are dropped and not reported.
    """

    def __init__(self, connection: Connection, identity: Identity):
        self._connection = connection
        self._identity = identity
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._join_lock = threading.Lock()  # one Join at a time; taken before _lock
        self._lock = threading.Lock()
        self._incarnation = 0
        self._ledger = 0  # the ledger that assigned the incarnation and the leases
        self._joins_sent = 0
        self._joins_answered = 0  # the number of the newest Join that was answered
        self._held: Set[int] = set()
        self._reporting: Set[int] = set()
        self._last_number = 0
        self._unanswered: Set[int] = set()
        self._heartbeat_s = 1.0
        self._last_sent = time.monotonic()
        self._threads: List[threading.Thread] = []
        self._watch_call: Optional[Any] = None
        self._membership: Optional[Any] = None
        self._membership_changed = threading.Condition(self._lock)

    def after_fork(self) -> None:
        """In the child: this process has not joined the job and holds no leases."""
        self._start_afresh()
        self._connection.after_fork()

    # --- calls ---

    def call(self, name: str, timeout_s: float = CALL_S, /, **fields: Any) -> Any:
        """Calls until there is an answer. Sets the field `incarnation` if it is given as None.

        Raises MasterError if the master rejects the call."""
        backoff = Backoff(name, self._connection.closed)
        while True:
            joins = self._ensure_joined()
            if "incarnation" in fields:
                fields["incarnation"] = self._incarnation
                fields["ledger"] = self._ledger
            try:
                self._last_sent = time.monotonic()
                return self._connection.attempt(
                    name, messages.method(name).request(**fields), timeout_s
                )
            except Unreachable as error:
                backoff.pause(error)
            except JoinAgain as error:
                backoff.pause(error)
                self._rejoin(joins)

    def tell(self, name: str, timeout_s: float, /, **fields: Any) -> None:
        """Makes one attempt and ignores the result."""
        if self._incarnation == 0 and not self._connection.closed.is_set():
            self._ensure_joined()
        fields["incarnation"] = self._incarnation
        fields["ledger"] = self._ledger
        try:
            self._connection.attempt(name, messages.method(name).request(**fields), timeout_s)
        except (Unreachable, JoinAgain, MasterError) as error:
            logger.debug("%s: %s", name, error)

    def report_and_lease(
        self, reports: Iterable[Report], dataset: str = "", at_most: int = 0, wait_s: float = 0.0
    ) -> Answered:
        """Reports, and leases up to `at_most` shards of `dataset`. The master may hold the call for
        up to `wait_s`."""
        self._ensure_joined()
        reports = list(reports)
        call = self._begin(reports)
        backoff = Backoff("ReportAndLease", self._connection.closed)
        counted: Set[int] = set()  # leases that a RETRY answer has counted
        try:
            while True:
                if reports and not call.reports and not at_most:
                    return self._conclude(call, reports, None, counted)
                joins = self._joins_sent
                request = self._report_and_lease_request(call, dataset, at_most, wait_s)
                try:
                    self._last_sent = time.monotonic()
                    response = self._connection.attempt("ReportAndLease", request, wait_s + CALL_S)
                    if response.answer != messages.Answer.RETRY:
                        return self._conclude(call, reports, response, counted)
                    counted |= self._accepted(call, response)
                    backoff.pause("the master answered RETRY")
                    call = self._begin_again(call, reports)
                except Unreachable as error:
                    backoff.pause(error)
                except JoinAgain as error:
                    backoff.pause(error)
                    self._rejoin(joins)
                if not self._is_current(call):
                    call = self._begin_again(call, reports)
        finally:
            self._end(call)

    def holds(self, lease: int) -> bool:
        with self._lock:
            return lease in self._held

    @property
    def incarnation(self) -> int:
        return self._incarnation

    def membership(self, newer_than: int, timeout_s: Optional[float]) -> Optional[Any]:
        """Waits for a Membership with a number above `newer_than`. Returns the newest one."""
        self._ensure_joined()
        with self._membership_changed:
            self._membership_changed.wait_for(
                lambda: self._membership is not None and self._membership.number > newer_than,
                timeout_s,
            )
            return self._membership

    def close(self) -> None:
        """Leaves the job, with a timeout of one second. The master reclaims open leases."""
        self._connection.closed.set()
        watch = self._watch_call
        if watch is not None:
            watch.cancel()
        if self._incarnation:
            request = messages.method("Leave").request(
                incarnation=self._incarnation, ledger=self._ledger
            )
            try:
                self._connection.attempt("Leave", request, _LEAVE_S)
            except (Unreachable, JoinAgain, MasterError) as error:
                logger.debug("Leave: %s", error)
        self._connection.close()
        for thread in self._threads:
            thread.join(_LEAVE_S)

    # --- numbered calls ---

    def _begin(self, reports: Sequence[Report]) -> _Call:
        with self._lock:
            self._last_number += 1
            self._unanswered.add(self._last_number)
            ours = [r for r in reports if r.lease in self._held]
            self._reporting.update(r.lease for r in ours)
            return _Call(
                self._ledger, self._incarnation, self._last_number, self._joins_sent, ours
            )

    def _is_current(self, call: _Call) -> bool:
        return (call.ledger, call.incarnation) == (self._ledger, self._incarnation)

    def _begin_again(self, call: _Call, reports: Sequence[Report]) -> _Call:
        self._end(call)
        return self._begin(reports)

    def _end(self, call: _Call) -> None:
        with self._lock:
            if self._is_current(call):
                self._unanswered.discard(call.number)
            self._reporting.difference_update(r.lease for r in call.reports)

    def _report_and_lease_request(
        self, call: _Call, dataset: str, at_most: int, wait_s: float
    ) -> Any:
        with self._lock:
            received = min(self._unanswered, default=self._last_number + 1) - 1
        report = messages.message("ShardReport")
        return messages.method("ReportAndLease").request(
            incarnation=call.incarnation,
            ledger=call.ledger,
            number=call.number,
            received=received,
            reports=[
                report(
                    lease=r.lease, outcome=r.outcome, error=r.error, ps_epoch=r.ps_epoch,
                    result=r.result,
                )
                for r in call.reports
            ],
            dataset=dataset,
            lease_at_most=at_most,
            wait_ms=int(wait_s * 1000),
        )

    def _accepted(self, call: _Call, response: Any) -> Set[int]:
        """The reported leases that an answer has accepted. This process no longer holds them."""
        if len(response.verdicts) != len(call.reports):
            return set()
        accepted = {
            r.lease
            for r, v in zip(call.reports, response.verdicts)
            if v == messages.Verdict.ACCEPTED
        }
        with self._lock:
            self._held -= accepted
        return accepted

    def _conclude(
        self, call: _Call, reports: List[Report], response: Optional[Any], counted: Set[int]
    ) -> Answered:
        verdicts = list(response.verdicts) if response is not None else []
        if response is not None and len(verdicts) != len(call.reports):
            raise MasterError(
                f"ReportAndLease: the master answered {len(call.reports)} reports with "
                f"{len(verdicts)} results"
            )
        shards = [_shard(s) for s in response.shards] if response is not None else []
        with self._lock:
            accepted = {
                r.lease for r, v in zip(call.reports, verdicts) if v == messages.Verdict.ACCEPTED
            }
            reopen = {
                r.lease for r, v in zip(call.reports, verdicts) if v == messages.Verdict.REOPEN
            }
            self._held.difference_update({r.lease for r in call.reports} - reopen)
            if self._is_current(call):
                self._unanswered.discard(call.number)
                self._held.update(s.lease for s in shards)
            unsure = bool(shards) and call.joins_sent != self._joins_sent
            joins_sent = self._joins_sent
        if unsure:
            # Another thread joined before this answer arrived, with a list that lacks its leases.
            # Find out which of them this process still holds, before a record is read.
            self._rejoin(joins_sent)
        with self._lock:
            ours = [s for s in shards if s.lease in self._held]
        if len(ours) != len(shards):
            logger.info("%d leased shards went to other processes before the answer arrived",
                        len(shards) - len(ours))
        answer = response.answer if response is not None else messages.Answer.NOTHING
        if shards and not ours:
            answer = messages.Answer.WAIT
        lost = {r.lease for r in reports} - accepted - reopen - counted
        ps_epoch = response.ps_epoch if response is not None else 0
        next_dataset = response.next_dataset if response is not None else ""
        return Answered(answer, ours, lost, reopen, ps_epoch, next_dataset)

    # --- joining ---

    def _ensure_joined(self) -> int:
        """Joins the job unless it has joined. Returns the number of Joins sent so far."""
        if self._incarnation == 0:
            self._rejoin(0)
            self._start_threads()
        return self._joins_sent

    def _rejoin(self, seen: int) -> None:
        """Returns when a Join after the first `seen` ones is answered, also that of another
        thread."""
        backoff = Backoff("Join", self._connection.closed)
        known = True
        while True:
            with self._join_lock:
                if self._joins_answered > seen:
                    return
                try:
                    self._join(self._incarnation if known else 0)
                    return
                except Unreachable as error:
                    reason: object = error
                except JoinAgain as error:
                    reason, known = error, False
            backoff.pause(reason)

    def _join(self, incarnation: int) -> None:
        with self._lock:
            self._joins_sent += 1  # before it is sent, so that concurrent answers notice it
            this_join = self._joins_sent
            listed = set(self._held)
        request = messages.method("Join").request(
            role=self._identity.role,
            replica_id=self._identity.replica_id,
            incarnation=incarnation,
            ledger=self._ledger if incarnation else 0,
            held=sorted(listed),
            process=f"{socket.gethostname()}:{os.getpid()}",
        )
        self._last_sent = time.monotonic()
        response = self._connection.attempt("Join", request, CALL_S)
        with self._lock:
            self._joins_answered = this_join
            new_incarnation = (response.ledger, response.incarnation) != (
                self._ledger, self._incarnation
            )
            lost = (set(self._held) if new_incarnation else listed) - set(response.held)
            if not new_incarnation:
                lost -= self._reporting  # the call that reports them returns their result
            self._held -= lost
            if new_incarnation:
                self._incarnation = response.incarnation
                self._ledger = response.ledger
                self._last_number = 0
                self._unanswered = set()
            if response.heartbeat_ms:
                self._heartbeat_s = response.heartbeat_ms / 1000
        if new_incarnation and self._watch_call is not None:
            self._watch_call.cancel()  # it belongs to the previous incarnation
        if lost:
            logger.warning(
                "%d shards of this process went to other processes; training of them here is not "
                "counted (leases %s)", len(lost), ", ".join(map(str, sorted(lost))),
            )

    # --- heartbeats and watch ---

    def _start_threads(self) -> None:
        with self._lock:
            if self._threads:
                return
            for target, name in ((self._keep_sending_heartbeats, "heartbeat"),
                                 (self._keep_watching, "watch")):
                thread = threading.Thread(target=target, name=f"elasticai-{name}", daemon=True)
                self._threads.append(thread)
        for thread in self._threads:
            thread.start()

    def _keep_sending_heartbeats(self) -> None:
        closed = self._connection.closed
        while not closed.wait(max(0.01, self._last_sent + self._heartbeat_s - time.monotonic())):
            if time.monotonic() - self._last_sent < self._heartbeat_s:
                continue
            self._last_sent = time.monotonic()
            joins = self._joins_sent
            request = messages.method("Heartbeat").request(
                incarnation=self._incarnation, ledger=self._ledger
            )
            try:
                response = self._connection.attempt("Heartbeat", request, CALL_S)
                if response.heartbeat_ms:
                    self._heartbeat_s = response.heartbeat_ms / 1000
            except Unreachable:
                if time.monotonic() - self._connection.last_answer > _MUTE_S:
                    self._connection.reset()
            except JoinAgain:
                self._rejoin_unless_closed(joins)
            except MasterError as error:
                logger.error("%s", error)

    def _keep_watching(self) -> None:
        closed = self._connection.closed
        backoff = Backoff("Watch", closed)
        while not closed.is_set():
            joins = self._joins_sent
            join_again = False
            try:
                request = messages.method("Watch").request(
                    incarnation=self._incarnation, ledger=self._ledger
                )
                for membership in self._connection.stream("Watch", request, self._watching):
                    backoff = Backoff("Watch", closed)
                    with self._membership_changed:
                        self._membership = membership
                        self._membership_changed.notify_all()
                reason: object = "the stream ended"
            except Unreachable as error:
                reason = error
            except JoinAgain as error:
                reason, join_again = error, True
            except MasterError as error:
                reason = error
                if not closed.is_set():
                    logger.error("%s", error)
            try:
                backoff.pause(reason)
            except MasterError:
                return
            # A master that knows this incarnation needs no Join. A Join would make calls that are
            # being repeated check their leases.
            if join_again:
                self._rejoin_unless_closed(joins)

    def _watching(self, call: Any) -> None:
        self._watch_call = call
        if self._connection.closed.is_set():
            call.cancel()

    def _rejoin_unless_closed(self, seen: int) -> None:
        try:
            self._rejoin(seen)
        except MasterError as error:
            if not self._connection.closed.is_set():
                logger.error("%s", error)


def _shard(wire: Any) -> Shard:
    return Shard(
        name=wire.dataset,
        start=wire.start,
        end=wire.end,
        indices=tuple(wire.indices),
        lease=wire.lease,
        epoch=wire.epoch,
        ordinal=wire.ordinal,
        generation=wire.generation,
        ledger=wire.ledger,
        dataset_id=wire.dataset_id,
        version=wire.version,
    )
