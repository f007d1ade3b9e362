"""Generalized linear models whose response or covariates were released."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from pmlopt.core.display import align_cells, format_table_html, import_pandas, pluralize
from pmlopt.core.frames import to_plain_list
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Label, join_words
from pmlopt.data.labelled import read_column
from pmlopt.data.mechanism import MechanismLike
from pmlopt.errors import InputError, PmloptError
from pmlopt.releases.estimation.intervals import check_confidence, normal_quantile
from pmlopt.releases.estimation.model_frames import (
    ModelFrame,
    evaluate_formula,
    find_law_design,
    orthogonalize_columns,
    read_model_frame,
)
from pmlopt.releases.estimation.observed_likelihood import (
    ObservedLikelihood,
    find_flat_directions,
    maximize_observed,
)
from pmlopt.releases.estimation.released_outputs import read_weights
from pmlopt.releases.estimation.responses import (
    CountResponse,
    LetterResponse,
    NormalResponse,
    OrderedResponse,
    Response,
)
from pmlopt.releases.estimation.tables import format_estimates, format_label, name_column

Family: TypeAlias = Literal["logit", "ordered", "linear", "poisson"]


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The coefficients of a regression on released columns.

    Attributes:
        formula, family: of the model.
        letters: of a response of letters, the first of which is the reference; else empty.
        names: of the d coefficients; of a response of three letters or more, pairs of letter and covariate.
        coefficients: (d,) the most likely ones, NaN where the data identify none.
        covariance: (d, d) of them; infinite variances where the data identify none.
        noisy: (d,) the coefficients of the same model if what was released were true, which are biased; NaN
            where outputs are no letters.
        information: (d,) the share of people whose true letters would reveal as much about each coefficient
            as all people's outputs: the ratio of the two variances.
        people: n.
        log_likelihood: of what was released, given the columns in clear.
        confidence: of each interval.
        robust: whether the covariance is the sandwich, which holds for weights and clusters.
        warnings: on coefficients that the data do not identify.
    """

    formula: str
    family: Family
    letters: tuple[Label, ...]
    names: tuple[Label, ...]
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
        return np.asarray(np.sqrt(np.diag(self.covariance)))

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
            "coefficient": self.coefficients, "standard_error": self.standard_errors,
            "lower": ends[:, 0], "upper": ends[:, 1], "noisy": self.noisy,
            "information": self.information,
        }  # fmt: skip

    def to_pandas(self) -> Any:
        """Return a pandas frame of coefficients, standard errors and ends of intervals.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        pandas = import_pandas()
        titled = {name_column(name): column for name, column in self.columns.items()}
        return pandas.DataFrame(titled, index=pandas.Index(list(self.names), tupleize_cols=False))

    @property
    def title(self) -> str:
        """Return a line on the model, its people and its response."""
        if self.family == "ordered":
            what = f", the logits of more than {' | '.join(map(format_label, self.letters))}"
        elif len(self.letters) == 2:
            what = f", the logits of {format_label(self.letters[1])}"
        elif self.letters:
            what = f", logits against {format_label(self.letters[0])}"
        else:
            what = ""
        return f"{self.formula} ({self.family}{what}), {self.people:,} people"

    def format_rows(self) -> tuple[list[str], list[list[str]]]:
        """Format the head and the rows of its table."""
        return format_estimates(self.names, self.columns, self.standard_errors)

    def __str__(self) -> str:
        """Return the coefficients as a table, with the confidence of each interval."""
        head, rows = self.format_rows()
        held = f"; each interval holds with a confidence of about {self.confidence:g}"
        lines = [self.title + held, *align_cells([head, *rows])]
        return "\n".join([*lines, *(f"Warning: {line}" for line in self.warnings)])

    def __repr__(self) -> str:
        """Return the formula and the numbers of coefficients and people in a line."""
        count = pluralize(len(self.names), "coefficient")
        return f"<FittedModel {self.formula!r}: {count}, {self.people:,} people>"

    def _repr_html_(self) -> str:
        """Return the coefficients as a notebook shows them."""
        return format_table_html(self.title, *self.format_rows())


class _Solution(NamedTuple):
    """The coefficients of a fit, in the units of the covariates."""

    coefficients: FloatArray
    covariance: FloatArray
    information: FloatArray
    unidentified: tuple[int, ...]
    log_likelihood: float


def model(
    released: Any,
    formula: str,
    mechanisms: Mapping[str, MechanismLike],
    *,
    family: Family | None = None,
    law: str | None = None,
    weights: Iterable[float] | None = None,
    clusters: Iterable[Label] | None = None,
    robust: bool | None = None,
    confidence: float = 0.95,
) -> FittedModel:
    """Fit a generalized linear model to released columns and columns in clear.

    The response y and covariates x may be released, y as t and x as s; z are the columns in clear. The
    likelihood of a person is `sum_x p[x | z] M[x,s] sum_y P(y | x, z) M[y,t]`. It is maximised over the
    coefficients of `P(y | x, z)` and those of the law `p[x | z]` together; standard errors are those of its
    second derivatives.

    The law of the joint value x is that of multinomial logits in the covariates of the formula that are in
    clear: with none, or one that is categorical, it can be any law. Columns were released independently of
    one another, each through its own mechanism.

    Args:
        released: a frame of any library, or a mapping from names to columns, with a row for each person.
        formula: `response ~ covariates`, as formulaic reads it. It is run as Python code: take none from
            strangers. Letters that are all numbers are numbers in it; `C(name)` makes them categories.
        mechanisms: by name, of the columns that were released.
        family: "logit" of a response of letters (multinomial for more than two), "ordered" of letters in
            their order (proportional odds), "linear", or "poisson"; left out, "logit" of a released response,
            of text, and of 0 and 1, and else "linear".
        law: another formula of columns in clear for the law of the released covariates, such as
            `~ C(region) * age`.
        weights: (n,) how many of the population a person stands for. Standard errors are then robust.
        clusters: (n,) labels of groups within which people may depend on each other. The same.
        robust: whether the covariance is the sandwich (HC0) in any case.
        confidence: of each interval, in (0, 1).

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
    frame = read_model_frame(released, formula, mechanisms)
    people = len(frame.clear)
    chosen, letters, response = _read_response(frame, family)
    worth = np.ones(people) if weights is None else read_weights(weights, people)
    names, designs = frame.build_designs()
    law_design = find_law_design(designs) if law is None else _read_law(law, frame)
    of_law = [f"{place + 1} of the law" for place in range(law_design.shape[1])]
    observed = _Observed(
        response,
        *orthogonalize_columns(names, designs),
        frame.cell_likelihoods,
        orthogonalize_columns(of_law, law_design[None])[0][0],
        worth,
    )
    groups = None if clusters is None else _read_clusters(clusters, people)
    is_robust = weights is not None or clusters is not None if robust is None else bool(robust)
    found = _fit(observed, is_robust, groups)
    labelled = _name_coefficients(chosen, names, letters)
    return FittedModel(
        formula=formula, family=chosen, letters=letters, names=labelled,
        coefficients=found.coefficients, covariance=found.covariance,
        noisy=_fit_noisy(frame, chosen, response, names, worth, len(labelled)), information=found.information,
        people=people, log_likelihood=found.log_likelihood, confidence=share, robust=is_robust,
        warnings=_describe_unidentified(found, labelled),
    )  # fmt: skip


