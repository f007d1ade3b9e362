"""Least means and levels over sets of priors with letters that are rarer than floats add up."""

from __future__ import annotations

import math
import warnings
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from oracles.rare_letters import SETS, bracket_min_mean, random_rare_center, random_rare_radius
from scipy import sparse

from pmlopt import (
    PML,
    Box,
    ChiSquareBall,
    LikelihoodRegion,
    design,
    solve,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import SolverError
from pmlopt.model.uncertainty import leakage_capacity, leakage_sensitivity, pointwise_capacity
from pmlopt.model.uncertainty.row_multipliers import find_row_multipliers
from pmlopt.programs.compliance import prove
from pmlopt.solvers import highs


def complete(column: list[float]) -> FloatArray:
    """Return the mechanism of two outputs with a given first column."""
    return np.array([[x, 1 - x] for x in column])


@pytest.mark.parametrize("name", sorted(SETS))
def test_least_means_next_to_letters_of_any_size(name: str) -> None:
    rng, kind = np.random.default_rng(11), SETS[name]
    for _ in range(25):
        n = int(rng.integers(2, 5))
        center = random_rare_center(rng, n)
        ball = kind.make(center, random_rare_radius(rng, name, center))
        column = rng.integers(0, 65, n) / 64
        column -= column.min()
        if not column.any():
            continue
        low, high = bracket_min_mean(kind, ball, column)
        assert low <= high <= low + Decimal("1e-7") * high + Decimal("1e-20")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = float(ball.min_mean(column[:, None])[0])
        assert found == pytest.approx(float(high), rel=1e-7, abs=1e-20)
        law = ball.minimizer(column)
        assert law.sum() == pytest.approx(1, abs=1e-12)
        assert float(law @ column) == pytest.approx(found, rel=1e-12)
        # 64 is a whole unit of the column: the exact bound is below, and as near
        least, total = ball.min_mean_scaled(np.array([[int(64 * x)] for x in column], dtype=object))
        exact = Fraction(int(least[0]), 64 * total)
        assert exact <= Fraction(high)
        assert float(exact) == pytest.approx(float(high), rel=1e-7, abs=1e-20)


def chi_square_level() -> float:
    """The level of ((1/4, 3/4), (0, 1)) over all q within the distance of (1, 1.7e-27), by formula."""
    with localcontext(Context(prec=400)):
        rare, radius = map(Decimal, (1.679171823057792e-27, 2.2249345273879673e26))
        share = rare / (1 + rare)
        moved = share + (radius * share * (1 - share)).sqrt()
        return float((Decimal("0.25") / ((1 - moved) * Decimal("0.25"))).ln())


def test_a_level_over_a_chi_square_ball_with_a_rare_letter() -> None:
    p, matrix = [1.0, 1.679171823057792e-27], complete([0.25, 0.0])
    ball = ChiSquareBall(p, 2.2249345273879673e26)
    right = chi_square_level()
    assert right == pytest.approx(0.944773, abs=1e-6)
    assert PML(1, over=ball).level(p, matrix) == pytest.approx(right, rel=1e-12)
    assert not PML(0.3, over=ball).holds(p, matrix)
    assert PML(0.945, over=ball).holds(p, matrix)
    assert leakage_capacity(ball, matrix) == pytest.approx(right, rel=1e-12)
    # under the prior itself the output 1 reveals most, 1 over 3/4
    under_prior = math.log(4 / 3)
    assert leakage_sensitivity(p, ball, matrix) == pytest.approx(right - under_prior, rel=1e-12)


def test_a_small_mass_moves_to_rare_letters_of_a_chi_square_ball() -> None:
    """The mass `sqrt(radius p)` moves to the letter of 8.8e-22; that of 4e-65 has no part in it."""
    rare = 8.809160667175105e-22
    ball = ChiSquareBall([1.0, rare, 3.6947008693732065e-65], 3.0)
    levels = pointwise_capacity(ball, complete([1.0, 0.0, 0.25]))
    assert levels[0] == pytest.approx(math.sqrt(3 * rare), rel=1e-5)
    # and a member of the ball leaves both letters out, so that the output 1 may be any rarer
    assert ball.contains_rationals([Fraction(1), Fraction(0), Fraction(0)])
    assert levels[1] == math.inf


def test_a_level_over_a_likelihood_region_with_rare_letters() -> None:
    """The law (e^-3, ~0, rest) is a member, and none has less than e^-3 on the first letter."""
    p = [1.0, 7.537605312570112e-162, 8.972777274828786e-189]
    v, region = [0.859375, 0.6875, 0.0625], LikelihoodRegion(p, 3.0)
    right = math.log(v[0] / (math.exp(-3) * v[0] + (1 - math.exp(-3)) * v[2]))
    assert PML(1, over=region).level(p, complete(v)) == pytest.approx(right, rel=1e-12)
    assert not PML(2.0, over=region).holds(p, complete(v))
    assert PML(2.13, over=region).holds(p, complete(v))


def test_an_upper_bound_next_to_one_leaves_the_rare_letter_its_mass() -> None:
    """What an upper bound leaves is the least mass of the other letter, however small."""
    rest = 1 - Fraction(1 - 1e-12)
    box = Box([0.0, 0.0], [1.0, 1 - 1e-12])
    assert PML(1, over=box).level([1e-12, 1 - 1e-12], np.eye(2)) == math.inf
    box = Box([0.0, 0.5], [1.0, 1 - 1e-12])
    level = PML(1, over=box).level([1e-12, 1 - 1e-12], np.eye(2))
    assert level == pytest.approx(-math.log(rest), rel=1e-15)


def test_what_a_proof_states_is_not_below_the_level() -> None:
    """Also where floats decide that a mechanism does not hold, or round the level down."""
    rng = np.random.default_rng(3)
    for name, kind in SETS.items():
        for _ in range(5):
            center = random_rare_center(rng, 3)
            ball = kind.make(center, random_rare_radius(rng, name, center))
            matrix = complete((rng.integers(16, 49, 3) / 64).tolist())
            proof = prove(center, PML(5.0, over=ball), matrix).certificate
            assert proof.verify()
            for column in matrix.T:
                _, high = bracket_min_mean(kind, ball, column - column.min())
                mean = Fraction(high) + Fraction(float(column.min()))
                with localcontext(Context(prec=60)):
                    ratio = Fraction(float(column.max())) / mean
                    exact = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
                    assert Decimal(proof.level) >= exact * (1 - Decimal("1e-20"))
            level = pointwise_capacity(ball, matrix).max()
            assert proof.level == pytest.approx(level, rel=1e-9, abs=1e-12)
            assert proof.value == proof.level


def test_a_valid_design_next_to_the_level_of_a_rare_letter_is_proved() -> None:
    prior = [1e-12, 1 - 1e-12]
    for upper in (1.0, 1 - 1e-12):
        box = Box([1e-12, 0.5], [1.0, upper])
        found = solve(design(prior, PML(27.631, over=box), "hamming"))
        again = prove(prior, PML(27.631, over=box), found.mechanism)
        assert again.certificate.verify()
        assert again.level <= 27.631


@pytest.mark.parametrize("share", [0.25, 1e-12, 1e-16, 1e-297, 1e-320])
def test_weights_of_rows_are_found_beside_any_share(share: float) -> None:
    # max q subject to q / share <= e (1 - q) / rest: the multiplier y of the row has
    # y / share + t = 1 and t = y e / rest
    law = np.array([share, 1 - share])
    row = sparse.csr_array(np.array([[1.0, -math.e]]))
    found = find_row_multipliers(law, np.array([[1.0], [0.0]]), row, np.zeros(0))
    assert found[0, 0] == pytest.approx(share / (1 + share * math.e / (1 - share)), rel=1e-9, abs=0)


def test_a_program_that_highs_refuses_is_not_taken_for_the_one_before() -> None:
    rows = np.zeros(1), np.ones(1)
    highs.keep_solver(
        highs.load_model(
            highs.build_sparse_model(np.ones(1), (0.0, 1.0), rows, sparse.eye_array(1)), {}
        )
    )
    huge = highs.build_sparse_model(np.ones(1), (0.0, 1.0), rows, sparse.csr_array([[1e200]]))
    with pytest.raises(
        SolverError, match=r"largest coefficient is 1e\+200: it takes numbers up to"
    ):
        highs.load_model(huge, {})
