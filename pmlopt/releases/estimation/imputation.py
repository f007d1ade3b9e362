"""Multiple imputation of released columns, and estimates that are pooled over imputations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core.display import align_cells, import_pandas
from pmlopt.core.frames import is_frame, to_narwhals
from pmlopt.core.lazy_imports import special
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Label, Labels, check_integer
from pmlopt.errors import InputError
from pmlopt.releases.estimation.intervals import check_confidence
from pmlopt.releases.estimation.model_fits import (
    Family,
    ModelFit,
    fit_model,
    read_model,
)
from pmlopt.releases.estimation.model_frames import ColumnMechanisms
from pmlopt.releases.estimation.responses import ReleasedResponse
from pmlopt.releases.estimation.tables import format_estimates, make_estimates_frame


def impute(
    released: Any,
    formula: str,
    mechanisms: ColumnMechanisms,
    k: int = 20,
    *,
    family: Family | None = None,
    law: str | None = None,
    weights: Iterable[float] | None = None,
    clusters: Iterable[Label] | None = None,
    seed: int | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> list[Any]:
    """Draw possible true values of released columns, k times, for methods that know no mechanisms.

    Each time, parameters of `pmlopt.estimation.model` are drawn from the normal law about the most likely
    ones, and each person's true values from their posterior at these parameters, given all that the formula
    names of the person. Analyse each of the k frames as if it were true, and combine by `pool`.

    The frames hold guesses by what was released: post-processing, which reveals no more than the release.
    They are no new release of the data and nobody's true values, and single rows mean nothing. What the
    formula leaves out is imputed as unrelated: name every column of the later analysis in it.

    Args:
        released: as for `pmlopt.estimation.model`.
        formula: with the columns of the later analysis.
        mechanisms: as there.
        k: how many frames.
        family: as for `pmlopt.estimation.model`.
        law: as there.
        weights: as there.
        clusters: as there.
        seed: of the draws; left out, fresh ones.
        folder: where to write the frames too, as `imputed-1.csv` to `imputed-k.csv`; it may not exist yet.

    Returns:
        k pandas frames with the rows and columns of what was released, true letters in the released columns
        that the formula names.

    Raises:
        InputError: a column, the formula or k is not as above, or the data do not identify the model.
        SolverError: the likelihood could not be maximised.

    Source: [rubin1987multiple].

    Examples:
        >>> from pmlopt import Mechanism, estimation
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> table = {"ill": ["no"] * 600 + ["yes"] * 400}
        >>> frames = estimation.impute(table, "ill ~ 1", {"ill": response}, k=100, seed=1)
        >>> share = np.mean([(frame["ill"] == "yes").mean() for frame in frames])
        >>> round(float(share), 1)  # the estimate is 0.3
        0.3
    """
    count = check_integer(k, "the number of imputations k", InputError)
    parts = read_model(released, formula, mechanisms, family, law, weights, clusters)
    if not parts.frame.owners:
        raise InputError("the formula names no released column: there is nothing to impute")
    fit = fit_model(parts)
    if fit.find_lost(fit.restore()[1]):
        raise InputError(
            "the data do not identify the model, and impute nothing: see the warnings of `estimation.model`"
        )
    rng = np.random.default_rng(seed)
    covariance = fit.compute_covariance(parts.is_robust)
    points = rng.multivariate_normal(fit.parameters, covariance, count, method="svd")
    whole = _copy_frame(released)
    frames = [whole.assign(**_draw_columns(fit, point, rng)) for point in points]
    if folder is not None:
        _write_frames(Path(folder), frames)
    return frames


def _copy_frame(released: Any) -> Any:
    """Return a pandas frame of all columns."""
    found = to_narwhals(released)
    if found is not None and is_frame(found):
        return found.to_pandas().reset_index(drop=True)
    return import_pandas().DataFrame({str(name): list(column) for name, column in released.items()})


def _draw_columns(
    fit: ModelFit, point: FloatArray, rng: np.random.Generator
) -> dict[str, list[Label]]:
    """Draw the true letters of the released columns from their posterior at (P,) parameters."""
    frame = fit.parts.frame
    rows = fit.parts.places
    cells = draw_places(fit.likelihood.compute_posterior(point).T[rows], rng)
    owners = frame.owners
    found = {name: values[cells] for name, values in frame.cells.items() if name in owners}
    if frame.response in owners and frame.response not in found:
        predictors = fit.likelihood.compute_predictors(point)
        response = fit.likelihood.response
        assert isinstance(response, ReleasedResponse)
        laws = response.compute_posterior(predictors)[:, cells, rows].T
        found[frame.response] = draw_places(laws, rng)
    return {
        name: [owners[name].values[name][letter] for letter in letters]
        for name, letters in found.items()
    }


def draw_places(laws: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw (n,) a place from each of (n, K) laws.

    Examples:
        >>> draw_places(np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(1)).tolist()
        [1, 0]
    """
    ends = laws.cumsum(axis=1)
    return np.asarray((rng.random((len(laws), 1)) * ends[:, -1:] >= ends).sum(axis=1))


def _write_frames(folder: Path, frames: Sequence[Any]) -> None:
    """Write frames as CSV files to a new folder."""
    if folder.exists():
        raise InputError(f"{folder} exists already: give a new folder for the imputed files")
    folder.mkdir(parents=True)
    for place, frame in enumerate(frames, 1):
        frame.to_csv(folder / f"imputed-{place}.csv", index=False)


