"""A cluster leaves nothing behind, however it ended, and another one does not notice it."""

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Dict, Iterator, Set

import pytest
from cluster import TOOL, Cluster, Namespace, pod, wait_for

NAME = f"down-{os.getpid()}"
CACHE = os.environ.get("ELASTICDL_CACHE") or Path.home() / ".cache" / "elasticdl"
STATE = Path(CACHE, "kubernetes", "clusters", NAME)
KINDS = ("net", "mnt", "pid", "ipc", "uts", "cgroup")


def remains() -> Dict[str, Set[str]]:
    """What a cluster could leave on this machine, by kind."""
    namespaces, processes = set(), set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            namespaces |= {os.readlink(entry / "ns" / kind) for kind in KINDS}
            if NAME in (entry / "cmdline").read_text() or NAME in (entry / "cgroup").read_text():
                processes.add(entry.name)
    return {
        "processes": processes,
        "namespaces": namespaces,
        "mounts": set(Path("/proc/self/mountinfo").read_text().splitlines()),
        "cgroups": {folder for folder, _, _ in os.walk("/sys/fs/cgroup") if "elasticdl" in folder},
        "interfaces": {entry.name for entry in Path("/sys/class/net").iterdir()},
        "files": {str(STATE)} if STATE.exists() else set(),
    }


@pytest.fixture
def second(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster beside the session's, which is up. Fails when anything of it is left."""
    before = remains()
    other = Cluster(NAME)
    yield other
    other("down")
    after = remains()
    left = {kind: after[kind] - before[kind] for kind in after}
    assert not any(left.values()), {kind: found for kind, found in left.items() if found}


def start_up(of: Cluster) -> subprocess.Popen:
    return subprocess.Popen([str(TOOL), "up"], env=of.env, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


# The moments: nothing but its folder; machines without wires; nodes that are about to join.
@pytest.mark.parametrize("moment", ["owner", "n1/ready", "n1/kubelet.log"])
def test_up_that_was_killed_half_way_leaves_nothing_after_down(second, moment):
    up = start_up(second)
    wait_for(moment, (STATE / moment).exists, 60)

    up.kill()
    up.wait()

    assert not (STATE / "complete").exists()


def test_up_clears_away_what_a_killed_one_left_and_disturbs_no_other_cluster(second, cluster):
    up = start_up(second)
    wait_for("machines", (STATE / "n2/ready").exists, 60)
    busy = second.run("up")
    assert busy.returncode == 1
    assert "is bringing cluster" in busy.stderr
    up.kill()
    up.wait()

    second("up", "--node-cpu", "1500m", "--node-memory", "1Gi")
    place = Namespace(second, "place")
    place.apply(pod("stays", "trap '' TERM; while :; do sleep 1; done"))
    place.wait_for_phase("stays", "Running")

    offered = second("kubectl", "get", "nodes", "-o",
                     "jsonpath={.items[*].status.allocatable['cpu','memory']}").split()
    assert offered == ["1500m", "1500m", "1Gi", "1Gi"]
    assert cluster.run("kubectl", "get", "namespace", "place").returncode != 0
    second("down")
    assert cluster("kubectl", "get", "--raw", "/readyz") == "ok"
    assert "was not up" in second("down")
