"""The time from the deletion of a worker's pod to the creation of its replacement.

The benchmark's own watch gets the same events as the master. The time between the two events is
that of the master's decision, its commit and its call. The time of such a call alone is printed
too.
"""

import sys

from common import figure, median, show
from on_cluster import (
    Api,
    PodWatch,
    cluster_with_image,
    create_ms,
    delete_worker,
    job_in,
    namespace_for,
    running_workers,
)

WORKERS, ROUNDS = 4, 10


def main() -> int:
    with cluster_with_image() as cluster, namespace_for(cluster, "relaunch") as namespace, \
            PodWatch(namespace) as watch, job_in(namespace, "relaunch") as job:
        job.submit(1_000_000, 20_000, f"--num_workers={WORKERS}", "--num_ps=2")
        watch.wait_until("the workers", lambda there: len(running_workers(there)) == WORKERS, 90)
        job.wait_for_records(100)
        api = Api(cluster)
        ends = [delete_worker(api, job, watch, min(running_workers(watch.there)))
                for _ in range(ROUNDS)]
        # No node has this label, so the pods do not run.
        floor = create_ms(api, namespace, {"nodeSelector": {"none": "none"}}, ROUNDS)
    times = [end.from_event for end in ends]
    asked = [end.from_asking for end in ends]
    show("a pod's end to its successor", times)
    show("the same from the asking on", asked)
    show("a pod's creation", floor)
    figure("relaunch.event_to_create_ms.median", median(times), "ms")
    figure("relaunch.event_to_create_ms.worst", max(times), "ms")
    figure("relaunch.asked_to_create_ms.median", median(asked), "ms")
    figure("relaunch.api_create_ms.median", median(floor), "ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
