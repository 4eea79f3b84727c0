"""`elasticdl report` shows the curves of a job, over restarts of its master and after its end."""

import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Callable, Dict, List

from harness import Job, wait_for
from test_kills import BATCH, logger

SIZE = 200_000


def report(job: Job) -> Dict[str, List[list]]:
    """{name of a series: points}. Empty while the master does not answer."""
    with contextlib.suppress(AssertionError, ValueError):
        out = json.loads(job.cli("report", job.name, "--output=json"))
        return {series["name"]: series["points"] for series in out["series"]}
    return {}


def check(curves: Dict[str, List[list]], first: float, killed: float) -> None:
    """The throughput and the loss have points of both lives of the master."""
    for name in ("records_per_s", "program.loss"):
        times = [point[0] for point in curves[name]]
        assert times == sorted(set(times)), f"{name} has points that overlap: {times}"
        assert times[0] <= first + 1, f"{name} begins at {times[0]}, and not at {first}"
        assert times[-1] > killed, f"{name} ends at {times[-1]}, before the kill at {killed}"
        assert any(time < killed - 3 for time in times), f"{name} lost its first life: {times}"


def test_the_curves_cover_both_lives_of_a_master(start: Callable, tmp_path: Path) -> None:
    fast = tmp_path / "fast"
    command = f"{logger(tmp_path / 'log', SIZE, 1, 500)} --fast-file={fast}"
    job = start("curves", command, "--num_workers=2")
    wait_for("points of the loss", lambda: len(report(job).get("program.loss", [])) >= 6, 90)
    first = report(job)["program.loss"][0][0]

    pid = wait_for("the master", job.master_pid)
    os.kill(pid, signal.SIGKILL)
    killed = time.time()
    wait_for("another master", lambda: job.master_pid() not in (None, pid))
    wait_for("points of its life", lambda: sum(
        point[0] > killed for point in report(job).get("program.loss", [])) >= 3, 90)

    curves = report(job)
    check(curves, first, killed)
    assert "master.cpu" in curves and "replicas.worker.running" in curves, sorted(curves)
    fast.touch()
    assert job.assert_succeeded()["master_starts"] == 2
    curves = report(job)
    check(curves, first, killed)
    assert curves["batches"][-1][1] == SIZE // BATCH
    assert curves["program.loss"][-1][5] > 0, "the last point has its step"
    text = job.cli("report", "curves", "--series=records_per_s,program.loss")
    assert "Job curves succeeded" in text and f"{SIZE:,} of {SIZE:,}" in text, text
    assert [line.split()[0] for line in text.splitlines()[-2:]] == [
        "records_per_s", "program.loss"], text
