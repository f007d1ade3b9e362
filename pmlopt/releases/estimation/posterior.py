"""Bayesian posteriors of frequencies under a Dirichlet prior, by MCMC sampling."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray, Labels
from pmlopt.errors import SolverError
from pmlopt.releases.estimation.intervals import check_confidence

CHAIN_COUNT = 64
"""Chains that run side by side: their means reveal the error of the mean of all."""

BLOCK, MAX_STEPS = 200, 30_000
"""Points of each chain after which the error is looked at, of which the first half is forgotten; and the
steps at which sampling is given up."""


@dataclass(frozen=True, eq=False)
class FrequencyPosterior:
    """The sampled posterior of frequencies or their combinations.

    Attributes:
        letters: the K inputs, or the names of the rows of the workload.
        mean, standard_deviations: (K,) of the posterior.
        error: (K,) the standard error of `mean` by sampling.
        concentration: (N,) the weights of the Dirichlet prior.
        confidence: of `intervals`.
        draws: (S, K) of the posterior, by which all the others are found.
    """

    letters: Labels
    mean: FloatArray
    standard_deviations: FloatArray
    error: FloatArray
    concentration: FloatArray
    confidence: float
    draws: FloatArray = field(repr=False)

    @property
    def columns(self) -> dict[str, FloatArray]:
        """Return the (K,) columns of its table: means, deviations and ends of intervals."""
        ends = self.intervals
        return {
            "mean": self.mean,
            "standard_deviation": self.standard_deviations,
            "lower": ends[:, 0],
            "upper": ends[:, 1],
        }

    @property
    def intervals(self) -> FloatArray:
        """Return (K, 2) equal-tailed credible intervals."""
        return self.credible_interval(self.confidence)

    def credible_interval(self, confidence: float) -> FloatArray:
        """Compute the (K, 2) equal-tailed credible intervals at a confidence.

        Raises:
            InputError: the confidence is outside (0, 1).
        """
        # the risk is shared evenly by both ends
        tail = (1 - check_confidence(confidence)) / 2
        return np.quantile(self.draws, [tail, 1 - tail], axis=0).T


def draw_posterior(
    matrix: FloatArray,
    counts: IntArray,
    concentration: FloatArray,
    combinations: FloatArray,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """Draw samples of W f from the posterior density on the simplex.

    Chains take steps along lines: each draws a direction, and then a point on the line within the simplex at
    which the density is above a level drawn below it here. Directions are those in which one covariance, that
    of the counts and the prior together, is even, and those between two letters, in turn. Lines and levels
    leave the density as it is, whatever the directions are.

    Args:
        matrix: (N, M).
        counts: (M,) of the outputs.
        concentration: (N,) a > 0.
        combinations: (K, N) W.
        seed: of the generator.

    Returns:
        (S, K) the draws, and (K,) the standard errors of their means.

    Raises:
        SolverError: the errors are still too large after the last step.

    Source: [neal2003slice] (slices, found by shrinking an interval).
    """
    n = len(matrix)
    if n == 1:
        return np.repeat(combinations.T, 2, axis=0), np.zeros(len(combinations))
    rng = np.random.default_rng(seed)
    seen = counts > 0
    columns = matrix[:, seen]
    observed = counts[seen].astype(float)
    points = _choose_starts(rng, matrix, counts, concentration)
    axes = _whiten_directions(columns, observed, concentration, points.mean(axis=0))
    kept: list[FloatArray] = []
    still = 1e-15 * np.abs(combinations).max(axis=1)  # of a row that frequencies hardly change
    # For each so many letters a point of a chain is one step more from the last that is kept.
    thin = 1 + n // 16
    for step in range(1, max(MAX_STEPS, 2 * BLOCK * thin) + 1):
        between = step % 2 == 0
        if between:
            towards = _draw_letter_directions(rng, n)
        else:
            towards = rng.normal(size=(CHAIN_COUNT, n - 1)) @ axes.T
        points = _slice_sample(rng, points, towards, columns, observed, concentration)
        if step % thin == 0:
            kept.append(points @ combinations.T)
        if step % (BLOCK * thin) or step == BLOCK * thin:
            continue
        late = np.array(kept[len(kept) // 2 :])  # (steps, chains, K)
        spread = late.std(axis=(0, 1))
        means = late.mean(axis=0)
        # chains are independent, their steps are not: the error comes from means of chains
        errors = means.std(axis=0, ddof=1) / np.sqrt(CHAIN_COUNT)
        # Error of each mean, as a share of the posterior's standard deviation, at which sampling ends: as of
        # 400 draws that are independent.
        if (errors <= 0.05 * spread + still).all():
            return late.reshape(-1, late.shape[2]), errors
    raise SolverError(
        f"the posterior was not sampled to a twentieth of its spread in {step} steps: give a workload of "
        "few rows, or take the intervals of `estimate`, which need no sampling"
    )


def _choose_starts(
    rng: np.random.Generator, matrix: FloatArray, counts: IntArray, concentration: FloatArray
) -> FloatArray:
    """Choose (CHAINS, N) dispersed starting points of the Markov chains."""
    wide = rng.dirichlet(np.full(len(matrix), 1.0), CHAIN_COUNT)
    # (CHAINS, M): the law of the output at each start
    law = wide @ matrix
    told = (
        wide * (np.divide(counts, law, out=np.zeros_like(law), where=law > 0) @ matrix.T)
        + concentration
    )
    return np.asarray(np.maximum(told / told.sum(axis=1, keepdims=True), 1e-300))


def _whiten_directions(
    columns: FloatArray, observed: FloatArray, concentration: FloatArray, centre: FloatArray
) -> FloatArray:
    """Compute an (N, N - 1) root of the approximate posterior covariance."""
    law = centre @ columns
    # minus the Hessian of the log-likelihood, sum of c[y] P[:,y] P[:,y]^T / law[y]^2
    precision = (columns * (observed / law**2)) @ columns.T
    precision += np.diag((concentration + 1) / np.maximum(centre, 1e-12))
    across = np.linalg.qr(np.column_stack([np.ones(len(centre)), np.eye(len(centre))[:, 1:]]))[0][
        :, 1:
    ]
    # restricted to directions that sum to 0, in which points stay on the simplex
    sizes, axes = np.linalg.eigh(across.T @ precision @ across)
    return np.asarray(across @ (axes / np.sqrt(np.maximum(sizes, 1e-300))))


def _draw_letter_directions(rng: np.random.Generator, n: int) -> FloatArray:
    """Draw (CHAINS, N) random letter-to-letter directions."""
    chains = np.arange(CHAIN_COUNT)
    one = rng.integers(n, size=CHAIN_COUNT)
    # an offset of 1 to n - 1 never gives the same letter twice
    other = (one + rng.integers(1, n, size=CHAIN_COUNT)) % n
    towards = np.zeros((CHAIN_COUNT, n))
    towards[chains, one] = 1.0
    towards[chains, other] = -1.0
    return towards


def _slice_sample(
    rng: np.random.Generator,
    points: FloatArray,
    towards: FloatArray,
    columns: FloatArray,
    observed: FloatArray,
    concentration: FloatArray,
) -> FloatArray:
    """Update (CHAINS, N) points by slice sampling along lines in the simplex."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # the line leaves the simplex where a coordinate is 0; its sum stays 1
        ratios = -points / towards
    most = np.where(towards < 0, ratios, np.inf).min(axis=1)
    least = np.where(towards > 0, ratios, -np.inf).max(axis=1)
    # along a line the law is linear: no product with the matrix is needed for each trial
    laws = points @ columns
    slopes = towards @ columns

    def log_density_at(at: FloatArray) -> FloatArray:
        moved = points + at[:, None] * towards
        with np.errstate(divide="ignore", invalid="ignore"):
            told = np.log(laws + at[:, None] * slopes) @ observed
            found = told + np.log(moved) @ (concentration - 1)
        return np.where((moved > 0).all(axis=1), found, -np.inf)

    # log of a uniform level below the density: minus an exponential variable
    levels = log_density_at(np.zeros(CHAIN_COUNT)) - rng.exponential(size=CHAIN_COUNT)
    at = np.zeros(CHAIN_COUNT)
    left = np.ones(CHAIN_COUNT, dtype=bool)
    # Halvings, roughly, of a slice before a step is left out.
    for _ in range(60):
        tried = np.where(left, least + (most - least) * rng.random(CHAIN_COUNT), at)
        inside: BoolArray = log_density_at(tried) > levels
        at = np.where(left & inside, tried, at)
        left &= ~inside
        if not left.any():
            break
        # a rejected point becomes an end; 0, the present point, always stays inside
        most = np.where(left & (tried > 0), tried, most)
        least = np.where(left & (tried <= 0), tried, least)
    return points + at[:, None] * towards
