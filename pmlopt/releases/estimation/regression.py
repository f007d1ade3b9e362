"""Generalized linear models whose response or covariates were released."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pmlopt.core.display import (
    align_cells,
    format_table_html,
    format_table_latex,
    pluralize,
)
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Label, Labels, join_words
from pmlopt.releases.estimation.intervals import check_confidence, normal_quantile
from pmlopt.releases.estimation.model_fits import (
    Family,
    ModelFit,
    fit_model,
    fit_noisy,
    read_model,
)
from pmlopt.releases.estimation.model_frames import ColumnMechanisms
from pmlopt.releases.estimation.observed_likelihood import find_flat_directions
from pmlopt.releases.estimation.tables import (
    format_estimates,
    format_label,
    make_estimates_frame,
)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The coefficients of a regression on released columns.

    Attributes:
        formula, family: of the model.
        letters: of a response of letters, the first of which is the reference; else empty.
        names: of the d coefficients; of a response of three letters or more, pairs of letter and covariate.
        coefficients: (d,) the most likely ones, NaN where the data identify none.
        covariance: (d, d) of them; infinite variances where the data identify none.
        noisy: (d,) the coefficients of the same model if what was released were true, which are biased.
            Outputs with names of their own are taken for the letters that make them likeliest; NaN where one
            is likeliest for several.
        information: (d,) the share of people whose true letters would reveal as much about each coefficient
            as all people's outputs: the ratio of the two variances.
        people: n.
        log_likelihood: of what was released, given the columns in clear.
        confidence: of each interval.
        robust: whether the covariance is the sandwich, which holds for weights and clusters.
        warnings: on coefficients that are not identified, whose standard errors rest on few people, or whose
            likelihood has a flat ridge.
    """

    formula: str
    family: Family
    letters: Labels
    names: Labels
    coefficients: FloatArray
    covariance: FloatArray = field(repr=False)
    noisy: FloatArray = field(repr=False)
    information: FloatArray = field(repr=False)
    people: int
    log_likelihood: float
    confidence: float
    robust: bool
    warnings: tuple[str, ...]

    @property
    def standard_errors(self) -> FloatArray:
        """Return the (d,) square roots of the variances."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def intervals(self) -> FloatArray:
        """Return (d, 2) ends of the normal confidence interval of each coefficient."""
        width = normal_quantile(self.confidence, 1) * self.standard_errors
        centre = np.nan_to_num(self.coefficients)
        return np.column_stack([centre - width, centre + width])

    @cached_property
    def columns(self) -> dict[str, FloatArray]:
        """Return the (d,) columns of its table."""
        ends = self.intervals
        return {
            "coefficient": self.coefficients,
            "standard_error": self.standard_errors,
            "lower": ends[:, 0],
            "upper": ends[:, 1],
            "noisy": self.noisy,
            "information": self.information,
        }

    def to_pandas(self) -> Any:
        """Return a pandas frame of coefficients, standard errors and ends of intervals.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return make_estimates_frame(self.names, self.columns)

    def to_latex(self) -> str:
        r"""Return its table for LaTeX, for the package booktabs.

        Examples:
            >>> import pmlopt
            >>> response = pmlopt.Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
            >>> found = model({"ill": ["no"] * 60 + ["yes"] * 40}, "ill ~ 1", {"ill": response})
            >>> print(found.to_latex().splitlines()[4])
            Intercept & -0.85 & 0.47 & -1.77 & 0.07 & -0.41 & 0.22 \\
        """
        return format_table_latex(*self.format_rows())

    @property
    def title(self) -> str:
        """Return a line on the model, its people and its response."""
        if self.family == "ordered":
            what = f", the log odds of later ones of {', '.join(map(format_label, self.letters))}"
        elif len(self.letters) == 2:
            what = f", the logits of {format_label(self.letters[1])}"
        elif self.letters:
            what = f", logits against {format_label(self.letters[0])}"
        else:
            what = ""
        return f"{self.formula} ({self.family}{what}), {self._describe_people()}"

    def _describe_people(self) -> str:
        """Describe how many there are."""
        return f"{self.people:,} people" if self.people > 1 else "1 person"

    def describe_confidence(self) -> str:
        """Describe what each interval holds with."""
        return f"Each interval holds with a confidence of about {self.confidence:g}."

    def format_rows(self) -> tuple[list[str], list[list[str]]]:
        """Format the head and the rows of its table."""
        return format_estimates(self.names, self.columns, self.standard_errors, units=True)

    def __str__(self) -> str:
        """Return the coefficients as a table, with the confidence of each interval."""
        head, rows = self.format_rows()
        lines = [self.title, self.describe_confidence(), *align_cells([head, *rows])]
        return "\n".join([*lines, *(f"Warning: {line}" for line in self.warnings)])

    def __repr__(self) -> str:
        """Return the formula and the numbers of coefficients and people in a line."""
        count = pluralize(len(self.names), "coefficient")
        return f"<FittedModel {self.formula!r}: {count}, {self._describe_people()}>"

    def _repr_html_(self) -> str:
        """Return the coefficients as a notebook shows them."""
        return format_table_html(self.title, *self.format_rows())


