"""Two jobs with 13 workers on a cluster with capacity for 24, with gang scheduling and elastically.

Gang scheduling: the second job arrives shortly after the first, and the benchmark submits it when
13 workers fit. Elastic: the second job is submitted when it arrives, trains with the 11 workers
that fit, and gets the other two when the first job ends.

A worker sleeps while it holds a shard, so the jobs compete for capacity, and not for the processors
of this machine.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

from common import entries, figure
from on_cluster import (
    Cluster,
    Job,
    PodEvent,
    PodWatch,
    cluster_with_image,
    holding,
    job_in,
    namespace_for,
)

PLACES, WORKERS = 24, 13
NODES = 2
HOLD_MS = 1000
SECOND_COMES_AFTER_S = 5
MASTER_CPU_M = 20  # a master's request


def milli(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000


def cpu_of_a_place(cluster: Cluster) -> int:
    """The CPU request of a worker, in thousandths, with which exactly 12 workers fit on a node."""
    names = [f"n{number + 1}" for number in range(NODES)]
    offered = {milli(cluster("kubectl", "get", "node", name, "-o",
                             "jsonpath={.status.allocatable.cpu}")) for name in names}
    assert len(offered) == 1, f"the nodes differ: {offered}"
    (cpu,) = offered
    taken = cluster("kubectl", "get", "pods", "-A", "-o", "jsonpath={..nodeName}",
                    "--field-selector=status.phase!=Succeeded,status.phase!=Failed")
    assert not taken, "other pods run in this cluster and use capacity"
    each = PLACES // NODES
    place = (cpu - 2 * MASTER_CPU_M) // each
    assert place * (each + 1) > cpu, "a worker would fit in the capacity of a master"
    return place


class Run(NamedTuple):
    makespan_s: float
    wait_s: float        # second job: from its arrival to its first running worker
    to_lease_s: float    # second job: from its arrival to its first shard
    use: float           # fraction of the capacity with a running worker
    training: float      # fraction of the capacity with a worker that held a shard
    job_s: Tuple[float, float]


def occupied(there: Dict[str, PodEvent]) -> int:
    """The used capacity: a worker uses it from the time when it is bound to its end."""
    return sum(event.role == "worker" and "nodeName" in event.pod["spec"]
               and event.phase not in ("Succeeded", "Failed") for event in there.values())


def unplaced(there: Dict[str, PodEvent]) -> int:
    return sum(event.role == "worker" and "nodeName" not in event.pod["spec"]
               for event in there.values())


def running_seconds(events: List[PodEvent], end: float) -> float:
    """The sum of the running times of workers until `end`, in seconds."""
    since: Dict[str, float] = {}
    total = 0.0
    for event in events:
        if event.role != "worker":
            continue
        if event.phase == "Running" and event.kind != "DELETED":
            since.setdefault(event.name, event.moment)
        elif event.name in since:
            total += event.moment - since.pop(event.name)
    return total + sum(end - moment for moment in since.values())


def held_seconds(log_dirs: List[Path]) -> float:
    total = 0.0
    for log_dir in log_dirs:
        leased: Dict[Tuple[str, int], float] = {}
        for entry in entries(log_dir):
            key = (entry.replica, entry.ordinal)
            if entry.event == "leased":
                leased[key] = entry.moment
            elif entry.event == "done":
                total += entry.moment - leased.pop(key)
    return total


def both(cluster: Cluster, place: int, shards: int, elastic: bool) -> Run:
    def submit(job: Job) -> None:
        job.submit(0, 0, f"--num_workers={WORKERS}",
                   f"--master_resource_request=cpu={MASTER_CPU_M}m,memory=64Mi",
                   f"--worker_resource_request=cpu={place}m,memory=64Mi",
                   command=holding(HOLD_MS, shards))

    name = "elastic" if elastic else "gang"
    with namespace_for(cluster, name) as namespace, PodWatch(namespace) as watch, \
            job_in(namespace, "first") as first, job_in(namespace, "second") as second:
        begin = time.monotonic()
        submit(first)
        watch.wait_until("the first job's workers", lambda there: occupied(there) == WORKERS)
        time.sleep(max(0.0, begin + SECOND_COMES_AFTER_S - time.monotonic()))
        comes, comes_wall = time.monotonic(), time.time()
        if not elastic:
            watch.wait_until("room for all of the second",
                             lambda there: occupied(there) <= PLACES - WORKERS, 600)
        submit(second)
        runs = watch.first("the second job to run", lambda event: event.role == "worker"
                           and event.name.startswith("second-") and event.phase == "Running")
        if elastic:
            watch.wait_until("all places to be taken, and two to wait", lambda there: (
                occupied(there) == PLACES and unplaced(there) == 2 * WORKERS - PLACES))
        ends = [ended(watch, job) for job in (first, second)]
        for job in (first, second):
            view = job.wait_for_end(60)
            assert view["state"] == "succeeded", view
            assert view["datasets"][0]["records_done"] == shards, view["datasets"]
            assert view["relaunches"] == 0, view["relaunches"]
        makespan = max(ends) - begin
        to_lease = next(e for e in entries(second.out) if e.event == "leased").moment - comes_wall
        result = Run(makespan, runs.moment - comes, to_lease,
                     running_seconds(watch.events, max(ends)) / (PLACES * makespan),
                     held_seconds([first.out, second.out]) / (PLACES * makespan),
                     (ends[0] - begin, ends[1] - comes))
    print(f"{name}: {result.makespan_s:.1f} s (first {result.job_s[0]:.1f}, second "
          f"{result.job_s[1]:.1f}); places with a worker {result.use:.3f}, with a shard "
          f"{result.training:.3f}; second waits {result.wait_s:.1f} s, {result.to_lease_s:.1f} s "
          "to its first shard", flush=True)
    return result


def ended(watch: PodWatch, job: Job) -> float:
    """When the job's master, its last pod, ended."""
    return watch.first(f"job {job.name} to end",
                       lambda event: event.name == f"elasticdl-{job.name}-master"
                       and event.phase in ("Succeeded", "Failed"), 0, 600).moment


def best_ratio(work_s: float, comes_after_s: float) -> float:
    """The ratio if only the work took time.

    The second job has 11 workers while the first has 13, and 13 from then on."""
    left = WORKERS * work_s - (PLACES - WORKERS) * (work_s - comes_after_s)
    return (work_s + left / WORKERS) / (2 * work_s)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work-s", type=int, default=60, help="seconds of work for 13 workers")
    arguments = parser.parse_args()
    shards = arguments.work_s * 1000 // HOLD_MS * WORKERS
    with cluster_with_image() as cluster:
        place = cpu_of_a_place(cluster)
        gang = both(cluster, place, shards, elastic=False)
        elastic = both(cluster, place, shards, elastic=True)
    figure("elastic.makespan_ratio", elastic.makespan_s / gang.makespan_s, "")
    figure("elastic.makespan_ratio.best",
           best_ratio(arguments.work_s, SECOND_COMES_AFTER_S), "")
    figure("elastic.makespan_s_gang", gang.makespan_s, "s")
    figure("elastic.makespan_s_elastic", elastic.makespan_s, "s")
    figure("elastic.mean_use_gang", gang.use, "")
    figure("elastic.mean_use_elastic", elastic.use, "")
    figure("elastic.wait_s_gang", gang.wait_s, "s")
    figure("elastic.wait_s_elastic", elastic.wait_s, "s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