@dataclass(frozen=True, eq=False)
class PooledEstimates:
    """Estimates that are pooled over imputations.

    Attributes:
        names: of the d estimates.
        estimates: (d,) the means.
        covariance: (d, d) within imputations, and between them with the factor `1 + 1/k`.
        degrees: (d,) of freedom of Student's law, of Barnard and Rubin.
        missing: (d,) the share of the variance that is between imputations.
        confidence: of each interval.
    """

    names: Labels
    estimates: FloatArray
    covariance: FloatArray = field(repr=False)
    degrees: FloatArray
    missing: FloatArray
    confidence: float

    @property
    def standard_errors(self) -> FloatArray:
        """Return the (d,) square roots of the variances."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def intervals(self) -> FloatArray:
        """Return (d, 2) ends of the confidence interval of each estimate."""
        width = special.stdtrit(self.degrees, (1 + self.confidence) / 2) * self.standard_errors
        return np.column_stack([self.estimates - width, self.estimates + width])

    @property
    def columns(self) -> dict[str, FloatArray]:
        """Return the (d,) columns of its table."""
        ends = self.intervals
        return {
            "estimate": self.estimates,
            "standard_error": self.standard_errors,
            "lower": ends[:, 0],
            "upper": ends[:, 1],
            "degrees": self.degrees,
            "missing": self.missing,
        }

    def to_pandas(self) -> Any:
        """Return a pandas frame of the table.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return make_estimates_frame(self.names, self.columns)

    def __str__(self) -> str:
        """Return the table."""
        head, rows = format_estimates(self.names, self.columns, self.standard_errors, True)
        return "\n".join(align_cells([head, *rows]))


def pool(
    fits: Iterable[Any], *, degrees: float | None = None, confidence: float = 0.95
) -> PooledEstimates:
    """Combine the estimates of imputed frames by Rubin's rules.

    Of k estimates q and their covariances U, the pooled ones are the means `q*` and
    `T = U* + (1 + 1/k) B`, where B is the covariance between the k. Intervals have the degrees of freedom
    `1 / (1/v + 1/u)` of Barnard and Rubin, `v = (k - 1) / m^2`, `u = (1 - m) c (c + 1) / (c + 3)`, with
    `m = (1 + 1/k) B / T` and those of complete data c.

    Args:
        fits: k results of statsmodels, or pairs of (d,) estimates and their (d, d) covariance.
        degrees: c; left out, the residual ones of statsmodels' results, and none else (`u` is infinite).
        confidence: of each interval, in (0, 1).

    Raises:
        InputError: there are fewer than two, or they are of different sizes.

    Source: [barnard1999small] (the degrees of freedom), [rubin1987multiple].

    Examples:
        >>> pairs = [([0.9], [[0.04]]), ([1.1], [[0.04]]), ([1.3], [[0.04]])]
        >>> found = pool(pairs)
        >>> round(float(found.estimates[0]), 9), round(float(found.covariance[0, 0]), 9)  # 0.04 + 4/3 0.04
        (1.1, 0.093333333)
    """
    share = check_confidence(confidence)
    every = list(fits)
    if len(every) < 2:
        raise InputError(f"there are {len(every)} estimates to pool: at least 2 are needed")
    read = [_read_fit(one) for one in every]
    names = read[0][0]
    shapes = {(estimates.shape, covariance.shape) for _, estimates, covariance in read}
    size = len(read[0][1])
    if shapes != {((size,), (size, size))} or any(one[0] != names for one in read):
        raise InputError(
            "the fits to pool have not the same coefficients: fit the same model to each, with all letters "
            "as categories"
        )
    points = np.array([one[1] for one in read])
    within = np.array([one[2] for one in read])
    between = np.atleast_2d(np.cov(points, rowvar=False)) * (1 + 1 / len(read))
    covariance = within.mean(axis=0) + between
    missing = np.diag(between) / np.diag(covariance)
    if degrees is None:
        degrees = min(float(getattr(one, "df_resid", np.inf)) for one in every)
    with np.errstate(divide="ignore"):  # imputations that are all alike
        inverse = missing**2 / (len(read) - 1)
        if np.isfinite(degrees):
            inverse = inverse + (degrees + 3) / ((1 - missing) * degrees * (degrees + 1))
        found = 1 / inverse
    return PooledEstimates(names, points.mean(axis=0), covariance, found, missing, share)


def _read_fit(fit: Any) -> tuple[Labels, FloatArray, FloatArray]:
    """Read the names, estimates and covariance of a result of statsmodels, or of a pair."""
    if hasattr(fit, "cov_params"):
        estimates = fit.params
        covariance = fit.cov_params()
    else:
        try:
            estimates, covariance = fit
        except (TypeError, ValueError):
            raise InputError(
                f"a fit to pool is {type(fit).__name__}: give results of statsmodels, or pairs of estimates "
                "and their covariance"
            ) from None
    values = np.asarray(estimates, dtype=float)
    names = list(estimates.index if hasattr(estimates, "iloc") else range(len(values)))
    if values.ndim == 2:  # of several logits, a column each
        columns = getattr(estimates, "columns", range(values.shape[1]))
        names = [(column, name) for column in columns for name in names]
    return tuple(names), values.ravel(order="F"), np.asarray(covariance, dtype=float)
