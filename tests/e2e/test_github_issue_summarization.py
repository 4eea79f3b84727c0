"""The programs of tutorial 3 on this machine, with TF_CONFIG as the operator writes it."""

import functools
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Dict, Iterator, List

import pytest
from harness import ROOT

PROGRAMS = ROOT / "examples/github_issue_summarization/distributed"
# Enough to learn what kind of issue it is.
SMALL = {"ROWS": "600", "BODY_LENGTH": "45", "STEPS": "600", "UNITS": "32", "WAIT": "60"}
# Words of titles by which the kind of an issue is known.
KINDS = {"crash": "crash", "crashes": "crash", "dark": "feature", "translate": "language",
         "translation": "language", "document": "docs", "documentation": "docs", "slow": "slow",
         "performance": "slow", "test": "tests", "upgrade": "upgrade"}


def program(name: str, *arguments: str) -> List[str]:
    return [sys.executable, "-B", str(PROGRAMS / name), *arguments]


def run(name: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
    done = subprocess.run(program(name, *arguments), text=True, capture_output=True, timeout=120,
                          check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


class Replicas:
    """The processes of a TFJob named github."""

    def __init__(self, folder: Path, **counts: int) -> None:
        self.folder, self.processes = folder, {}
        # All sockets are open until all ports are known, so the ports differ.
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(sum(counts.values()))]
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
        for each in sockets:
            each.close()
        self.cluster: Dict[str, List[str]] = {
            role: [addresses.pop() for _ in range(count)] for role, count in sorted(counts.items())}

    def start(self, role: str, index: int = 0, **variables: str) -> None:
        config = {"cluster": self.cluster, "task": {"type": role, "index": index},
                  "environment": "cloud"}
        env = dict(os.environ, TF_CONFIG=json.dumps(config, separators=(",", ":")),
                   DATA=str(self.folder / "data/github_issues.csv"),
                   MODEL=str(self.folder / "model"), TF_NUM_INTRAOP_THREADS="1",
                   TF_NUM_INTEROP_THREADS="1", PYTHONUNBUFFERED="1", **{**SMALL, **variables})
        with open(self.folder / f"{role}-{index}.log", "wb") as log:
            self.processes[role, index] = subprocess.Popen(
                program("train.py"), env=env, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT)

    def log(self, role: str, index: int = 0) -> str:
        return (self.folder / f"{role}-{index}.log").read_text(errors="replace")

    def wait(self, role: str, index: int = 0, seconds: float = 120) -> int:
        try:
            return self.processes[role, index].wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{role} {index} did not end within {seconds} s:\n"
                                 f"{self.log(role, index)[-3000:]}") from None

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait(timeout=30)


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    made = Replicas(tmp_path, master=1, ps=1, worker=1)
    yield made
    made.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The URL of a folder, which is `tmp_path / "served"`."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join(10)


def titles_in(printed: str) -> List[tuple]:
    """The pairs (title of the user, title of the model) that summarize.py prints."""
    lines = [line.partition(":   " if "user" in line else ": ")[2]
             for line in printed.splitlines() if line]
    return list(zip(lines[::2], lines[1::2]))


def kind_of(title: str) -> str:
    return next((KINDS[word] for word in title.split() if word in KINDS), title)


def test_master_ps_and_worker_train_a_model_that_writes_titles(replicas, served, tmp_path):
    # The others are started first: they wait for the master, and the master for the data.
    replicas.start("ps")
    replicas.start("worker")
    replicas.start("master")
    run("generate_issues.py", f"--output={tmp_path}/served/github_issues.zip", "--rows=700")
    run("download_data.py", f"{served}/github_issues.zip", str(tmp_path / "data"))

    assert replicas.wait("master") == 0, replicas.log("master")[-3000:]
    assert replicas.wait("worker", seconds=30) == 0, replicas.log("worker")[-3000:]

    assert replicas.processes["ps", 0].poll() is None, "a parameter server waits to be deleted"
    assert "worker 0 has finished" in replicas.log("worker")
    assert "loss = " in replicas.log("worker"), "the worker trained"
    assert "Saving dict for global step 60" in replicas.log("master")
    pairs = titles_in(run("summarize.py", str(tmp_path / "model")).stdout)
    assert len(pairs) == 10
    learned = re.findall(r"Saving dict.*|loss = .*", replicas.log("master"))
    assert sum(kind_of(wrote) == kind_of(user) for user, wrote in pairs) >= 7, (pairs, learned)


def test_a_worker_ends_with_an_explanation_if_there_are_no_features(replicas):
    replicas.start("worker", WAIT="1")
    assert replicas.wait("worker") == 1
    said = replicas.log("worker")
    assert "model/features does not exist after 1 s; the master writes it" in said
    assert "Traceback" not in said


def test_generated_issues_depend_on_the_seed_only(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run("generate_issues.py", f"--output={tmp_path}/{name}.zip", "--rows=50", f"--seed={seed}")
    first, second, other = ((tmp_path / f"{name}.zip").read_bytes() for name in "abc")
    assert first == second != other
    run("generate_issues.py", f"--output={tmp_path}/a.csv", "--rows=50", "--seed=1")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.read("github_issues.csv") == (tmp_path / "a.csv").read_bytes()


def test_the_download_says_what_is_wrong_with_a_url(served, tmp_path):
    done = run("download_data.py", f"{served}/missing.zip", str(tmp_path / "data"), check=False)
    assert done.returncode == 1
    assert f"{served}/missing.zip: the server answers 404" in done.stderr
    assert not (tmp_path / "data/github_issues.csv").exists()