class _Observed(NamedTuple):
    """What a model is fitted to: the parts of `ObservedLikelihood`, and what whitened the covariates."""

    response: Response
    design: FloatArray
    back: FloatArray
    released: FloatArray
    law_design: FloatArray
    weights: FloatArray


def _fit(observed: _Observed, robust: bool, groups: IntArray | None) -> _Solution:
    """Fit a model, and compute its covariance."""
    response, design, back, released, law_design, weights = observed
    chances = released / released.sum(axis=1, keepdims=True)
    mean_design = np.einsum("ix,xid->id", chances, design)
    scaled, unit = response.standardize(mean_design)
    designs = scaled.list_designs(design)
    likelihood = ObservedLikelihood(scaled, designs, released, law_design, weights)
    start = np.zeros(likelihood.parameter_count)
    if released.shape[1] > 1:  # from the fit to the mean covariates, given what was released
        alone = scaled.list_designs(mean_design[None])
        near = ObservedLikelihood(scaled, alone, np.ones((len(weights), 1)), law_design, weights)
        start[: near.parameter_count] = maximize_observed(near, start[: near.parameter_count])
    parameters = maximize_observed(likelihood, start)
    terms, total = likelihood.evaluate(parameters), float(weights.sum())
    flat = find_flat_directions(terms.information / total)
    expected: FloatArray = np.asarray(flat.inverse / total)
    covariance: FloatArray = expected
    if robust:
        scores = terms.scores * weights[:, None]
        if groups is not None:
            scores = np.array([np.bincount(groups, column) for column in scores.T]).T
        covariance = np.asarray(expected @ (scores.T @ scores) @ expected)
    elif isinstance(response, NormalResponse):
        covariance = np.asarray(covariance * (total / (total - design.shape[2])))
    width = likelihood.coefficient_count
    restored = scaled.restore(parameters[:width], back)
    jacobian = unit * restored.jacobian
    complete = find_flat_directions(terms.complete / total).inverse / total
    variances, least = (
        np.einsum("ij,jk,ik->i", jacobian, one[:width, :width], jacobian)
        for one in (expected, complete)
    )
    lost = np.linalg.norm(jacobian @ flat.directions[:width], axis=1) > 1e-6 * np.linalg.norm(
        jacobian, axis=1
    )
    coefficients = np.where(lost, np.nan, unit * restored.values)
    covariance = np.asarray(jacobian @ covariance[:width, :width] @ jacobian.T)
    covariance[lost], covariance[:, lost] = np.nan, np.nan
    covariance[lost, lost] = np.inf
    information = np.divide(least, variances, out=np.zeros(len(lost)), where=~lost)
    return _Solution(
        coefficients, covariance, information, tuple(np.flatnonzero(lost).tolist()),
        terms.value - total * np.log(unit),
    )  # fmt: skip


