"""The suites that our test doubles pass, against the real thing."""

import os
import subprocess

import pytest
from cluster import ROOT

PROGRAMS = [ROOT / "build/release/src/kube/kube_conformance",
            ROOT / "build/release/src/backend/kubernetes/backend_kubernetes_conformance"]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_the_real_cluster_passes(program, cluster, namespace):
    env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig()), "EDL_NAMESPACE": namespace.name}
    done = subprocess.run([str(program), "--gtest_brief=1"], env=env, text=True, timeout=300,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
