"""A small version of `make bench-scale` with hundreds of clients, which checks that the load
generator works. It does not check performance."""

import os
import sys
from pathlib import Path

import pytest
from harness import BINARY

BUILD = Path(BINARY).parents[2]
LOAD = BUILD / "benchmarks" / "scale_load"


@pytest.mark.skipif(not LOAD.exists(), reason=f"{LOAD} is built by make bench-scale and make test")
def test_hundreds_of_clients_finish_although_a_tenth_is_killed():
    os.environ.setdefault("ELASTICDL_BUILD", str(BUILD))
    sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
    import scale

    scale.RATE, scale.RATE_S, scale.HEARTBEATS_S = 1000, 1, 1
    result = scale.measure(300)

    assert result["leases_per_s"] > 100
    assert result["recovered_s"] < 30
    assert result["end_s"] < 30
