"""Makes the packages of this clone importable, and keeps a test's environment its own."""

import os
import sys

import pytest

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)))

from elasticai_api.common import master_client  # noqa: E402
from elasticai_api.common.constants import PodEnv  # noqa: E402


@pytest.fixture(autouse=True)
def no_job_around(monkeypatch):
    """No variable of a real job is seen, and each test has its own process-wide client."""
    for name in vars(PodEnv).values():
        if isinstance(name, str):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(master_client, "_shared", {})
