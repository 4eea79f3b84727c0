"""A cluster leaves nothing on the machine, however it ended, and does not affect another one."""

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


def is_ours(process: Path) -> bool:
    """Whether the cluster started the process: its name is in the cgroup or the command line."""
    return any(NAME in (process / file).read_text() for file in ("cmdline", "cgroup"))


def interfaces() -> Set[str]:
    return {entry.name for entry in Path("/sys/class/net").iterdir()}


def remains() -> Dict[str, Set[str]]:
    """What the second cluster has on this machine, by kind."""
    namespaces, processes = set(), set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if is_ours(entry):
                # A zombie has no namespaces: this throws.
                namespaces |= {os.readlink(entry / "ns" / kind) for kind in KINDS}
                processes.add(entry.name)
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return {
        "processes": processes,
        "namespaces": namespaces - {os.readlink(f"/proc/self/ns/{kind}") for kind in KINDS},
        "mounts": {line for line in mounts if NAME in line},
        "cgroups": {folder for folder, _, _ in os.walk("/sys/fs/cgroup") if NAME in folder},
        "files": {str(STATE)} if STATE.exists() else set(),
    }


@pytest.fixture
def second(cluster: Cluster) -> Iterator[Cluster]:
    """A second cluster beside that of the session. Fails if anything of it is left."""
    wires = interfaces()
    other = Cluster(NAME)
    yield other
    other("down")
    left = {kind: found for kind, found in remains().items() if found}
    assert not left
    assert interfaces() == wires


def start_up(of: Cluster) -> subprocess.Popen:
    return subprocess.Popen([str(TOOL), "up"], env=of.env, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


# The moments: only its folder exists; machines without a network; nodes that are about to join.
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

    # While it runs, all kinds exist except mounts, which are in the namespaces of its machines.
    assert {kind for kind, found in remains().items() if not found} <= {"mounts"}
    offered = second("kubectl", "get", "nodes", "-o",
                     "jsonpath={.items[*].status.allocatable['cpu','memory']}").split()
    assert offered == ["1500m", "1500m", "1Gi", "1Gi"]
    assert cluster.run("kubectl", "get", "namespace", "place").returncode != 0
    second("down")
    assert cluster("kubectl", "get", "--raw", "/readyz") == "ok"
    assert "was not up" in second("down")
