"""The time from the loss of a node until other workers hold the shards of its workers.

The second node, with two workers that hold shards, is disconnected from the network. The logs of
the workers show which worker got which shard when.
"""

import json
import sys
import time

from common import entries, figure, wait_for
from on_cluster import (
    PodWatch,
    cluster_with_image,
    holding,
    job_in,
    namespace_for,
    running_workers,
    stays_on,
)

WORKERS, HOLD_MS, ROUNDS = 4, 200, 3


def shards_elsewhere_s(cluster) -> list:
    """The seconds for each shard that the workers of the lost node held."""
    with namespace_for(cluster, "nodeloss") as namespace, PodWatch(namespace) as watch, \
            job_in(namespace, "nodeloss") as job:
        # Two workers fit on a node, and the master stays on the first.
        job.submit(0, 0, f"--num_workers={WORKERS}",
                   "--worker_resource_request=cpu=0.8,memory=128Mi",
                   "--cluster_spec_json=" + json.dumps({"master_pod_spec": {
                       "affinity": stays_on("n1")}}),
                   command=holding(HOLD_MS, 1_000_000))
        watch.wait_until("the workers", lambda there: len(running_workers(there)) == WORKERS, 90)
        wait_for("all to work", lambda: len(
            {e.replica for e in entries(job.out) if e.event == "done"}) == WORKERS)
        lost = {name.rsplit("-", 1)[1] for name, pod in job.pods().items()
                if pod["spec"]["nodeName"] == "n2"}
        assert len(lost) == 2, lost
        pulled = time.time()
        cluster("node-down", "2")
        try:
            # The disconnected workers continue to log, which the master does not see.
            time.sleep(1)
            held = {replica: [e.ordinal for e in entries(job.out) if e.event == "leased"
                              and e.replica == replica][-1] for replica in lost}
            again = {ordinal: wait_for(f"shard {ordinal} elsewhere", lambda o=ordinal: [
                e for e in entries(job.out) if e.event == "leased" and e.ordinal == o
                and e.replica not in lost])[0] for ordinal in held.values()}
        finally:
            cluster("node-up", "2")
        return [entry.moment - pulled for entry in again.values()]


def main() -> int:
    times = []
    with cluster_with_image() as cluster:
        for _ in range(ROUNDS):
            times += shards_elsewhere_s(cluster)
            wait_for("the node to be back", lambda: "True" == cluster(
                "kubectl", "get", "node", "n2", "-o",
                'jsonpath={.status.conditions[?(@.type=="Ready")].status}'), 120)
    print("node lost to shards elsewhere:", " ".join(f"{t:.1f}" for t in sorted(times)), "s")
    figure("nodeloss.shard_elsewhere_s", sorted(times)[len(times) // 2], "s")
    figure("nodeloss.shard_elsewhere_s.worst", max(times), "s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
