"""A master for tests, behind a real gRPC server: it behaves, and misbehaves where told to.

It keeps the promises of proto/elasticdl/v1/master.proto for one dataset after the other:
incarnations, leases, numbered answers that are repeated, the end of the data. `restart` keeps the
port and what a ledger would keep. Faults are set per call name: lose the reply, fail, hold.
"""

import threading
from concurrent import futures
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import grpc

from elasticai_api.common import messages
from elasticai_api.common.messages import Answer, Verdict

TOKEN = "token-of-the-test"



class FakeMaster(grpc.GenericRpcHandler):
    """Thread-safe: one lock guards all of it."""

    def __init__(self, shards: int = 0, shard_size: int = 4, token: str = TOKEN):
        self.lock = threading.Condition()
        self.token = token
        self.ledger = 7
        self.calls: List[Tuple[str, Any]] = []  # (name, request), as they came
        self.before: Dict[str, Callable[[Any, Any], None]] = {}  # may raise or abort
        self.lose: Dict[str, int] = {}  # how many replies of a call to lose
        self.specs: Dict[str, Any] = {}
        self.waiting: List[int] = list(range(shards))
        self.shard_size = shard_size
        self.leases: Dict[int, Tuple[int, int]] = {}  # lease -> (incarnation, ordinal)
        self.done: List[int] = []
        self.given_back: List[int] = []
        self.results: Dict[int, bytes] = {}  # by ordinal
        self.results_per_page = 2
        self.next_dataset = ""
        self.version = 0  # of every shard
        self.failures: List[str] = []  # messages of Fail
        self.failed: List[Tuple[int, str]] = []
        self.incarnations: Set[int] = set()
        self.answers: Dict[Tuple[int, int], Any] = {}
        self.give_up_next = False  # the next caller, after its reports were counted
        self.metrics: List[Tuple[int, dict]] = []
        self.events: Set[str] = set()
        self.locks: Dict[str, int] = {}
        self.left: List[int] = []
        self.hold_open = False  # no Finished yet: more may come
        self.heartbeat_ms = 1000
        self.watches = 0
        self._last_incarnation = 0
        self._last_lease = 100
        self._stopped = threading.Event()
        self._server: Optional[grpc.Server] = None
        self.port = 0
        self.start()

    # --- the server ---

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._stopped = threading.Event()
        self._server = grpc.server(
            futures.ThreadPoolExecutor(16), handlers=(self,), options=(("grpc.so_reuseport", 0),)
        )
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        self._server.start()

    def stop(self) -> None:
        """Breaks every call, as a killed master does."""
        self._stopped.set()
        with self.lock:
            self.lock.notify_all()
        self._server.stop(None).wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def service(self, details: Any) -> Any:
        name = details.method.rsplit("/", 1)[1]
        method = messages.method(name)
        make = grpc.unary_unary_rpc_method_handler
        behaviour: Callable = self._unary(name)
        if name == "Watch":
            make, behaviour = grpc.unary_stream_rpc_method_handler, self._watch
        return make(
            behaviour,
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )

    def _unary(self, name: str) -> Callable:
        def handle(request: Any, context: Any) -> Any:
            if ("authorization", f"Bearer {self.token}") not in context.invocation_metadata():
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")
            with self.lock:
                self.calls.append((name, request))
                self.lock.notify_all()
            if name in self.before:
                self.before[name](request, context)
            response = getattr(self, f"_{name.lower()}")(request, context)
            with self.lock:
                lose = self.lose.get(name, 0) > 0
                if lose:
                    self.lose[name] -= 1
            if lose:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the reply was lost")
            return response

        return handle

    # --- what tests ask ---

    def called(self, name: str) -> List[Any]:
        with self.lock:
            return [request for called, request in self.calls if called == name]

    def wait_for(self, condition: Callable[[], Any], timeout: float = 20) -> None:
        with self.lock:
            assert self.lock.wait_for(condition, timeout), "the awaited did not happen"

    def give_up(self, incarnation: int) -> None:
        """Takes a process for dead: its leases go to others."""
        with self.lock:
            self.incarnations.discard(incarnation)
            for lease, (holder, ordinal) in list(self.leases.items()):
                if holder == incarnation:
                    del self.leases[lease]
                    self.waiting.append(ordinal)
            self.lock.notify_all()

    # --- the calls ---

    def begin_another_ledger(self) -> None:
        """As a job that was deleted and trained anew: all numbers begin again."""
        with self.lock:
            self.ledger += 1
            self.incarnations.clear()
            self.answers.clear()
            self.leases.clear()
            self._last_incarnation = 0
            self._last_lease = 0

    def _known(self, request: Any, context: Any) -> None:
        if request.ledger != self.ledger:
            context.abort(grpc.StatusCode.ABORTED, "another ledger: join again")
        if request.incarnation not in self.incarnations:
            context.abort(grpc.StatusCode.ABORTED, f"incarnation {request.incarnation}: join again")

    def _join(self, request: Any, context: Any) -> Any:
        with self.lock:
            incarnation = request.incarnation
            if incarnation and request.ledger != self.ledger:
                context.abort(grpc.StatusCode.ABORTED, "another ledger: join again")
            if incarnation not in self.incarnations:
                self._last_incarnation += 1
                incarnation = self._last_incarnation
                self.incarnations.add(incarnation)
            kept = []
            for lease, (holder, ordinal) in list(self.leases.items()):
                if holder == incarnation:
                    if lease in request.held:
                        kept.append(lease)
                    else:
                        del self.leases[lease]
                        self.waiting.append(ordinal)
            self.lock.notify_all()
            return messages.message("JoinResponse")(
                incarnation=incarnation, held=kept, heartbeat_ms=self.heartbeat_ms,
                silence_ms=10000, ledger=self.ledger,
            )

    def _leave(self, request: Any, context: Any) -> Any:
        with self.lock:
            self.left.append(request.incarnation)
            self.lock.notify_all()
        self.give_up(request.incarnation)
        return messages.message("LeaveResponse")()

    def _heartbeat(self, request: Any, context: Any) -> Any:
        self._known(request, context)
        return messages.message("HeartbeatResponse")()

    def _watch(self, request: Any, context: Any) -> Any:
        with self.lock:
            self.calls.append(("Watch", request))
        self._known(request, context)
        with self.lock:
            self.watches += 1
            number = self.watches
            self.lock.notify_all()
        yield messages.message("Membership")(number=number)
        stopped = self._stopped
        while context.is_active() and not stopped.wait(0.02):
            pass

    def _reportandlease(self, request: Any, context: Any) -> Any:
        stopped = self._stopped
        self._known(request, context)
        with self.lock:
            key = (request.incarnation, request.number)
            if key in self.answers:
                self.answers[key].next_dataset = self.next_dataset
                return self.answers[key]
            response = messages.message("ReportAndLeaseResponse")(
                next_dataset=self.next_dataset,
                verdicts=[self._report(request.incarnation, r) for r in request.reports]
            )
            if self.give_up_next:
                self.give_up_next = False
                self.incarnations.discard(request.incarnation)
                response.answer = Answer.RETRY
                return response
            if request.lease_at_most:
                self.lock.wait_for(
                    lambda: self.waiting or not self.hold_open or stopped.is_set(),
                    request.wait_ms / 1000,
                )
                if stopped.is_set():
                    context.abort(grpc.StatusCode.UNAVAILABLE, "killed")
                self._grant(request, response)
            if response.answer not in (Answer.WAIT, Answer.UNKNOWN_DATASET):
                self.answers[key] = response
            return response

    def _report(self, incarnation: int, report: Any) -> int:
        holder, ordinal = self.leases.get(report.lease, (0, 0))
        if holder != incarnation:
            return Verdict.LOST
        del self.leases[report.lease]
        if report.outcome == 0:
            self.done.append(ordinal)
            self.results[ordinal] = report.result
        elif report.outcome == 1:
            self.failed.append((ordinal, report.error))
        else:
            self.given_back.append(ordinal)
            self.waiting.insert(0, ordinal)
        self.lock.notify_all()
        return Verdict.ACCEPTED

    def _grant(self, request: Any, response: Any) -> None:
        if request.dataset not in self.specs:
            response.answer = Answer.UNKNOWN_DATASET
        elif self.waiting:
            response.answer = Answer.SHARDS
            for _ in range(min(request.lease_at_most, len(self.waiting))):
                ordinal = self.waiting.pop(0)
                self._last_lease += 1
                self.leases[self._last_lease] = (request.incarnation, ordinal)
                response.shards.add(
                    lease=self._last_lease, dataset=request.dataset, ordinal=ordinal,
                    start=ordinal * self.shard_size, end=(ordinal + 1) * self.shard_size,
                    version=self.version,
                )
        else:
            response.answer = Answer.WAIT if self.hold_open else Answer.FINISHED

    def _registerdataset(self, request: Any, context: Any) -> Any:
        if request.spec.size > 10**12:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"size={request.spec.size} is too much")
        with self.lock:
            spec = self.specs.setdefault(request.spec.name, request.spec)
            return messages.message("RegisterDatasetResponse")(spec=spec, generation=1)

    def _resetdataset(self, request: Any, context: Any) -> Any:
        return messages.message("ResetDatasetResponse")(generation=2)

    def _deletesync(self, request: Any, context: Any) -> Any:
        return messages.message("SyncResponse")(ready=True)

    def _finish(self, request: Any, context: Any) -> Any:
        self._known(request, context)
        return messages.message("FinishResponse")()

    def _fail(self, request: Any, context: Any) -> Any:
        self._known(request, context)
        with self.lock:
            self.failures.append(request.message)
        return messages.message("FailResponse")()

    def _getresults(self, request: Any, context: Any) -> Any:
        if request.generation != 1:
            context.abort(grpc.StatusCode.NOT_FOUND, f"generation {request.generation} has ended")
        with self.lock:
            left = [(o, r) for o, r in sorted(self.results.items()) if o >= request.first]
        response = messages.message("GetResultsResponse")(more=len(left) > self.results_per_page)
        for ordinal, result in left[: self.results_per_page]:
            response.results.add(ordinal=ordinal, result=result)
        return response

    def _getdataset(self, request: Any, context: Any) -> Any:
        return messages.message("GetDatasetResponse")(spec=self.specs[request.dataset], epoch=2)

    def _arrive(self, request: Any, context: Any) -> Any:
        self._known(request, context)
        return messages.message("SyncResponse")(ready=len(self.called("Arrive")) > 1)

    def _awaitevent(self, request: Any, context: Any) -> Any:
        with self.lock:
            ready = self.lock.wait_for(lambda: request.name in self.events, request.wait_ms / 1000)
        return messages.message("SyncResponse")(ready=ready)

    def _notify(self, request: Any, context: Any) -> Any:
        with self.lock:
            self.events.add(request.name)
            self.lock.notify_all()
        return messages.message("SyncResponse")(ready=True)

    def _acquirelock(self, request: Any, context: Any) -> Any:
        with self.lock:
            holder = self.locks.setdefault(request.name, request.incarnation)
        return messages.message("AcquireLockResponse")(acquired=holder == request.incarnation)

    def _releaselock(self, request: Any, context: Any) -> Any:
        with self.lock:
            released = self.locks.get(request.name) == request.incarnation
            if released:
                del self.locks[request.name]
        return messages.message("ReleaseLockResponse")(released=released)

    def _reportmetrics(self, request: Any, context: Any) -> Any:
        with self.lock:
            self.metrics.append((request.step, dict(request.metrics)))
            self.lock.notify_all()
        return messages.message("ReportMetricsResponse")()
