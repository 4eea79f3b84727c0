"""Kubeflow's published Python SDK, unmodified, creates, watches and deletes TFJobs here."""

import os
import subprocess
from typing import List

import pytest
from cluster import ROOT, Namespace
from tfjobs import Operator, tfjob_crd  # noqa: F401

pytestmark = pytest.mark.usefixtures("tfjob_crd")

PROGRAM = ROOT / "tests/cluster/programs/tfjob_sdk.py"


def run(part: str, namespace: Namespace) -> List[str]:
    """Runs a part of the program; returns the lines that it printed."""
    folder = subprocess.run([ROOT / "tools/env-path", "kubeflow"], text=True, capture_output=True,
                            check=True).stdout.strip()
    env = {**os.environ, "KUBECONFIG": str(namespace.cluster.kubeconfig()), "PYTHONPATH": ""}
    done = subprocess.run([f"{folder}/bin/python", str(PROGRAM), part, namespace.name], env=env,
                          text=True, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout.splitlines()


def test_the_sdk_stores_jobs_without_an_operator(namespace):
    assert run("store", namespace) == ["created", "listed", "updated", "refused", "deleted"]


def test_T_SDK_the_sdk_runs_jobs_with_our_operator(namespace, tmp_path):
    with Operator(namespace, tmp_path / "operator.log"):
        lines = run("life", namespace)
    # With follow=True, the SDK prints the log too.
    assert [line for line in lines if not line.startswith("[Pod")] == [
        "running", "pods", "updated", "logs", "succeeded", "deleted", "failed"]
