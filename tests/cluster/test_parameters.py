"""Our parameter servers in pods: whatever the cluster kills, every batch counts once."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
from cluster import ROOT, kubelet_of, nightly, wait_for
from images import MASTER

sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests/e2e/programs"), str(ROOT)]
from counter import TABLE, counter  # noqa: E402
from servers import Server  # noqa: E402

from elasticdl import ParameterClient  # noqa: E402

SIZE, EPOCHS, BATCH = 10_000, 2, 50


def kill(job, pod, words):
    """Kills a process in a pod."""
    (process,) = wait_for(f"{words} in {pod}", lambda: job.processes(pod, words), 60)
    os.kill(process, signal.SIGKILL)


def metrics(job, pod, words, port):
    """What a process in a pod serves to Prometheus, read in its network namespace."""
    (process,) = wait_for(f"{words} in {pod}", lambda: job.processes(pod, words), 60)
    read = (f"import urllib.request; print(urllib.request.urlopen("
            f"'http://127.0.0.1:{port}/metrics', timeout=30).read().decode())")
    return subprocess.run(["nsenter", f"--target={process}", "--net", sys.executable, "-c", read],
                          check=True, text=True, capture_output=True, timeout=60).stdout


def check_metrics(job):
    ports = [port for pod in ("elasticdl-test-master", "test-edljob-ps-0")
             for port in job.pods()[pod]["spec"]["containers"][0]["ports"]
             if port.get("name") == "http-metrics"]
    assert [port["containerPort"] for port in ports] == [50002, 50003]
    master = metrics(job, "elasticdl-test-master", "elasticdl master", 50002)
    assert 'elasticdl_replicas{job_name="test",role="ps",state="running"} 2' in master
    assert 'elasticdl_ps_up{job_name="test",index="1"} 1' in master
    ps = metrics(job, "test-edljob-ps-0", "elasticdl ps", 50003)
    sample = r'^elasticdl_ps_rows\{job_name="test",index="0",lane="[01]"\} (\d+)$'
    rows = re.findall(sample, ps, re.M)
    assert len(rows) == 2 and sum(map(int, rows)) > 0


def running(job, role):
    return sorted(name for name, state in job.shown().items()
                  if name.startswith(f"{role}-") and state == "Running")


def check_counts(folder):
    """Restores a checkpoint of the job into a server of this test, and checks its counts."""
    server = Server(flags=[f"--checkpoint_root={folder}"])
    try:
        with ParameterClient(server.address) as client:
            assert client.restore(folder) == SIZE
            client.declare(tables=[TABLE], tensors=[counter()])
            rows = client.pull("rows", np.arange(SIZE, dtype=np.int64), create=False)[:, 0]
            assert (rows == EPOCHS).all(), np.flatnonzero(rows != EPOCHS)[:10]
            assert client.pull_tensors()["batches"][0] == SIZE // BATCH * EPOCHS
    finally:
        server.kill()


def test_counts_are_right_whatever_the_cluster_takes(job):
    job.out.chmod(0o777)  # masters and servers are not root
    job.submit(SIZE, 0, "--num_workers=3", "--num_ps=2", "--ps_program=elasticdl", "--ps_lanes=2",
               f"--ps_image={MASTER}", "--checkpoint_dir=/out/checkpoints",
               "--recovery_checkpoint_secs=2", "--relaunch_on_worker_failure=10",
               "--metrics_without_token",
               command=("exec python3 /repo/tests/e2e/programs/counter.py "
                        f"--size={SIZE} --epochs={EPOCHS} --batch={BATCH} --batch-ms=120 "
                        "--in-flight=4"))
    share = SIZE * EPOCHS // 10
    job.wait_for_records(share, 120)
    check_metrics(job)
    kill(job, "test-edljob-ps-0", "elasticdl ps")
    job.wait_for_records(share)
    job.namespace.kubectl("delete", "pod", f"test-edljob-{running(job, 'worker')[0]}",
                          "--wait=false")
    job.wait_for_records(share)
    job.kill_master_process()
    job.wait_for_records(share)
    # A ps that gets SIGTERM saves first.
    job.namespace.kubectl("delete", "pod", f"test-edljob-{running(job, 'ps')[0]}", "--wait=false")

    view = job.wait_for_end(180)

    assert view["state"] == "succeeded", view
    assert view["datasets"][0]["records_done"] == SIZE * EPOCHS
    assert view["master_starts"] == 2 and view["relaunches"] >= 3
    check_counts(job.out / "checkpoints" / "test" / view["checkpoint"])


@nightly
def test_a_server_that_was_given_up_and_still_answers_costs_nothing(job):
    """The kubelet of its node is stopped and its pod is deleted: the process and its connections
    stay alive until the end of the data."""
    job.out.chmod(0o777)
    job.submit(SIZE, 0, "--num_workers=3", "--num_ps=2", "--ps_program=elasticdl", "--ps_lanes=2",
               f"--ps_image={MASTER}", "--checkpoint_dir=/out/checkpoints",
               "--recovery_checkpoint_secs=2", "--relaunch_on_worker_failure=10",
               command=("exec python3 /repo/tests/e2e/programs/counter.py "
                        f"--size={SIZE} --epochs={EPOCHS} --batch={BATCH} --batch-ms=120 "
                        "--in-flight=4 --transport=tcp"))
    job.wait_for_records(SIZE * EPOCHS // 10, 120)
    zombie = "test-edljob-ps-0"
    node = job.pods()[zombie]["spec"]["nodeName"]
    (process,) = job.processes(zombie, "elasticdl ps")
    kubelet = kubelet_of(node)
    job.namespace.kubectl("cordon", node)  # so that its successor runs on another node
    os.kill(kubelet, signal.SIGSTOP)
    try:
        job.namespace.kubectl("delete", "pod", zombie, "--force", "--grace-period=0",
                              "--wait=false")
        wait_for("its successor", lambda: "ps-2" in running(job, "ps"), 60)
        wait_for("all records", lambda: job.records_done() == SIZE * EPOCHS, 180)
        assert Path(f"/proc/{process}").exists(), "the old server should still be alive"
    finally:
        os.kill(kubelet, signal.SIGCONT)
        job.namespace.kubectl("uncordon", node)

    view = job.wait_for_end(180)

    assert view["state"] == "succeeded", view
    check_counts(job.out / "checkpoints" / "test" / view["checkpoint"])
