"""Losses for designs whose release is for a regression."""

from __future__ import annotations

from collections.abc import Sequence

from pmlopt.core.numbers.arrays import Label, indices_of
from pmlopt.data.labelled import LabelledArray
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import InputError
from pmlopt.model.utility import EstimationError
from pmlopt.releases.estimation.model_fits import Family, fit_model, read_model
from pmlopt.releases.estimation.tables import format_label


def coefficient_error(
    prior: PriorLike,
    formula: str,
    columns: Sequence[str],
    coefficients: Sequence[Label] | None = None,
    *,
    family: Family | None = None,
) -> EstimationError:
    """Build the loss of a design for coefficients of a regression: n times the sum of their variances.

    The letters are tuples of the columns of the regression, which one mechanism releases together. A
    coefficient is a function of their frequencies, whose derivative at the prior in the letter x is
    `H^-1 s(x)`, with the score s and `H = -E[s']`. By the delta method its variance is that of the sum of
    frequencies with these weights: the design is c-optimal, and a row of `EstimationError`'s workload.

    Args:
        prior: of tuples, the law at which the design is best.
        formula: of the regression, as for `pmlopt.estimation.model`.
        columns: the names of the parts of the tuples.
        coefficients: the names of those that count; left out, all but the intercept.
        family: as for `pmlopt.estimation.model`.

    Raises:
        InputError: the letters are no tuples of the columns, a coefficient is none of the model's, or the law
            does not identify one.
        MissingExtraError: formulaic is not installed.

    Source: [pukelsheim2006optimal].

    Examples:
        >>> from pmlopt import Prior
        >>> pairs = [("no", "f"), ("no", "m"), ("yes", "f"), ("yes", "m")]
        >>> loss = coefficient_error(Prior([0.4, 0.2, 0.2, 0.2], pairs), "ill ~ sex", ["ill", "sex"])
        >>> (loss.workload * [0.4, 0.2, 0.2, 0.2]).round(6).tolist()  # of a log odds ratio: -1 / f or 1 / f
        [[1.0, -1.0, -1.0, 1.0]]
    """
    p = as_prior(prior)
    wrong = [
        label for label in p.labels if not isinstance(label, tuple) or len(label) != len(columns)
    ]
    if wrong:
        raise InputError(
            f"the letter {wrong[0]!r} is no tuple of the {len(columns)} columns: a regression has at least "
            "two, which are released together"
        )
    table = {name: [label[k] for label in p.labels] for k, name in enumerate(columns)}  # type: ignore[index]
    parts = read_model(table, formula, {}, family, weights=p.pmf.tolist())
    names = parts.coefficient_names
    fit = fit_model(parts)
    _, jacobian = fit.restore()
    wanted = [name for name in names if _is_slope(name)] if coefficients is None else coefficients
    places = indices_of(list(wanted), names, "the coefficients", InputError)
    lost = set(fit.find_lost(jacobian)) & set(places)
    if lost or not len(places):
        which = format_label(names[min(lost)]) if lost else "a coefficient"
        raise InputError(f"the law does not identify {which}: no design estimates it")
    slopes = jacobian[places] @ (fit.flat.inverse / fit.total) @ fit.terms.scores[:, parts.places]
    rows = tuple(names[place] for place in places)
    return EstimationError(LabelledArray(slopes, (rows, p.labels), "the workload"))


def _is_slope(name: Label) -> bool:
    """Return whether a coefficient is of a covariate."""
    last = name[-1] if isinstance(name, tuple) else name
    return last != "Intercept" and " | " not in str(last)
