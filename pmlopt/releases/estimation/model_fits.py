"""Fits of the models of regression formulas to released columns, and what makes them doubtful."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pmlopt.core.display import import_pandas, pluralize
from pmlopt.core.frames import to_plain_list
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Label, Labels, join_words
from pmlopt.data.labelled import read_column
from pmlopt.errors import InputError, PmloptError
from pmlopt.releases.estimation.model_frames import (
    ColumnMechanisms,
    ModelFrame,
    evaluate_formula,
    find_law_design,
    orthogonalize_columns,
    read_model_frame,
)
from pmlopt.releases.estimation.observed_likelihood import (
    FlatDirections,
    LawBranch,
    LikelihoodTerms,
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
from pmlopt.releases.estimation.tables import format_label

Family: TypeAlias = Literal["logit", "ordered", "linear", "poisson"]


@dataclass(frozen=True)
class ModelParts:
    """What a model is fitted to: the parts of `ObservedLikelihood` by the names of a formula.

    Attributes:
        frame: the columns.
        family, letters: of the response.
        names: of the d covariates.
        rows: (r,) a person of each group of people who are alike in all columns.
        places: (n,) the group of each person.
        response: of the groups.
        design: (d, K, r) orthogonal covariates of order one.
        back: (d, d) what coefficients of these are multiplied by.
        law: of the true values of released columns.
        weights: (n,) of the people.
        clusters: (n,) of the people; None where everybody is one.
        is_robust: whether weights or clusters were given.
    """

    frame: ModelFrame
    family: Family
    letters: Labels
    names: tuple[str, ...]
    rows: IntArray
    places: IntArray
    response: Response
    design: FloatArray
    back: FloatArray
    law: tuple[LawBranch, ...]
    weights: FloatArray
    clusters: IntArray | None
    is_robust: bool

    @property
    def coefficient_names(self) -> Labels:
        """Return the names of coefficients: of several logits, pairs of a letter and a covariate.

        Raises:
            InputError: the formula of an ordered response has no intercept, which thresholds replace.
        """
        if self.family == "ordered":
            if self.names[0] != "Intercept":
                raise InputError(
                    "an ordered response has thresholds in place of an intercept: leave '0' and '- 1' out of "
                    "the formula"
                )
            ends = map(format_label, self.letters)
            return (*self.names[1:], *(f"{low} | {high}" for low, high in pairwise(ends)))
        if len(self.letters) <= 2:
            return self.names
        return tuple((letter, name) for letter in self.letters[1:] for name in self.names)


def read_model(
    released: Any,
    formula: str,
    mechanisms: ColumnMechanisms,
    family: Family | None = None,
    law: str | None = None,
    weights: Iterable[float] | None = None,
    clusters: Iterable[Label] | None = None,
    drop_missing: bool = False,
) -> ModelParts:
    """Read the parts of a model, as `pmlopt.estimation.model` takes them.

    Raises:
        InputError: the formula or a column is not as it takes them.
        MechanismError: a released value is no output, or a mechanism reveals nothing.
        PriorError: weights are not as it takes them.
        MissingExtraError: formulaic is not installed.
    """
    frame = read_model_frame(released, formula, mechanisms, law, drop_missing)
    chosen, letters, response = _read_response(frame, family)
    worth = np.ones(len(frame.kept))
    if weights is not None:
        worth = read_weights(weights, frame.row_count)[frame.kept]
    names, designs = frame.build_designs()
    law_design = find_law_design(designs) if frame.law is None else _evaluate_law(frame)
    rows, places = frame.group_people([designs, law_design])
    design, back = orthogonalize_columns(names, designs[..., rows])
    branches = list(_list_branches(frame, law_design, bool(letters)))
    return ModelParts(
        frame,
        chosen,
        letters,
        tuple(names),
        rows,
        places,
        response.take(rows),
        design,
        back,
        tuple(branch.take(rows) for branch in branches),
        worth,
        None if clusters is None else _read_clusters(clusters, frame.row_count)[frame.kept],
        weights is not None or clusters is not None,
    )


@dataclass(frozen=True)
class ModelFit:
    """The most likely parameters of a model.

    Attributes:
        parts: what was fitted.
        likelihood: that they maximise, of a response in its unit.
        unit: of the response.
        back: (d, d) what coefficients are multiplied by.
        parameters: (P,) the most likely ones.
        terms: of the likelihood there.
        flat: the directions in which it does not change.
    """

    parts: ModelParts
    likelihood: ObservedLikelihood
    unit: float
    back: FloatArray
    parameters: FloatArray
    terms: LikelihoodTerms
    flat: FlatDirections

    @property
    def total(self) -> float:
        """Return the sum of the weights."""
        return float(self.likelihood.weights.sum())

    @property
    def log_likelihood(self) -> float:
        """Return that of the response in the unit of its column."""
        return self.terms.value - self.total * float(np.log(self.unit))

    def compute_covariance(self, robust: bool) -> FloatArray:
        """Compute (P, P) of the parameters: from second derivatives, or the sandwich."""
        expected: FloatArray = self.flat.inverse / self.total
        if robust:
            scores = self._sum_scores()
            return expected @ (scores @ scores.T) @ expected
        if isinstance(self.likelihood.response, NormalResponse):
            return expected * (self.total / (self.total - len(self.back)))
        return expected

    def _sum_scores(self) -> FloatArray:
        """Sum (P, G) the weighted scores of clusters."""
        scores: FloatArray = self.terms.scores[:, self.parts.places] * self.parts.weights
        if self.parts.clusters is None:
            return scores
        return np.array([np.bincount(self.parts.clusters, row) for row in scores])

    def restore(self) -> tuple[FloatArray, FloatArray]:
        """Compute (c,) coefficients in the units of columns, and (c, P) their derivatives."""
        width = self.likelihood.coefficient_count
        found = self.likelihood.response.restore(self.parameters[:width], self.back)
        jacobian = np.zeros((len(found.values), len(self.parameters)))
        jacobian[:, :width] = self.unit * found.jacobian
        return self.unit * found.values, jacobian

    def find_lost(self, jacobian: FloatArray) -> tuple[int, ...]:
        """Find the coefficients that the data do not identify."""
        apart = np.linalg.norm(jacobian @ self.flat.directions, axis=1)
        # the logit of a share that is 0 is flat, and a little of each coefficient is left in it
        return tuple(np.flatnonzero(apart > 1e-3 * np.linalg.norm(jacobian, axis=1)).tolist())

    def count_supports(self, jacobian: FloatArray) -> FloatArray:
        """Count (c,) how many people or clusters a robust standard error rests on: `(sum d^2)^2 / sum d^4`.

        d is what each adds to a coefficient. A variance that few make has no normal interval.
        """
        added = jacobian @ (self.flat.inverse / self.total) @ self._sum_scores()
        squares = added**2
        most = squares.max(axis=1, keepdims=True)
        squares /= np.where(most > 0, most, 1.0)
        found = squares.sum(axis=1) ** 2 / np.maximum((squares**2).sum(axis=1), 1e-300)
        return np.asarray(np.where(most[:, 0] > 0, found, squares.shape[1]))

    def find_ridge(self, jacobian: FloatArray) -> tuple[int, ...]:
        """Find the coefficients whose intervals follow a ridge along which the likelihood hardly falls.

        In the direction of the least information, two standard errors away, a normal likelihood is lower by
        2. Where it is lower by less than a half on a side, intervals that derivatives give are too short.
        """
        size = self.flat.least
        direction = self.flat.weakest
        if not size:
            return ()
        step = direction * 2 / np.sqrt(size * self.total)
        falls = [
            self.terms.value - self.likelihood.compute_value(self.parameters + side * step)
            for side in (-1, 1)
        ]
        if min(falls) >= 0.5:
            return ()
        shares = (jacobian @ direction) ** 2 / (size * self.total)
        variances = np.einsum("ij,jk,ik->i", jacobian, self.flat.inverse / self.total, jacobian)
        return tuple(np.flatnonzero(shares > variances / 2).tolist())


def fit_model(parts: ModelParts) -> ModelFit:
    """Find the most likely parameters of a model.

    Raises:
        InputError: the covariates determine the response.
        SolverError: the likelihood could not be maximised.
    """
    released = parts.frame.compute_cell_likelihoods(parts.rows)
    return _fit(parts, parts.response, parts.design, parts.back, released, parts.law)


def _fit(
    parts: ModelParts,
    response: Response,
    design: FloatArray,
    back: FloatArray,
    released: FloatArray,
    law: Sequence[LawBranch],
) -> ModelFit:
    """Find the most likely parameters, from those of the mean covariates given what was released."""
    weights = np.asarray(np.bincount(parts.places, parts.weights), dtype=float)
    chances = released / released.sum(axis=0)
    mean_design = (design * chances).sum(axis=1)
    scaled, unit = response.standardize(mean_design)
    likelihood = ObservedLikelihood(scaled, scaled.list_designs(design), released, law, weights)
    start = np.zeros(likelihood.parameter_count)
    start[: likelihood.coefficient_count] = scaled.find_start(mean_design)
    parameters, terms = maximize_observed(likelihood, start)
    flat = find_flat_directions(terms.information / float(weights.sum()))
    return ModelFit(parts, likelihood, unit, back, parameters, terms, flat)


def fit_noisy(parts: ModelParts) -> FloatArray:
    """Fit the model as if what was released were true; NaN where that has no coefficients."""
    frame = parts.frame
    response = parts.response
    nothing = np.full(len(parts.coefficient_names), np.nan)
    if frame.response in frame.owners:
        letters = frame.owners[frame.response].find_letters(frame.response)
        if letters is None:
            return nothing
        seen = np.eye(len(parts.letters))[:, None, letters[parts.rows]]
        response = _make_response(parts.family, seen)
    noisy = frame.build_noisy_design()
    if noisy is None:
        return nothing
    ones = np.ones((1, len(parts.rows)))
    try:
        design, back = orthogonalize_columns(parts.names, noisy[..., parts.rows])
        fit = _fit(parts, response, design, back, ones, ())
    except PmloptError:  # a letter that was not released, for one
        return nothing
    coefficients, jacobian = fit.restore()
    coefficients[list(fit.find_lost(jacobian))] = np.nan
    return coefficients


def _read_response(frame: ModelFrame, family: Family | None) -> tuple[Family, Labels, Response]:
    """Read the family, the letters and the response of a model."""
    if family not in (None, *get_args(Family)):
        raise InputError(f"the family {family!r} is not known: use {join_words(get_args(Family))}")
    name = frame.response
    if name in frame.owners:
        if family in ("linear", "poisson"):
            raise InputError(
                f"the response {name!r} was released as letters: its family is 'logit' or 'ordered', and not "
                f"{family!r}"
            )
        chosen = family or "logit"
        return (
            chosen,
            frame.owners[name].values[name],
            _make_response(chosen, frame.response_outputs),
        )
    cells = frame.clear[name]
    is_numeric = cells.dtype.kind in "iufb"
    if family is None:
        is_binary = is_numeric and set(cells.unique()) <= {0, 1}
        family = "linear" if is_numeric and not is_binary else "logit"
    if family == "ordered" and not is_numeric and not getattr(cells.dtype, "ordered", False):
        raise InputError(
            f"the values of the response {name!r} have no order: make it an ordered categorical of pandas, "
            "or numbers"
        )
    if family in ("logit", "ordered"):
        letters, seen = _read_letters(name, cells)
        return family, letters, _make_response(family, seen)
    if not is_numeric:
        raise InputError(f"the response {name!r} has no numbers, which {family!r} needs")
    return family, (), _read_numbers(name, cells.to_numpy(dtype=float), family)


def _make_response(family: Family, outputs: FloatArray) -> Response:
    """Make a response of letters from the probabilities of what was seen, by the true letter."""
    return OrderedResponse(outputs) if family == "ordered" else LetterResponse(outputs)


def _read_letters(name: str, cells: Any) -> tuple[Labels, FloatArray]:
    """Read the letters of a response in clear, as their categories are or sorted, and (N, 1, n) whose."""
    codes, found = import_pandas().factorize(cells, sort=True)
    letters = tuple(to_plain_list(found))
    most = 50  # logits, each with a coefficient of each covariate
    if not 1 < len(letters) <= most:
        raise InputError(
            f"the response {name!r} has {pluralize(len(letters), 'value')}: logits are of 2 to {most}"
        )
    return letters, np.eye(len(letters))[:, None, codes]


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


def _evaluate_law(frame: ModelFrame) -> FloatArray:
    """Evaluate (g, n) the formula of the law of the released covariates."""
    names, design = evaluate_formula(frame.law, frame.clear)
    orthogonalize_columns([f"{name} of the law" for name in names], design[:, None])
    return design


def _list_branches(frame: ModelFrame, design: FloatArray, has_letters: bool) -> Iterator[LawBranch]:
    """Yield the factors of the law of true values, given (g, n) covariates in clear.

    They are that of the released covariates, and given them and the response, those of columns that the
    formula leaves out, which were released together with others.
    """
    of_covariates = frame.number_cells(frame.covariate_names)
    if of_covariates.any():
        yield LawBranch(of_covariates, _orthogonalize_law(design))
    of_formula = frame.number_cells((*frame.covariate_names, frame.response))
    if len(of_formula) == of_formula.max() + 1:
        return
    if frame.response not in frame.cells:
        name = f"C(`{frame.response}`)" if has_letters else f"`{frame.response}`"
        design = np.vstack([design, evaluate_formula(name, frame.clear)[1][1:]])
    whole = _orthogonalize_law(design)
    for group in range(of_formula.max() + 1):
        members = of_formula == group
        if members.sum() > 1:
            yield LawBranch(np.where(members, members.cumsum() - 1, -1), whole)


def _orthogonalize_law(design: FloatArray) -> FloatArray:
    """Return (g, n) orthogonal covariates of a law."""
    names = [f"{place + 1} of the law" for place in range(len(design))]
    return orthogonalize_columns(names, design[:, None])[0][:, 0]


def _read_clusters(clusters: Iterable[Label], people: int) -> Any:
    """Read (n,) numbers of the clusters of people."""
    labels = read_column(clusters, "the clusters", InputError)
    if len(labels) != people:
        raise InputError(f"there are {len(labels)} clusters for {people} people: give one for each")
    return np.unique(np.array(list(map(repr, labels))), return_inverse=True)[1]
