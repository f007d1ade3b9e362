"""Mechanisms with labels are certified and started from by their labels; programs are printed in a line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pmlopt import (
    PML,
    ExpectedGain,
    Mechanism,
    MutualInformation,
    Prior,
    best_worst_case,
    certify,
    design,
    distortion_leakage,
    envelope,
    envelope_design,
    least_leakage,
    queries,
    record_leakage,
    solve,
    worst_case_utility,
)
from pmlopt.errors import MechanismError, SolverUnavailableError
from pmlopt.programs import Alternating

PRIOR = Prior([0.5, 0.3, 0.2], list("abc"))
GAINS = ExpectedGain(np.eye(3))
ORDER = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
PARITY = queries.ModularSum(3, 2)
GIVEN = Mechanism(np.full((3, 2), 0.5), list("abc"), list("uv"))
PROGRAMS: dict[str, Any] = {
    "linear": design(PRIOR, PML(0.5), GAINS),
    "convex": design(PRIOR, PML(0.5), MutualInformation()),
    "least": least_leakage(PRIOR, GAINS, expected=0.6),
    "rank": worst_case_utility(PRIOR, ORDER, 2),
    "worst": best_worst_case(PRIOR, ORDER, 1.0),
    "envelope": envelope(PRIOR, GIVEN, 0.1),
    "within": envelope_design(PRIOR, 0.5, 0.1, GAINS),
    "trade-off": distortion_leakage(PARITY, 0.1, 1.5),
    "records": record_leakage(PARITY, np.eye(2), 1.5),
}
REORDERED: dict[str, Mechanism] = {
    **dict.fromkeys(
        ("linear", "convex", "least", "rank", "worst", "within"),
        Mechanism(np.eye(3)[::-1], list("cba"), list("abc")),
    ),
    "envelope": Mechanism(np.eye(2), list("vu"), list("yz")),
    "trade-off": Mechanism(np.eye(2)[::-1], (1, 0), (0, 1)),
}


@pytest.mark.parametrize("kind", REORDERED)
def test_other_orders_of_labels_are_refused(kind: str) -> None:
    for use in (certify, lambda program, given: solve(program, warm_start=given)):
        with pytest.raises(MechanismError, match="same in another order"):
            use(PROGRAMS[kind], REORDERED[kind])


def test_other_outputs_are_refused() -> None:
    with pytest.raises(MechanismError, match="the outputs of the mechanism"):
        certify(PROGRAMS["linear"], Mechanism(np.eye(3), list("abc"), list("xyz")))
    assert certify(PROGRAMS["linear"], Mechanism(np.eye(3), list("abc"))).certificate.verify()


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_program_is_printed_in_a_short_line(kind: str) -> None:
    assert repr(PROGRAMS[kind]).startswith("<")
    assert len(repr(PROGRAMS[kind])) < 80


@pytest.mark.parametrize("kind", [kind for kind in PROGRAMS if kind != "records"])
def test_a_method_of_another_kind_is_refused(kind: str) -> None:
    with pytest.raises(SolverUnavailableError, match="is no method for"):
        solve(PROGRAMS[kind], Alternating(restarts=1))
    with pytest.raises(SolverUnavailableError, match="does not solve"):
        solve(PROGRAMS[kind], "no-such-solver")
