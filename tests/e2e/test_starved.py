"""Two hundred workers on a starved machine: late heartbeats do not lose a session."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

nightly = pytest.mark.skipif(not os.environ.get("ELASTICDL_NIGHTLY"), reason="make nightly")
PROGRAM = Path(__file__).parent / "programs" / "lease_logger.py"
WORKERS, SHARDS, BURNERS = 200, 2000, 20


@nightly
def test_no_worker_is_lost_on_two_starved_cores(start, tmp_path):
    cores = sorted(os.sched_getaffinity(0))[:2]
    burners = []
    os.sched_setaffinity(0, cores)  # processes started from here on inherit these two
    try:
        burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                   for _ in range(BURNERS)]
        job = start("starved", f"{sys.executable} {PROGRAM} --size={SHARDS} --hold-ms=200 "
                    f"--log-dir={tmp_path}", f"--num_workers={WORKERS}")
        view = job.assert_succeeded(900)
    finally:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        for burner in burners:
            burner.kill()
            burner.wait()
    log = (job.folder / "logs" / "master.log").read_text()
    assert "was silent" not in log
    # A process that exits closes its connection. The agent, starved too, reports the exit later.
    lost = re.findall(r"worker (\d+) \(incarnation \d+\) lost its connection: its (\d+) lease", log)
    assert len(lost) == log.count("lost its connection")
    for worker, leases in lost:
        assert leases == "0", f"worker {worker} lost its leases"
        assert f"worker-{worker} ended: exit code 0" in log
    assert view["relaunches"] == 0
    assert view["datasets"][0]["records_done"] == SHARDS
    assert view["datasets"][0]["shards_repeated"] == 0