def model(
    released: Any,
    formula: str,
    mechanisms: ColumnMechanisms,
    *,
    family: Family | None = None,
    law: str | None = None,
    weights: Iterable[float] | None = None,
    clusters: Iterable[Label] | None = None,
    robust: bool | None = None,
    confidence: float = 0.95,
    drop_missing: bool = False,
) -> FittedModel:
    """Fit a generalized linear model to released columns and columns in clear.

    The response y and covariates x may be released, y as t and x as s; z are the columns in clear. The
    likelihood of a person is `sum_x p[x | z] M[x,s] sum_y P(y | x, z) M[y,t]`. It is maximised over the
    coefficients of `P(y | x, z)` and those of the law `p[x | z]` together; standard errors are those of its
    second derivatives.

    The law of the joint value x is that of multinomial logits in the covariates of the formula that are in
    clear: with none, or one that is categorical, it can be any law. Mechanisms are independent of one
    another. One on tuples releases several columns: y may be one of them, and M is that of the tuple. Tuples
    that are no letters are nobody's. Columns of it that the formula leaves out have a law of their own for
    each (x, y), logits in z.

    Args:
        released: a frame of any library, or a mapping from names to columns, with a row for each person.
        formula: `response ~ covariates`, as formulaic reads it. It is run as Python code: take none from
            strangers. Letters that are all numbers are numbers in it; `C(name)` makes them categories.
        mechanisms: by name of the columns that were released, or where one released several, by the tuple
            of their names. Outputs that are no tuples are in a column named with `+` between.
        family: "logit" of a response of letters (multinomial for more than two), "ordered" of letters in
            their order (proportional odds), "linear", or "poisson"; left out, "logit" of a released response,
            of text, and of 0 and 1, and else "linear".
        law: another formula of columns in clear for the law of the released covariates, such as
            `~ C(region) * age`; they may be others than those of the formula.
        weights: (n,) how many of the population a person stands for. Standard errors are then robust.
        clusters: (n,) labels of groups within which people may depend on each other. The same.
        robust: whether the covariance is the sandwich (HC0) in any case.
        confidence: of each interval, in (0, 1).
        drop_missing: whether rows with missing cells in the columns of the formula are left out; else they
            are refused. Weights and clusters are of all rows.

    Raises:
        InputError: the formula or a column is not as above.
        MechanismError: a released value is no output, or a mechanism reveals nothing.
        PriorError: weights are not as above.
        SolverError: the likelihood could not be maximised.
        MissingExtraError: formulaic is not installed.

    Source: [louis1982finding].

    Examples:
        >>> from pmlopt import Mechanism, estimation
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> table = {"ill": ["no"] * 60 + ["yes"] * 40}
        >>> found = estimation.model(table, "ill ~ 1", {"ill": response})
        >>> share = 1 / (1 + np.exp(-found.coefficients[0]))
        >>> round(float(share), 9)  # (0.4 - 0.25) / 0.5
        0.3
    """
    share = check_confidence(confidence)
    parts = read_model(released, formula, mechanisms, family, law, weights, clusters, drop_missing)
    names = parts.coefficient_names
    fit = fit_model(parts)
    coefficients, jacobian = fit.restore()
    is_robust = parts.is_robust if robust is None else bool(robust)
    lost = np.array(fit.find_lost(jacobian), dtype=int)
    covariance = jacobian @ fit.compute_covariance(is_robust) @ jacobian.T
    coefficients[lost] = np.nan
    covariance[lost] = np.nan
    covariance[:, lost] = np.nan
    covariance[lost, lost] = np.inf
    return FittedModel(
        formula=formula,
        family=parts.family,
        letters=parts.letters,
        names=names,
        coefficients=coefficients,
        covariance=covariance,
        noisy=fit_noisy(parts),
        information=_compute_information(fit, jacobian, lost),
        people=len(parts.weights),
        log_likelihood=fit.log_likelihood,
        confidence=share,
        robust=is_robust,
        warnings=tuple(_describe_doubts(fit, jacobian, is_robust)),
    )


def _compute_information(fit: ModelFit, jacobian: FloatArray, lost: IntArray) -> FloatArray:
    """Compute (c,) the variances of coefficients if true letters were seen, as shares of the present ones."""
    seen = fit.likelihood.compute_complete(fit.parameters)
    complete = find_flat_directions(seen / fit.total).inverse
    least = np.einsum("ij,jk,ik->i", jacobian, complete, jacobian)
    variances = np.einsum("ij,jk,ik->i", jacobian, fit.flat.inverse, jacobian)
    found = least / np.where(variances > 0, variances, 1.0)
    found[lost] = 0.0
    return np.asarray(found)


def _describe_doubts(fit: ModelFit, jacobian: FloatArray, is_robust: bool) -> Iterator[str]:
    """Yield warnings on coefficients that are not identified, rest on few people, or follow a ridge."""
    names = fit.parts.coefficient_names
    for column in fit.parts.frame.confused_columns:
        yield (
            f"the mechanism of {column!r} does not distinguish every letter from mixtures of others: "
            "coefficients may rest on the form of the model alone. Join such letters"
        )

    def list_names(places: Iterable[Any]) -> str:
        return join_words([format_label(names[place]) for place in places], 9)

    lost = fit.find_lost(jacobian)
    if lost:
        yield (
            f"the data do not identify {list_names(lost)}: no value is more likely than others, or no finite "
            "one. Leave covariates out, or join values that hardly occur"
        )
    if ridge := [place for place in fit.find_ridge(jacobian) if place not in lost]:
        yield (
            f"the likelihood has a flat ridge along {list_names(ridge)}: two standard errors away it is "
            "hardly lower, and the intervals are too short. Leave covariates out, or join values that "
            "hardly occur"
        )
    if is_robust:
        counts = fit.count_supports(jacobian)
        few = [place for place in np.flatnonzero(counts < 20) if place not in lost]
        if few:
            least = min(few, key=lambda place: counts[place])
            what = "people" if fit.parts.clusters is None else "clusters"
            yield (
                f"the standard error of {list_names(few)} rests on few {what}, of {list_names([least])} on "
                f"about {counts[least]:.0f}: it is unstable. Trim the largest weights, or join values"
            )
