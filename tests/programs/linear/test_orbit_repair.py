"""Mechanisms by orbits that are nearly private are repaired by mixtures with constants."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt import PML, CoordinateLoss, IIDPrior, design, solve
from pmlopt.errors import MechanismError
from pmlopt.programs.linear import build_certificate
from pmlopt.programs.linear.build_certificate import (
    _mix_orbit_columns,
    _needed_orbit_shares,
    repair_orbits,
)
from pmlopt.programs.linear.program import SymmetricDesign


def two_bits() -> SymmetricDesign:
    program = design(IIDPrior([0.7, 0.3], 2), PML(0.4), CoordinateLoss([[0, 1], [2, 0]]))
    assert isinstance(program, SymmetricDesign)
    return program


def lifts_of(program: SymmetricDesign, share: float) -> FloatArray:
    """A mixture of the uniform mechanism and one that is skewed, at random."""
    columns = program.columns
    random = np.random.default_rng(1).random(columns.orbits.count)
    uniform = columns.normalize_rows(np.ones(columns.orbits.count))
    return (1 - share) * uniform + share * columns.normalize_rows(random)


def test_a_repaired_mechanism_is_a_mixture_with_a_law_of_the_output() -> None:
    """With the law that it has, or the uniform one; what that changed is recorded."""
    program = two_bits()
    columns, output = program.columns, program.columns.orbits.output
    lifts = lifts_of(program, 1.0)
    assert columns.max_violations(lifts).max() > 1e-2
    mechanism, record = repair_orbits(program.space, columns, program.privacy, lifts)
    theta, found = record.theta, mechanism.scaled_entries
    assert 1e-2 < theta < 1
    own = columns.mean_by_output(lifts)
    laws = own, np.full(len(own), 1 / len(own))
    mixtures = [(1 - theta) * lifts + theta * law[output] for law in laws]
    assert min(np.abs(found - one).max() for one in mixtures) < 1e-12
    assert record.shift == pytest.approx(np.abs(found - lifts).max(), rel=1e-12)
    assert columns.is_met_exactly(mechanism.masses)


def test_columns_that_miss_their_bound_are_mixed_with_their_means(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On the chord to the mean the violation vanishes, and the mean of a column stays."""
    program = two_bits()
    columns = program.columns
    lifts = lifts_of(program, 1.0)
    monkeypatch.setattr(build_certificate, "MAX_COLUMN_CHANGE", 1.0)
    monkeypatch.setattr(columns.__class__, "normalize_rows", lambda _, values: values)
    mixed = _mix_orbit_columns(columns, lifts)
    before, after = columns.max_violations(lifts), columns.max_violations(mixed)
    broken = before > 0
    assert broken.any()
    assert after[broken] == pytest.approx(np.zeros(broken.sum()), abs=1e-12)
    assert after[~broken] == pytest.approx(before[~broken])
    assert columns.mean_by_output(mixed) == pytest.approx(columns.mean_by_output(lifts))


@pytest.mark.parametrize(("share", "mended"), [(1.01, True), (0.99, False)])
def test_a_column_is_mixed_where_that_moves_no_entry_by_much(
    monkeypatch: pytest.MonkeyPatch, share: float, mended: bool
) -> None:
    """The ends of a column move by the share of the mean times how far they are apart, at most."""
    program = two_bits()
    columns = program.columns
    lifts = lifts_of(program, 1.0)
    broken = int(columns.max_violations(lifts).argmax())
    shares = _needed_orbit_shares(columns, lifts, columns.mean_by_output(lifts))
    far = float(shares[broken] * np.ptp(lifts[columns.orbits.orbits_of_output(broken)]))
    monkeypatch.setattr(build_certificate, "MAX_COLUMN_CHANGE", share * far)
    monkeypatch.setattr(columns.__class__, "normalize_rows", lambda _, values: values)
    left = columns.max_violations(_mix_orbit_columns(columns, lifts))[broken]
    assert bool(left < 1e-12) is mended


def test_the_row_that_is_furthest_from_one_is_named() -> None:
    program = two_bits()
    columns = program.columns
    uniform = columns.normalize_rows(np.ones(columns.orbits.count))
    factors = columns.broadcast_letters(np.linspace(0.2, 1.1, len(columns.row_sums(uniform))))
    with pytest.raises(MechanismError, match=r"sums to 0\.2:"):
        repair_orbits(program.space, columns, program.privacy, uniform * factors)


def test_levels_of_orbits_allow_for_the_rounding_of_all_terms() -> None:
    program = two_bits()
    certificate = solve(program).certificate
    terms = certificate.columns.terms
    assert certificate.float_levels[1] > terms * np.finfo(float).eps
