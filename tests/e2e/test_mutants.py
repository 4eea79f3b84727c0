"""The checks of the kill schedules can fail: masters with one mistake each do not pass them."""

from pathlib import Path
from typing import Callable

import pytest
from harness import BINARY
from test_counting import check_counts, kill_a_server
from test_kills import kill_workers, lose_replies


def mutant(name: str) -> str:
    """Built beside the binary from tests/mutants."""
    path = Path(BINARY).parents[2] / "tests" / "mutants" / f"elasticdl_{name}"
    assert path.exists(), f"{path} is not there: `make test-jobs` builds it"
    return str(path)


def test_a_master_that_never_takes_leases_back_is_found(start: Callable, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the job does not end"):
        kill_workers(start, tmp_path, kills=2, size=4000, epochs=1, record_us=1000, seconds=15,
                     binary=mutant("no_reclaim"))


def test_a_master_that_takes_a_repeated_call_for_a_new_one_is_found(start: Callable,
                                                                    tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nobody had|leased for nothing|seen by"):
        lose_replies(start, tmp_path, binary=mutant("no_deduplication"))


@pytest.mark.parametrize("name", ["no_watermarks", "no_reopen"])
def test_servers_that_miscount_are_found(name: str, start: Callable, start_ps: Callable) -> None:
    folder = kill_a_server(start, binary=mutant(name))
    with pytest.raises(AssertionError, match="rows are wrong"):
        check_counts(start_ps, folder)