def _fit_noisy(
    frame: ModelFrame,
    family: Family,
    response: Response,
    names: list[str],
    weights: FloatArray,
    width: int,
) -> FloatArray:
    """Fit the model as if what was released were true; NaN where that has no coefficients."""
    nothing = np.full(width, np.nan)
    if frame.response in frame.released:
        column = frame.released[frame.response]
        letters = column.find_letters()
        if letters is None:
            return nothing
        response = _make_response(family, np.eye(len(column.mechanism.inputs))[letters])
    design = frame.build_noisy_design()
    if design is None:
        return nothing
    ones = np.ones((len(weights), 1))
    try:
        alone = _Observed(response, *orthogonalize_columns(names, design), ones, ones, weights)
        return _fit(alone, robust=False, groups=None).coefficients
    except PmloptError:  # a letter that was not released, for one
        return nothing


def _name_coefficients(
    family: Family, names: list[str], letters: tuple[Label, ...]
) -> tuple[Label, ...]:
    """Return the names of coefficients: of several logits, pairs of a letter and a covariate.

    Raises:
        InputError: the formula of an ordered response has no intercept, which thresholds replace.
    """
    if family == "ordered":
        if names[0] != "Intercept":
            raise InputError(
                "an ordered response has thresholds in place of an intercept: leave '0' and '- 1' out of the "
                "formula"
            )
        ends = map(format_label, letters)
        return (*names[1:], *(f"{low} | {high}" for low, high in pairwise(ends)))
    if len(letters) <= 2:
        return tuple(names)
    return tuple((letter, name) for letter in letters[1:] for name in names)


def _describe_unidentified(found: _Solution, names: tuple[Label, ...]) -> tuple[str, ...]:
    """Return a warning on the coefficients that the data do not identify."""
    if not found.unidentified:
        return ()
    listed = join_words([format_label(names[place]) for place in found.unidentified], 9)
    return (
        f"the data do not identify {listed}: no value is more likely than others. Leave covariates out, or "
        "join values that hardly occur",
    )


def _read_response(
    frame: ModelFrame, family: Family | None
) -> tuple[Family, tuple[Label, ...], Response]:
    """Read the family, the letters and the response of a model."""
    if family not in (None, *get_args(Family)):
        raise InputError(f"the family {family!r} is not known: use {join_words(get_args(Family))}")
    name = frame.response
    if name in frame.released:
        if family in ("linear", "poisson"):
            raise InputError(
                f"the response {name!r} was released as letters: its family is 'logit' or 'ordered', and not "
                f"{family!r}"
            )
        column = frame.released[name]
        chosen = family or "logit"
        return chosen, column.mechanism.inputs, _make_response(chosen, column.likelihoods)
    cells = frame.clear[name]
    is_numeric = cells.dtype.kind in "iufb"
    if family is None:
        is_binary = is_numeric and set(cells.unique()) <= {0, 1}
        family = "linear" if is_numeric and not is_binary else "logit"
    if family in ("logit", "ordered"):
        letters, seen = _read_letters(name, cells)
        return family, letters, _make_response(family, seen)
    if not is_numeric:
        raise InputError(f"the response {name!r} has no numbers, which {family!r} needs")
    return family, (), _read_numbers(name, cells.to_numpy(dtype=float), family)


def _make_response(family: Family, outputs: FloatArray) -> Response:
    """Make a response of letters from the (n, N) probabilities of what was seen."""
    return OrderedResponse(outputs) if family == "ordered" else LetterResponse(outputs)


def _read_letters(name: str, cells: Any) -> tuple[tuple[Label, ...], FloatArray]:
    """Read the letters of a response in clear, in the order of their category or sorted, and (n, N) whose."""
    codes, found = import_pandas().factorize(cells, sort=True)
    letters = tuple(to_plain_list(found))
    most = 50  # logits, each with a coefficient of each covariate
    if not 1 < len(letters) <= most:
        raise InputError(
            f"the response {name!r} has {pluralize(len(letters), 'value')}: logits are of 2 to {most}"
        )
    return letters, np.eye(len(letters))[codes]


def _read_numbers(name: str, numbers: FloatArray, family: Family) -> Response:
    """Read a response in clear of numbers or counts."""
    if not np.isfinite(numbers).all():
        raise InputError(f"the response {name!r} has a value that is no finite number")
    if family == "linear":
        return NormalResponse(numbers)
    if (numbers < 0).any() or (numbers != np.round(numbers)).any() or not numbers.any():
        raise InputError(
            f"the response {name!r} has no counts: whole numbers of at least 0, not all 0"
        )
    return CountResponse(numbers)


def _read_law(law: str, frame: ModelFrame) -> FloatArray:
    """Evaluate the formula of the law of the released covariates."""
    return evaluate_formula(law.strip().removeprefix("~"), frame.clear)[1]


def _read_clusters(clusters: Iterable[Label], people: int) -> Any:
    """Read (n,) numbers of the groups of people."""
    labels = read_column(clusters, "the clusters", InputError)
    if len(labels) != people:
        raise InputError(f"there are {len(labels)} clusters for {people} people: give one for each")
    return np.unique(np.array(list(map(repr, labels))), return_inverse=True)[1]
