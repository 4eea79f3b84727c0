"""From a worker's pod being on its way out to its successor's pod, both as the API server tells.

The benchmark's own watch sees what the master's sees; the time between the two events is the
master's decision, its commit and its call.
"""

import sys

from common import figure, median, show
from on_cluster import PodWatch, cluster_with_image, job_in, namespace_for, running_workers

WORKERS, ROUNDS = 4, 10


def event_to_create_ms(job, watch: PodWatch) -> float:
    place = watch.place()
    name = sorted(job.workers("Running"))[0]
    job.namespace.kubectl("delete", "pod", f"{job.name}-edljob-{name}", "--wait=false")
    leaving = watch.first(f"{name} to be on its way out",
                          lambda event: event.name.endswith(f"-{name}") and event.leaving, place)
    created = watch.first("its successor", lambda event: event.kind == "ADDED"
                          and event.role == "worker", place)
    watch.first("the successor to run", lambda event: event.name == created.name
                and event.phase == "Running", place)
    return (created.moment - leaving.moment) * 1e3


def main() -> int:
    with cluster_with_image() as cluster, namespace_for(cluster, "relaunch") as namespace, \
            PodWatch(namespace) as watch, job_in(namespace, "relaunch") as job:
        job.submit(1_000_000, 20_000, f"--num_workers={WORKERS}", "--num_ps=2")
        watch.wait_until("the workers", lambda there: len(running_workers(there)) == WORKERS, 90)
        job.wait_for_records(100)
        times = [event_to_create_ms(job, watch) for _ in range(ROUNDS)]
    show("deleted to created again", times)
    figure("relaunch.event_to_create_ms.median", median(times), "ms")
    figure("relaunch.event_to_create_ms.worst", max(times), "ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
