"""How evenly one lane of a parameter server shares its time among its clients.

Eight clients pull the same kind of batch from one lane; the figure is the 99th percentile of their
pulls divided by the median. Then one client pulls 512 MB at a time and another one 256 rows; the
figure is the 99th percentile of the small pulls. Clients are benchmarks/ps_load.cc. They share the
cores with the server, so with fewer than ten cores the figures also depend on the scheduler.
"""

import argparse
import time
from typing import Dict, List

from common import figure, median

from ps import Server, create, result_of, servers, start_load

CLIENTS = 8
ROWS = {"dim": 16, "known": 1_000_000}
LARGE = {"dim": 1024, "known": 262_144, "batch": 131_072}  # 512 MiB
SMALL = {"dim": 16, "known": 1_000_000, "batch": 256}


def eight_clients(running: List[Server], what: str, millis: int) -> Dict[str, float]:
    clients = [start_load(running, what=what, batch=16_384, depth=2, millis=millis, seed=seed + 1,
                          **ROWS) for seed in range(CLIENTS)]
    results = [result_of(client) for client in clients]
    return {"p50": median([result["p50_ms"] for result in results]),
            "p99": max(result["p99_ms"] for result in results),
            "rows_per_s": sum(result["rows_per_s"] for result in results)}


def small_beside_large(running: List[Server], millis: int) -> Dict[str, float]:
    before = running[0].cpu_seconds()
    large = start_load(running, what="pull", depth=1, millis=millis + 2000, **LARGE)
    while running[0].cpu_seconds() < before + 0.2:  # the client first generates its ids
        time.sleep(0.05)
    small = result_of(start_load(running, what="pull", depth=1, millis=millis, seed=2, **SMALL))
    result_of(large)
    return small


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millis", type=int, default=5000, help="how long each load runs")
    arguments = parser.parse_args()
    with servers(lanes=1) as running:
        create(running, **ROWS)
        for what in ("pull", "push"):
            seen = eight_clients(running, what, arguments.millis)
            print(f"{what}: p50 {seen['p50']:.2f} ms, p99 {seen['p99']:.2f} ms, "
                  f"{seen['rows_per_s'] / 1e6:.2f} M rows/s", flush=True)
            suffix = "" if what == "pull" else ".push"
            figure(f"ps.fairness.p99_over_p50.8clients{suffix}", seen["p99"] / seen["p50"], "")
            figure(f"ps.fairness.rows_per_s.8clients{suffix}", seen["rows_per_s"], "rows/s")
        create(running, dim=LARGE["dim"], known=LARGE["known"])
        alone = result_of(start_load(running, what="pull", depth=1, millis=arguments.millis // 2,
                                     **SMALL))
        print(f"small pulls alone: p50 {alone['p50_ms']:.3f} ms, p99 {alone['p99_ms']:.3f} ms")
        small = small_beside_large(running, arguments.millis)
        print(f"small pulls beside large ones: p50 {small['p50_ms']:.3f} ms")
        figure("ps.fairness.small_pull_p99_ms", small["p99_ms"], "ms")


if __name__ == "__main__":
    main()
