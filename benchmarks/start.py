"""The time from the start of `elasticdl train` to the first line of a trivial command."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import figure, median
from harness import BINARY

ROUNDS = 15


def first_line_ms(home: Path, number: int) -> float:
    stamp = home / f"stamp-{number}"
    begin = time.time()
    done = subprocess.run(
        [BINARY, "train", "--backend=local", f"--job_name=start-{number}", "--num_workers=1",
         f"--job_command=date +%s.%N > {stamp}"],
        env={"ELASTICDL_HOME": str(home), "PATH": "/usr/bin:/bin"}, stdout=subprocess.DEVNULL,
        timeout=60)
    assert done.returncode == 0
    return (float(stamp.read_text()) - begin) * 1e3


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as folder:
        home = Path(folder)
        home.chmod(0o700)
        times = [first_line_ms(home, number) for number in range(ROUNDS)]
    print(" ".join(f"{t:.0f}" for t in times), "ms")
    figure("start.first_line_ms.median", median(times), "ms")
    figure("start.first_line_ms.worst", max(times), "ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
