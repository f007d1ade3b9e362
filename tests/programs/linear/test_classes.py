"""Classes of letters and outputs that look alike: found, used where they pay, and never believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt import (
    LDP,
    LIP,
    PML,
    ExpectedLoss,
    IIDPrior,
    InvariantPrior,
    Prior,
    design,
    solve,
    solvers_for,
)
from pmlopt.model.privacy import Requirement
from pmlopt.programs.linear import methods
from pmlopt.programs.linear.certifying import certify_linear
from pmlopt.programs.linear.columns import PairClasses, pair_classes
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers.outcome import FOREVER, Options


def bits(records: int) -> tuple[Prior, np.ndarray]:
    """Tables of bits, letter by letter, with their Hamming distances."""
    codes = np.arange(2**records)
    return IIDPrior([0.7, 0.3], records).listed(), np.bitwise_count(codes[:, None] ^ codes).astype(float)


def letters_of(classes: PairClasses) -> Any:
    """(N,) the class of each letter."""
    return classes.orbits.letter[classes.table[:, 0]]


def outputs_of(classes: PairClasses) -> Any:
    """(M,) the class of each output."""
    return classes.orbits.output[classes.table[0]]


def check_equitable(classes: PairClasses, prior: Prior, table: np.ndarray) -> None:
    """By their definition: each letter of a class meets each value equally often, and each output, too."""
    letters, outputs = letters_of(classes), outputs_of(classes)
    for one in np.unique(letters):
        own = np.flatnonzero(letters == one)
        assert len(set(prior.probabilities[own].tolist())) == 1
        for other in np.unique(outputs):
            rows = np.sort(table[np.ix_(own, np.flatnonzero(outputs == other))], axis=1)
            assert (rows == rows[0]).all()
            columns = np.sort(table[np.ix_(own, np.flatnonzero(outputs == other))], axis=0)
            assert (columns == columns[:, :1]).all()
    assert classes.orbits.consistent
    values: dict[int, set[float]] = {int(place): set() for place in np.unique(classes.table)}
    for place, value in zip(classes.table.ravel().tolist(), table.ravel().tolist(), strict=True):
        values[place].add(value)
    assert all(len(several) == 1 for several in values.values())


@given(st.integers(2, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_classes_are_equitable_and_no_finer_than_orbits(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    moves = [rng.permutation(size).tolist() for _ in range(int(rng.integers(0, 3)))]
    space = InvariantPrior(Prior.uniform(size), moves).pairs()
    prior = Prior.from_counts(rng.integers(1, 4, size=len(space.orbits.letters))[space.letter].tolist())
    table = rng.integers(0, 3, size=space.orbits.count)[space.table].astype(float)
    classes = pair_classes(prior, table, size * size)
    assert classes is not None
    check_equitable(classes, prior, table)
    assert classes.orbits.count <= space.orbits.count
    for orbit in range(space.orbits.count):
        assert len(set(classes.table[space.table == orbit].tolist())) == 1


@pytest.mark.parametrize("privacy", [PML(1.0), LDP(1.0), LIP(0.5, 1.0)])
def test_a_large_design_is_solved_in_classes_and_says_so(privacy: Requirement) -> None:
    prior, distance = bits(8)
    program = design(prior, privacy, ExpectedLoss(distance))
    assert solvers_for(program)[0].name == "classes"
    found, other = solve(program), solve(program, "structured", tolerance=1e-10)
    assert found.solver == "classes"
    assert "classes" in found.reason
    assert found.value == pytest.approx(other.value, abs=1e-9)
    assert found.gap < 1e-9
    assert found.certificate.verify()


def test_a_letter_that_differs_in_its_last_digit_is_a_class_by_itself() -> None:
    prior, distance = bits(8)
    law = prior.probabilities.copy()
    law[3] = np.nextafter(law[3], 1)
    classes = pair_classes(Prior(law), distance, 2**16)
    assert classes is not None
    assert (letters_of(classes) == letters_of(classes)[3]).sum() == 1
    program = design(Prior(law), PML(1.0), ExpectedLoss(distance))
    assert solve(program).value == pytest.approx(
        solve(program, "structured", tolerance=1e-10).value, abs=1e-9
    )
    table = distance.copy()
    table[3, 9] += 1e-9
    changed = pair_classes(prior, table, 2**16)
    assert changed is not None
    assert (letters_of(changed) == letters_of(changed)[3]).sum() == 1
    assert (outputs_of(changed) == outputs_of(changed)[9]).sum() == 1


def test_wrong_classes_cost_the_optimum_and_the_gap_says_so() -> None:
    """Those of a uniform law, for a program whose letters differ."""
    prior, distance = bits(8)
    program = design(prior, PML(1.0), ExpectedLoss(distance))
    assert isinstance(program, LinearDesign)
    wrong = pair_classes(Prior.uniform(256), distance, 2**16)
    assert wrong is not None
    outcome = methods.by_classes(program, replace(wrong, prior=prior), Options(FOREVER, 1e-7))
    assert outcome.found is not None
    certificate = certify_linear(program, outcome.found.matrix, outcome.found.multipliers)
    assert certificate.verify()
    assert certificate.gap > program.allowed_gap(program.tolerance)
