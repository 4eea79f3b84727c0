"""Runs the conformance suites of the fakes against a real cluster."""

import os
import subprocess
from typing import List

import pytest
from cluster import ROOT, Cluster, Namespace

# With the number of parallel shards: a suite mostly waits for pods.
SUITES = [(ROOT / "build/release/src/kube/kube_conformance", 1),
          (ROOT / "build/release/src/backend/kubernetes/backend_kubernetes_conformance", 4)]


def start(program: str, cluster: Cluster, place: Namespace, part: int, parts: int):
    env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig()), "EDL_NAMESPACE": place.name,
           "GTEST_TOTAL_SHARDS": str(parts), "GTEST_SHARD_INDEX": str(part)}
    return subprocess.Popen([program, "--gtest_brief=1"], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.parametrize("program,parts", SUITES, ids=[program.name for program, _ in SUITES])
def test_the_real_cluster_passes(program, parts, cluster, namespace):
    places = [namespace, *(Namespace(cluster, f"{namespace.name}-{i}") for i in range(1, parts))]
    running: List[subprocess.Popen] = [start(str(program), cluster, place, part, parts)
                                       for part, place in enumerate(places)]
    try:
        said = [each.communicate(timeout=300)[0] for each in running]
    finally:
        for each in running:
            each.kill()
        for place in places[1:]:
            place.delete()
    assert [each.returncode for each in running] == [0] * parts, "\n".join(said)
