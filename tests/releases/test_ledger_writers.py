"""Two writers on one ledger, killed at random moments."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from fuzzing.ledger_writers import run


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals that cannot be caught")
def test_two_writers_that_are_killed_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    told = run(tmp_path, 4, np.random.default_rng(0))
    assert told["acknowledged"] == 8
