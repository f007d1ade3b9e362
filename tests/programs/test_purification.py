"""The removal of dust: tiny outputs and entries of interior points that the certified gap cannot see."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pmlopt as pm
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.privacy import Requirement
from pmlopt.programs import purification, solving
from pmlopt.programs.exact.rounding import is_met_exactly
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.purification import (
    clear_tiny_entries,
    find_strict_mechanism,
    merge_rare_outputs,
)
from pmlopt.programs.result import Result

LAW = (0.1, 0.2, 0.25, 0.15, 0.3)


def smallest(result: Result[Any]) -> float:
    """The smallest positive probability of an output."""
    probabilities = result.certificate.prior.pmf @ result.mechanism.matrix
    return float(probabilities[probabilities > 0].min())


def hamming_design(prior: pm.Prior, privacy: Requirement) -> LinearDesign:
    """A design for the least probability of another output than the letter."""
    program = pm.design(prior, privacy, "hamming")
    assert isinstance(program, LinearDesign)
    return program


def solve_raw(program: LinearDesign, monkeypatch: pytest.MonkeyPatch) -> Result[Any]:
    """Solve as if nothing were dust."""
    with monkeypatch.context() as patched:
        patched.setattr(solving, "remove_dust", lambda _exchange, _program, found, _allowed: found)
        return pm.solve(program)


REQUIREMENTS: dict[str, Requirement] = {
    "renyi": pm.RenyiPML(2.0, 0.3),
    "renyi-and-pml": pm.RenyiPML(3.0, 0.3) & pm.PML(0.6),
    "sibson": pm.SibsonLeakage(2.0, 0.3),
    "kl-ball": pm.PML(0.3, over=pm.KLBall(pm.Prior(LAW), 0.02)),
}


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_designs_by_an_interior_point_have_no_dust(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior, privacy = pm.Prior(LAW, labels=list("abcde")), REQUIREMENTS[name]
    if name == "kl-ball":
        privacy = pm.PML(0.3, over=pm.KLBall(prior, 0.02))
    program = hamming_design(prior, privacy)
    raw: Any = solve_raw(program, monkeypatch)
    found: Any = pm.solve(program)
    assert 0 < smallest(raw) < 1e-7  # what there is to remove
    matrix = found.mechanism.matrix
    assert smallest(found) > 1e-3
    assert not ((matrix > 0) & (matrix < 1e-5)).any()
    # nothing of the claim is lost: level and gap by the certificate's own checks
    assert found.certificate.verify()
    assert is_met_exactly(prior, privacy, matrix)
    assert found.status is pm.programs.Status.OPTIMAL
    assert found.gap <= program.compute_allowed_gap(program.tolerance)
    assert found.bound == raw.bound
    # labels stay, and what was dropped is recorded
    assert found.mechanism.outputs == raw.mechanism.outputs == prior.labels
    never = np.flatnonzero(matrix.max(axis=0) == 0)
    assert set(never) == set(found.certificate.repair.dropped)
    assert all(sum(map(Fraction, row)) == 1 for row in matrix.tolist())


def test_an_added_constraint_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    # every output, also one that is worth nothing, must occur with a probability near that of dust
    program = hamming_design(pm.Prior(LAW), REQUIREMENTS["renyi"])
    likely = program.prior.pmf @ program.mechanism
    program = program.with_constraints(floor=likely >= 1e-6)
    found: Any = pm.solve(program)
    raw: Any = solve_raw(program, monkeypatch)
    assert smallest(found) >= 1e-6 * (1 - 1e-5)
    assert np.count_nonzero(found.mechanism.matrix.max(axis=0)) == len(LAW)
    before, after = raw.certificate.residuals["floor"], found.certificate.residuals["floor"]
    assert after <= before + 1e-12


def test_a_constraint_on_other_outputs_does_not_keep_dust() -> None:
    program = hamming_design(pm.Prior(LAW), REQUIREMENTS["renyi"])
    program = program.with_constraints(own=program.mechanism[4, 4] >= 0.5)
    found = pm.solve(program)
    assert smallest(found) > 1e-3
    assert found.mechanism.matrix[4, 4] >= 0.5 - 1e-6
    assert found.certificate.verify()


@pytest.mark.parametrize("epsilon", [12.0, 14.0])
def test_small_entries_of_an_optimum_stay(epsilon: float) -> None:
    # randomised response is optimal, with e^-epsilon beside the diagonal
    found = pm.solve(pm.design(np.full(4, 0.25), pm.LDP(epsilon), "hamming"))
    off = found.mechanism.matrix[~np.eye(4, dtype=bool)]
    assert off == pytest.approx(1 / (np.exp(epsilon) + 3), rel=1e-6)


def test_a_rare_letter_keeps_its_output() -> None:
    # it is all that the letter says: 1e-6 of the probability, and not of the letter's own row
    prior = pm.Prior.from_counts([1, 400_000, 600_000])
    found = pm.solve(pm.design(prior, pm.RenyiPML(2.0, 13.0), "hamming"))
    assert found.mechanism.matrix[0, 0] > 0.1


@given(
    st.integers(2, 5),
    st.integers(0, 2**32 - 1),
    st.sampled_from([pm.PML, pm.LDP, pm.MaximalLeakage]),
)
def test_merging_outputs_raises_no_level(n: int, seed: int, kind: type) -> None:
    rng = np.random.default_rng(seed)
    prior = pm.Prior(rng.dirichlet(np.full(n, 2.0)) * 0.9 + 0.1 / n)
    matrix = np.hstack([rng.dirichlet(np.ones(n), size=n) + 1e-4, rng.random((n, 2)) * 5e-6])
    matrix /= matrix.sum(axis=1, keepdims=True)
    gains = rng.normal(size=matrix.shape)
    (name,) = kind(1.0).limits
    before = kind(1.0).levels(prior, pm.Mechanism(matrix))[name]
    for given_gains in (gains, None):
        merged = merge_rare_outputs(matrix, 1e-5, prior.pmf, given_gains)
        assert merged.sum(axis=1) == pytest.approx(1, abs=1e-12)
        assert not merged[:, -2:].any()
        level = kind(1.0).levels(prior, pm.Mechanism(merged))[name]
        assert level <= before + 1e-12


def test_outputs_are_merged_where_least_is_lost() -> None:
    matrix = np.array([[0.5, 0.5 - 2**-30, 2**-30], [0.5, 0.5 - 2**-30, 2**-30]])
    gains = np.array([[0.0, 1.0, 5.0], [0.0, 3.0, 5.0]])
    merged = merge_rare_outputs(matrix, 1e-6, np.array([0.5, 0.5]), gains)
    assert merged.tolist() == [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]
    merged = merge_rare_outputs(matrix, 1e-6, np.array([0.5, 0.5]), -gains)
    assert merged[:, 0].tolist() == [0.5 + 2**-30] * 2


def test_zeros_stay_zeros_where_entries_are_cleared() -> None:
    prior, privacy = pm.Prior([0.3, 0.3, 0.4]), pm.PML(np.log(2))
    # the first column is within its limit with the tiny entry only: 0.5 < 2 (0.15 + 0.3 second + 0.4 tiny)
    tiny, second = 2.0**-26, 1 / 3 - 2.0**-26
    matrix: FloatArray = np.array([[0.5, 0.5], [second, 1 - second], [tiny, 1 - tiny]])
    assert is_met_exactly(prior, privacy, matrix)
    zeroed = np.where(matrix > 1e-7, matrix, 0.0)
    zeroed[2, 1] = 1.0
    assert not is_met_exactly(prior, privacy, zeroed)
    cleared = clear_tiny_entries(prior, privacy, matrix, 1e-7)
    assert cleared is not None
    assert cleared[2, 0] == 0
    assert is_met_exactly(prior, privacy, cleared)
    assert np.abs(cleared - matrix).max() < 4 * tiny


def test_a_removal_never_opens_the_gap_beyond_the_tolerance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = hamming_design(pm.Prior(LAW), REQUIREMENTS["renyi"])
    raw = solve_raw(program, monkeypatch)
    loss = abs(pm.solve(program).value - raw.value)
    assert loss > 1e-9
    found = pm.solve(program, gap=raw.gap + loss / 2)
    assert found.status is pm.programs.Status.OPTIMAL
    assert found.gap <= raw.gap + loss / 2


def test_a_vertex_has_nothing_to_remove(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(solving, "remove_dust", lambda *given: seen.append(given))
    pm.solve(pm.design(np.full(3, 1 / 3), pm.PML(0.5), "hamming"))
    assert not seen


def test_the_restart_has_the_mechanism_without_dust() -> None:
    found = pm.solve(pm.design(LAW, pm.RenyiPML(2.0, 0.3), "hamming"))
    assert found.restart.matrix is found.mechanism.matrix


def random_secret(seed: int) -> pm.Secret:
    """A secret of two values about three to six letters, from whole numbers."""
    rng = np.random.default_rng(seed)
    return pm.Secret.from_counts(rng.integers(1, 100, (2, int(rng.integers(3, 7)))))


@pytest.mark.parametrize("seed", range(12))
def test_zeros_of_a_vertex_stay_zeros_under_bounds_about_a_secret(seed: int) -> None:
    # rounding breaks some of these vertices, and a constant that mends them would put 1e-16 everywhere
    secret = random_secret(seed)
    program = pm.design(secret.prior, pm.PML(0.3, about=secret), pm.MutualInformation())
    result = pm.solve(program)
    matrix = result.mechanism.matrix
    assert not ((matrix > 0) & (matrix < 1e-12)).any()
    assert result.certificate.verify()


@pytest.mark.parametrize("seed", range(6))
def test_a_strict_mechanism_has_the_same_zeros_and_room_in_every_output(seed: int) -> None:
    secret = random_secret(seed)
    privacy = pm.PML(0.3, about=secret)
    corner = pm.solve(pm.design(secret.prior, privacy, pm.MutualInformation())).mechanism.matrix
    found = find_strict_mechanism(secret.prior, privacy, corner)
    assert found is not None
    assert (found[corner == 0] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-9)
    inside = pm.Mechanism(found / found.sum(axis=1, keepdims=True))
    assert pm.leakage_level(secret, inside) < 0.3


def test_no_strict_mechanism_is_found_where_the_zeros_leave_none() -> None:
    # each output rules all but one letter out: PML is log 3, whatever the entries
    assert find_strict_mechanism(pm.Prior.uniform(3), pm.PML(1.0), np.eye(3)) is None


@pytest.mark.parametrize("groups", [1, 2])
def test_entries_that_others_bound_from_below_are_no_dust(
    groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That a zero cannot stay one is found without a try, and the tries would have found nothing else."""
    size = 100
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / 2
    group = np.arange(size) * groups // size
    apart[group[:, None] != group] = np.inf
    privacy = pm.MetricPrivacy(1.0, apart)
    matrix = np.where(np.isfinite(apart), np.exp(-apart), 1e-9)
    matrix /= matrix.sum(axis=1)[:, None]
    cleared = np.where(matrix > 1e-5, matrix, 0.0)
    prior = pm.Prior.uniform(size)
    assert not purification._may_be_zero(prior, privacy, cleared)
    assert clear_tiny_entries(prior, privacy, matrix, 1e-5) is None
    whole = np.where(group[:, None] == group, matrix, 0.0)
    assert purification._may_be_zero(prior, privacy, whole)
    assert purification._may_be_zero(prior, pm.PML(1.0), cleared)
    monkeypatch.setattr(purification, "_may_be_zero", lambda *_: True)
    assert purification.repair_within_support(prior, privacy, cleared) is None
