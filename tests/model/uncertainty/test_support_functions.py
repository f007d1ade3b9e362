"""Bounds on the gain of a column over a set of priors, sharpened by cutting planes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt import PML, ExpectedGain, KLBall, L1Ball, Prior, design, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty import dual_measures, support_functions
from pmlopt.model.uncertainty.support_functions import (
    ThetaPiece,
    bound_gain_by_measures,
    max_gain,
    sharpen_measures,
)
from pmlopt.programs.linear.columns import DenseColumns


def list_laws_on_a_circle(count: int) -> FloatArray:
    """List laws of three letters around the uniform one, as near as a smooth set has them."""
    angles = 2 * np.pi * np.arange(count) / count
    plane = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    return np.asarray(1 / 3 + 0.2 * np.stack([np.cos(angles), np.sin(angles)], axis=1) @ plane)


def find_largest_gain(laws: FloatArray, p: FloatArray, gains: FloatArray, factor: float) -> float:
    """Find the largest `<p g, v>` of `<p, v> = 1`, `factor max v <= laws v`, by a linear program."""
    peaks = np.repeat(np.eye(len(p)), len(laws), axis=0)
    rows = factor * peaks - np.tile(laws, (len(p), 1))
    found = linprog(-p * gains, rows, np.zeros(len(rows)), p[None], [1.0], method="highs")
    return -float(found.fun)


def test_a_measure_is_sharpened_to_the_largest_gain() -> None:
    rng, laws, factor = np.random.default_rng(8), list_laws_on_a_circle(300), np.exp(-0.8)
    for _ in range(4):
        p, gains = rng.dirichlet(np.full(3, 5.0)), rng.random((3, 1))
        start, column = laws[:1].T * 0.1, np.ones((3, 1))
        worst = sharpen_measures(
            start, column, p, gains, factor, lambda v: laws[(laws @ v).argmin()]
        )
        proved = bound_gain_by_measures(worst, worst.sum(axis=0), p, gains, factor)
        exact = find_largest_gain(laws, p, gains[:, 0], factor)
        assert 0 <= proved - exact + 1e-12 <= 3e-9 * float(np.ptp(gains))


def test_columns_bound_the_dual_bound_from_below() -> None:
    rng = np.random.default_rng(5)
    prior = Prior(rng.dirichlet(np.full(4, 5.0)))
    columns = DenseColumns(prior, PML(0.7, over=KLBall(prior, 0.05)))
    for _ in range(3):
        gains = rng.random((4, 3))
        rho = gains.mean(axis=1) + 0.1 * rng.random(4)
        low, high = columns.bound_from_below(gains, rho), columns.unrounded_bound(gains, rho)
        assert prior.pmf @ rho < low <= high
    assert DenseColumns(prior, PML(0.7)).bound_from_below(gains, rho) == -np.inf


def test_the_columns_of_a_mechanism_bound_the_dual_bound_from_below() -> None:
    rng = np.random.default_rng(3)
    prior, gains = Prior(rng.dirichlet(np.full(8, 5.0))), rng.random((8, 8))
    privacy = PML(1.0, over=KLBall(prior, 0.05))
    columns = DenseColumns(prior, privacy)
    result = solve(design(prior, privacy, ExpectedGain(gains)))
    means = (gains * result.matrix).sum(axis=1)
    low = columns.bound_from_below(gains, means, result.matrix)
    assert columns.bound_from_below(gains, means) < result.bound < low
    assert low <= columns.unrounded_bound(gains, means)


def test_the_best_measures_are_kept_for_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    plain = dual_measures.BestMeasures._find_new_measures

    def count(self: dual_measures.BestMeasures, *given: FloatArray) -> object:
        asked.append(given[1].tobytes())
        return plain(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(dual_measures.BestMeasures, "_find_new_measures", count)
    rng = np.random.default_rng(3)
    prior = Prior(rng.dirichlet(np.full(4, 5.0)))
    result = solve(
        design(prior, PML(1.0, over=KLBall(prior, 0.05)), ExpectedGain(rng.random((4, 4))))
    )
    assert result.certificate.verify()
    assert 0 < len(asked) == len(set(asked))


def test_a_gain_that_is_known_is_that_of_the_same_arguments_only() -> None:
    rng = np.random.default_rng(4)
    p, gains = rng.dirichlet(np.full(4, 5.0)), rng.random((4, 3))
    other = ThetaPiece(np.full(4, 0.2), 1.0)
    questions = [
        ((ThetaPiece(p, 1.0),), p, gains, 0.5),
        ((ThetaPiece(p, 0.9),), p, gains, 0.5),
        ((ThetaPiece(None, 1.0),), p, gains, 0.5),
        ((ThetaPiece(p, 1.0), other), p, gains, 0.5),
        ((ThetaPiece(p, 1.0),), p, gains.T.copy().T, 0.6),
        ((ThetaPiece(p, 1.0),), p, gains[:, :2], 0.5),
        ((ThetaPiece(p, 1.0),), p[::-1].copy(), gains, 0.5),
    ]
    first = [max_gain(*one) for one in questions]
    assert [max_gain(*one) for one in questions] == first
    support_functions._KNOWN_GAINS.clear()
    assert [max_gain(*one) for one in reversed(questions)] == first[::-1]
    columns = [max_gain(*questions[0][:2], gains[:, [k]], 0.5) for k in range(3)]
    assert first[0] == pytest.approx(max(columns), abs=1e-12)


@pytest.mark.parametrize("radius", [0.01, 0.2, 1.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_gains_of_peaks_end_the_search_where_they_are_the_largest(
    radius: float, epsilon: float
) -> None:
    rng = np.random.default_rng(6)
    for gains in (
        rng.random((30, 20)),
        np.eye(30),
        -np.abs(np.subtract.outer(range(30), range(9))),
    ):
        p = Prior(rng.dirichlet(np.full(30, 3.0))).pmf
        pieces, factor = L1Ball(p, radius).dual_pieces, np.exp(-epsilon)
        # in this order the first piece has other weights than the prior
        searched = max_gain(pieces[::-1], p, gains, factor)
        assert max_gain(pieces, p, gains, factor) == pytest.approx(searched, abs=1e-12)
        theta = support_functions.find_best_thetas(pieces, p, gains, factor)
        proved = support_functions.bound_gain(pieces, p, gains, factor, theta)
        assert proved == pytest.approx(searched, abs=1e-11)
        idle = support_functions.bound_gain(pieces, p, gains, factor, 0 * theta)
        assert idle == pytest.approx(float(gains.max()), abs=1e-12)
