"""The checks of the kill schedules can fail: binaries with one mistake each do not pass them."""

from pathlib import Path
from typing import Callable

import pytest
from harness import BINARY
from test_counting import check_counts, kill_a_server
from test_kills import kill_workers, lose_replies


def mutant(name: str) -> str:
    """The path of a binary of tests/mutants."""
    path = Path(BINARY).parents[2] / "tests" / "mutants" / f"elasticdl_{name}"
    assert path.exists(), f"{path} is missing; build it with: make test-jobs"
    return str(path)


def test_a_master_that_does_not_reclaim_leases_is_detected(start: Callable, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the job did not end"):
        kill_workers(start, tmp_path, kills=2, size=4000, epochs=1, record_us=1000, seconds=15,
                     binary=mutant("no_reclaim"))


def test_a_master_that_treats_a_repeated_call_as_new_is_detected(start: Callable,
                                                                 tmp_path: Path) -> None:
    with pytest.raises(AssertionError,
                       match="relaunched although|never trained|under two leases|seen by"):
        lose_replies(start, tmp_path, binary=mutant("no_deduplication"))


@pytest.mark.parametrize("name", ["no_watermarks", "no_reopen"])
def test_servers_that_miscount_are_detected(name: str, start: Callable, start_ps: Callable) -> None:
    folder = kill_a_server(start, binary=mutant(name))
    with pytest.raises(AssertionError, match="rows are wrong"):
        check_counts(start_ps, folder)
