"""A master with 1,000 workers: its CPU time and memory at rest, and how fast it reacts to an event.

The workers are pods on fake nodes of kwok, so only the API server, the scheduler and the master use
the processors. A lower bound is measured too: the creation of one pod by an otherwise idle client.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from urllib.parse import urlencode

from common import figure, median, show
from on_cluster import (
    Api,
    Cluster,
    Job,
    PodWatch,
    cluster_with_image,
    create_ms,
    delete_worker,
    job_in,
    namespace_for,
    running_workers,
    stays_on,
)

ROUNDS = 30
PODS_A_NODE = 100  # of 110, so that there is capacity beside pods that are being deleted


def on_fake_nodes() -> dict:
    term = {"key": "type", "operator": "In", "values": ["kwok"]}
    return {"tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [term]}]}}}}


def many_at_once_s(api: Api, job: Job, watch: PodWatch, first: int, count: int) -> float:
    """The time from the first of many deletions, requested with one call, to the last
    replacement."""
    known = {event.name for event in watch.events}
    place = watch.place()
    ids = ",".join(str(number) for number in range(first, first + count))
    selector = urlencode({"labelSelector": f"elasticdl-job-name={job.name},"
                          f"elasticdl-replica-id in ({ids}),elasticdl-replica-type=worker"})
    api("DELETE", f"/api/v1/namespaces/{job.namespace.name}/pods?{selector}")
    leaving = watch.first("the first to be on its way out", lambda event: event.leaving
                          and event.name in known, place)
    return watch.wait_until("all successors", lambda there: sum(
        event.role == "worker" and event.name not in known
        for event in there.values()) == count) - leaving.moment


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def master_of(job: Job) -> int:
    (pid,) = job.processes(f"elasticdl-{job.name}-master", "elasticdl master -f")
    return pid


def at_rest(pid: int, seconds: float) -> float:
    """The percentage of a processor that the master uses without events."""
    begin, used = time.monotonic(), cpu_seconds(pid)
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - used) / (time.monotonic() - begin)


def measure(cluster: Cluster, pods: int, rest_s: float) -> None:
    with namespace_for(cluster, "watch") as namespace, PodWatch(namespace) as watch, \
            job_in(namespace, "watch") as job:
        api = Api(cluster)
        spec = {"worker_pod_spec": on_fake_nodes(), "master_pod_spec": {"affinity": stays_on("n1")}}
        begin = time.monotonic()
        job.submit(0, 0, f"--num_workers={pods}", f"--cluster_spec_json={json.dumps(spec)}",
                   command="sleep 100000")
        start_all = watch.wait_until("all pods", lambda there: sum(
            event.role == "worker" for event in there.values()) == pods, 300) - begin
        running = watch.wait_until("all to run", lambda there: len(
            running_workers(there)) == pods, 300) - begin
        master = master_of(job)
        print(f"{pods} workers: all exist after {start_all:.1f} s, all run after {running:.1f} s; "
              f"that took {cpu_seconds(master):.2f} s of the master's processor time", flush=True)
        cpu, resident = at_rest(master, rest_s), resident_mb(master)
        floor = create_ms(api, namespace, on_fake_nodes(), ROUNDS)
        show("a pod's creation", floor)
        ends = [delete_worker(api, job, watch, f"{job.name}-edljob-worker-{number}")
                for number in range(ROUNDS)]
        reactions = [end.from_event for end in ends]
        show("a pod's end to its successor", reactions)
        asked = [end.from_asking for end in ends]
        show("the same from the asking on", asked)
        storm = many_at_once_s(api, job, watch, ROUNDS, pods // 10)
    figure("watch.event_to_reaction_ms.median", median(reactions), "ms")
    figure("watch.event_to_reaction_ms.worst", max(reactions), "ms")
    figure("watch.asked_to_reaction_ms.median", median(asked), "ms")
    figure("watch.api_create_ms.median", median(floor), "ms")
    figure("watch.tenth_lost_s", storm, "s")
    figure("watch.start_all_s", start_all, "s")
    figure("watch.master_cpu_percent", cpu, "%")
    figure("watch.master_rss_mb", resident, "MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--rest-s", type=float, default=30)
    arguments = parser.parse_args()
    with cluster_with_image() as cluster:
        cluster("kwok", str(-(-arguments.pods // PODS_A_NODE)), timeout=300)
        try:
            measure(cluster, arguments.pods, arguments.rest_s)
        finally:
            cluster("kubectl", "delete", "nodes", "-l", "type=kwok", timeout=300)
    return 0


if __name__ == "__main__":
    sys.exit(main())
