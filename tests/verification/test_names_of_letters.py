"""Results of a prior with names and a matrix without, or the reverse: saved, they have the same letters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmlopt import (
    PML,
    ExpectedGain,
    L1Ball,
    Mechanism,
    MutualInformation,
    Prior,
    Result,
    certify,
    design,
    envelope,
    least_leakage,
    solve,
    verify_file,
    worst_case_utility,
)
from pmlopt.programs import failure_after_processing
from pmlopt.programs.compliance import prove

P, NAMES = [0.5, 0.3, 0.2], ("a", "b", "c")
MATRIX = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
ORDER = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]

PAIRS: dict[str, tuple[Any, Any]] = {
    "names of the prior, rows": (Prior(P, NAMES), MATRIX),
    "names of the prior, mechanism": (Prior(P, NAMES), Mechanism(MATRIX)),
    "names of the mechanism": (Prior(P), Mechanism(MATRIX, NAMES)),
    "names of the mechanism, counts": (Prior.from_counts([5, 3, 2]), Mechanism(MATRIX, NAMES)),
    "no names": (P, MATRIX),
    "names of both": (Prior(P, NAMES), Mechanism(MATRIX, NAMES)),
}
MAKERS: dict[str, Callable[[Any, Any], Result[Any]]] = {
    "envelope": lambda p, m: solve(envelope(p, m, 0.05)),
    "envelope over": lambda p, m: solve(envelope(p, m, 0.05, over=L1Ball(P, 0.1))),
    "failure": lambda p, m: solve(failure_after_processing(p, m, 0.5)),
    "prove": lambda p, m: prove(p, PML(2.0), m),
    "design": lambda p, m: certify(design(p, PML(1.5), "hamming"), m),
    "information": lambda p, m: certify(design(p, PML(1.5), MutualInformation()), m),
    "worst case": lambda p, m: certify(worst_case_utility(p, ORDER, 1), m),
    "least leakage": lambda p, m: certify(
        least_leakage(p, ExpectedGain(np.eye(3)), expected=0.5), m
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_saved_result_has_the_letters_of_the_side_that_names_them(
    maker: str, pair: str, tmp_path: Path
) -> None:
    result = MAKERS[maker](*PAIRS[pair])
    for ending in ("json", "npz"):
        result.save(tmp_path / f"result.{ending}")
        assert verify_file(tmp_path / f"result.{ending}").holds
    if pair != "no names" and (maker in ("envelope", "failure", "prove") or "prior" in pair):
        assert result.mechanism.inputs == NAMES
