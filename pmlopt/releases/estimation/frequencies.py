"""Frequencies of the inputs from the outputs that were released, with their errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from pmlopt.core.display import align_cells, format_table_html, pluralize
from pmlopt.core.numbers.argument_checks import check_choice
from pmlopt.core.numbers.arrays import (
    FloatArray,
    IntArray,
    Label,
    Labels,
    check_positive,
)
from pmlopt.core.numbers.concave import Local, maximize_over_laws
from pmlopt.data.labelled import LabelledArray, Numbers, read_vector
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.errors import InputError, MechanismError, PriorError, SolverError
from pmlopt.measures.estimable import Estimable as Estimable
from pmlopt.measures.estimable import estimable as estimable
from pmlopt.model.utility.estimation_error import Workload, build_workload_rows
from pmlopt.releases.estimation.intervals import (
    GoodnessOfFit,
    Intervals,
    check_confidence,
    check_counts,
    compute_bernstein_width,
    compute_exact_intervals,
    compute_moments,
    compute_score_ends,
    compute_unbiased_weights,
    compute_wald_ends,
    goodness_of_fit,
    normal_quantile,
)
from pmlopt.releases.estimation.people import describe_vague_shares
from pmlopt.releases.estimation.posterior import FrequencyPosterior, draw_posterior
from pmlopt.releases.estimation.released_outputs import (
    check_distinguishable,
    find_outputs,
    match_output_labels,
    read_weights,
)
from pmlopt.releases.estimation.tables import format_estimates, make_estimates_frame

Counts: TypeAlias = Numbers | LabelledArray


def count_outputs(
    mechanism: Mechanism, counts: Counts | None, released: Iterable[Label] | None = None
) -> IntArray:
    """Count (M,) how often each output was released.

    Args:
        mechanism: with M outputs.
        counts: a mapping from output to count, a pandas Series with its index, a table of two columns, or the
            path of a file of one, where outputs that were not seen may be missing; or M counts in a list.
        released: the released column in place of the counts: one output for each person. A frame of several
            columns has the parts of outputs that are tuples.

    Raises:
        PriorError: a count is negative or not a whole number, or there are no people.
        MechanismError: an output is none of the mechanism's or cannot occur, there are not M counts, or
            outputs have no labels that distinguish them from the letters.
        InputError: there are both counts and a column, or neither.
    """
    if (counts is None) == (released is None):
        raise InputError("give the counts of the outputs or the released column: one of the two")
    if released is not None:
        places = find_outputs(mechanism, released)
        seen = check_counts(np.bincount(places, minlength=len(mechanism.outputs)), 1)
    else:
        found = read_vector(counts, "the counts", MechanismError)
        known = mechanism
        if found.axes[0] is not None:
            known = match_output_labels(mechanism, found.axes[0])
            check_distinguishable(known)
        given = found.reorder_axis(0, known.outputs, MechanismError, absent=0)
        seen = check_counts(given.values, 1)
    for place in np.flatnonzero((seen > 0) & ~mechanism.support):
        raise MechanismError(
            f"the output {mechanism.outputs[place]!r} was released {seen[place]} times, and the mechanism "
            "never emits it: these counts are of another mechanism"
        )
    return seen


def maximize_likelihood(matrix: FloatArray, counts: FloatArray) -> FloatArray:
    """Maximise the likelihood `sum_y counts[y] log (f P)[y]` over frequencies f.

    With the shares w = counts / n, f is optimal iff no `g[x] = sum_y P[x,y] w[y] / (f P)[y]` is above one.

    Raises:
        SolverError: no frequencies were found that are within 1e-12 of it, for each person.

    Examples:
        >>> maximize_likelihood(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([60.0, 40.0])).round(9)
        array([0.7, 0.3])
    """
    # How far from the largest mean log-likelihood frequencies may be that are taken for the maximum.
    optimality = 1e-12
    seen = counts > 0
    columns = matrix[:, seen]
    shares = counts[seen] / counts.sum()

    def evaluate_with_gradient(f: FloatArray) -> Local:
        law = f @ columns
        return (
            float(shares @ np.log(law)),
            columns @ (shares / law),
            (columns * (shares / law**2)) @ columns.T,
        )

    f, reached, bound = maximize_over_laws(evaluate_with_gradient, len(matrix), optimality)
    if bound - reached > optimality:
        raise SolverError(
            "the likelihood was not maximised: use the linear method, and report these counts"
        )
    return f


Estimator = Literal["ml", "linear"]

REFUSED, DOUBTFUL = 1e-6, 1e-3
"""The p-values of the test of fit below which counts are refused, and below which a warning is given."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Frequencies of the inputs, or combinations of them, estimated from counts of outputs.

    Attributes:
        letters: the K inputs, or the names of the rows of the workload, such as "<= 3" or "2..5".
        origins: (K,) a number that was taken off each row of the workload, so that no digits are lost to it.
        values: (K,) the estimates W f less the origins.
        covariance: (K, K) of the estimates.
        people: n.
        effective: as many people drawn alike reveal as much: n, and of a weighted sample less (Kish).
        total: n, or what the weights add up to.
        confidence: with which `intervals` hold together.
        method, kind: of the estimates and of the intervals.
        log_likelihood: of the most likely frequencies of the inputs, `sum_y c[y] log (f P)[y]`.
        fit: the test whether the counts can come from the mechanism.
    """

    letters: Labels
    origins: FloatArray
    values: FloatArray
    covariance: FloatArray
    people: int
    effective: float
    total: float
    confidence: float
    method: Estimator
    kind: Intervals
    log_likelihood: float
    fit: GoodnessOfFit
    mechanism: Mechanism = field(repr=False)
    counts: IntArray | FloatArray = field(repr=False)
    combinations: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    law: FloatArray = field(repr=False)
    expected: FloatArray | None = field(repr=False)

    @property
    def frequencies(self) -> FloatArray:
        """Return the (K,) estimates W f."""
        return self.origins + self.values

    @property
    def standard_errors(self) -> FloatArray:
        """Return the (K,) square roots of the variances."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def totals(self) -> FloatArray:
        """Return the (K,) estimates scaled to numbers of people."""
        return self.total * self.frequencies

    @property
    def columns(self) -> dict[str, FloatArray]:
        """Return the (K,) columns of its table: estimates, standard errors and ends of intervals."""
        ends = self.intervals
        return {
            "estimate": self.frequencies,
            "standard_error": self.standard_errors,
            "lower": ends[:, 0],
            "upper": ends[:, 1],
        }

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Return what makes the estimates useless: shares that are below their standard errors."""
        vague = describe_vague_shares(
            self.mechanism,
            self.origins[:, None] + self.combinations,
            self.letters,
            self.columns,
            self.confidence,
            self.kind,
            self.people / self.effective,
        )
        return (vague,) if vague else ()

    def describe_confidence(self, confidence: float | None = None) -> str:
        """Return the confidence of the intervals, with "about" where it is approximate.

        Args:
            confidence: with which those of several estimates hold together; left out, of this one.
        """
        share = self.confidence if confidence is None else confidence
        return f"{'about ' if self.kind in ('score', 'wald') else ''}{share:g}"

    @cached_property
    def intervals(self) -> FloatArray:
        """Return (K, 2) simultaneous confidence intervals."""
        return self.confidence_interval(simultaneous=True)

    def confidence_interval(
        self,
        confidence: float | None = None,
        *,
        simultaneous: bool = False,
        kind: Intervals | None = None,
    ) -> FloatArray:
        """Compute (K, 2) confidence intervals, clipped to feasible values.

        Args:
            confidence: that of each interval, or of all at once; left out, that of the estimate.
            simultaneous: whether all are to hold at once (Bonferroni). The exact ones always do.
            kind: as `estimate` takes it; left out, that of the estimate.

        Raises:
            InputError: the confidence is outside (0, 1), or the kind is unknown.

        Examples:
            >>> response = [[0.75, 0.25], [0.25, 0.75]]
            >>> estimate(response, [60, 40]).confidence_interval(0.9).round(2)[0].tolist()
            [0.54, 0.85]
        """
        share = self.confidence if confidence is None else check_confidence(confidence)
        ends = self._interval_ends(
            share,
            len(self.combinations) if simultaneous else 1,
            _check_interval_kind(kind or self.kind),
        )
        least = self.combinations.min(axis=1)
        most = self.combinations.max(axis=1)
        return self.origins[:, None] + np.clip(ends, least[:, None], most[:, None])

    def _interval_ends(self, confidence: float, count: int, kind: Intervals) -> FloatArray:
        """Compute the unclipped interval ends of one kind, relative to the origin."""
        matrix = self.mechanism.matrix
        n = self.effective
        if kind in ("bernstein", "exact"):
            self._check_unweighted(f"the intervals {kind!r}")
        quantile = normal_quantile(confidence, count)
        shares = self.counts / n
        if kind == "wald":
            return compute_wald_ends(self.values, n * np.diag(self.covariance), n, quantile)
        if kind == "score":
            values = self.weights @ shares
            means, variances, skews = compute_moments(self.weights, self.law)
            # the variance if t were the mean, `variance + skew (t - mean) - (t - mean)^2`, from the values
            apart = values - means
            near = np.maximum(variances + skews * apart - apart**2, 0.0)
            return compute_score_ends(values, near, skews - 2 * apart, n, quantile)
        if kind == "exact":
            return compute_exact_intervals(
                matrix, self.counts.astype(np.int64), self.combinations, self.weights, confidence
            )
        # weights that the counts have no part in
        law = matrix.mean(axis=0) if self.expected is None else self.expected @ matrix
        fixed = compute_unbiased_weights(matrix, self.combinations, law)
        values, variances, _ = compute_moments(fixed, shares)
        span = np.ptp(fixed[:, self.mechanism.support], axis=1)
        width = compute_bernstein_width(
            variances * n / max(n - 1, 1), span, self.people, (1 - confidence) / count
        )
        return np.column_stack([values - width, values + width])

    def _check_unweighted(self, what: str) -> None:
        """Raise an error for weighted people, for whom the guarantee does not hold."""
        if self.effective != self.people:
            raise InputError(
                f"{what} are for people who are drawn alike: of a weighted sample take 'score'"
            )

    def posterior(
        self, prior: PriorLike | None = None, people: float | None = None, *, seed: int = 0
    ) -> FrequencyPosterior:
        """Compute the Bayesian posterior of the frequencies under a Dirichlet prior.

        Its weights are `people` times the prior's frequencies: it counts as much as that many people who
        revealed the truth. The means are sampled, to a twentieth of the posterior's spread (`error`).

        Args:
            prior: the frequencies that are expected; left out, even ones.
            people: how many people the prior is worth, above 0; left out, half the number of letters, which
                with even frequencies is the law of Jeffreys for data in clear.
            seed: of the sampling; the same seed gives the same answer.

        Raises:
            MechanismError: the prior has other letters.
            InputError: the number of people is not positive.
            SolverError: the sampling did not become precise.

        Source: [gelman2013bayesian, Section 3.4] (the Dirichlet law of frequencies).

        Examples:
            >>> clear = estimate(np.eye(2), [7, 3])
            >>> found = clear.posterior(people=2)  # uniform: the mean is (7 + 1) / (10 + 2)
            >>> bool(abs(found.mean[0] - 8 / 12) <= 4 * found.error[0])
            True
        """
        self._check_unweighted("posteriors")
        known = Prior.uniform(len(self.mechanism.inputs), self.mechanism.inputs)
        p = pair_with_prior(known if prior is None else prior, self.mechanism)[0].pmf
        own = len(p) / 2 if people is None else people
        worth = check_positive(own, "the number of people that the prior is worth", InputError)
        draws, error = draw_posterior(
            self.mechanism.matrix, self.counts.astype(np.int64), worth * p, self.combinations, seed
        )
        mean = self.origins + draws.mean(axis=0)
        deviations = draws.std(axis=0)
        shifted = self.origins + draws
        return FrequencyPosterior(
            self.letters, mean, deviations, error, worth * p, self.confidence, shifted
        )

    def summary(self) -> Any:
        """Return a pandas frame of estimates, standard errors and interval ends.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return make_estimates_frame(self.letters, self.columns)

    def __str__(self) -> str:
        """Return the estimates as a table, with the confidence of their intervals."""
        held = f"all intervals hold at once with a confidence of {self.describe_confidence()}"
        head, rows = self._format_rows()
        lines = [f"{self.people:,} released values; {held}", *align_cells([head, *rows])]
        return "\n".join([*lines, *(f"Warning: {line}" for line in self.warnings)])

    def __repr__(self) -> str:
        """Return the numbers of estimates and people in a line."""
        return f"<Estimate of {pluralize(len(self.letters), 'number')} from {self.people:,} released values>"

    def _repr_html_(self) -> str:
        """Return the estimates as a notebook shows them."""
        return format_table_html(
            f"Estimates from {self.people:,} released values", *self._format_rows()
        )

    def _format_rows(self) -> tuple[list[str], list[list[str]]]:
        """Format the head and the rows of its table."""
        return format_estimates(self.letters, self.columns, self.standard_errors)


def estimate(
    mechanism: MechanismLike,
    counts: Counts | None = None,
    method: Estimator = "ml",
    confidence: float = 0.95,
    *,
    released: Iterable[Label] | None = None,
    weights: Iterable[float] | None = None,
    workload: Workload = None,
    intervals: Intervals = "score",
    expected: PriorLike | None = None,
    min_p_value: float = REFUSED,
) -> Estimate:
    """Estimate the frequencies of the inputs of a mechanism from the outputs that it released.

    n people have inputs drawn independently from frequencies f, and each releases one output Y of law
    `q = f P`, on its own.

    - "ml" maximises the likelihood `sum_y c[y] log (f P)[y]` over f >= 0, sum f = 1. Its covariance is
      `W (J^-1 - f f') W' / n` with the Fisher information `J = P diag(1/q) P'`.
    - "linear" is `V c / n` with weights that make it unbiased for every f, `V P' = W`, and best where f is
      uniform. Its covariance is `V (diag q - q q') V' / n`. Estimates may be negative.

    Covariances are taken at a law to which half a person was added: of each input ("ml"), of each output that
    can occur ("linear"), so that what was not seen is not claimed to be certain.

    Args:
        mechanism: (N, M).
        counts: of the outputs: a mapping from output to count, a pandas Series with its index (as of
            `value_counts`), a table of two columns, output and count, or M counts in a list.
        method: "ml" or "linear".
        confidence: with which `intervals` hold all true values at once, in (0, 1).
        released: the released column in place of the counts, one output for each person.
        weights: with `released`, how many of the population a person stands for, by position. Errors, and the
            test of fit, are then of `(sum w)^2 / sum w^2` people, which is about right where weights have
            nothing to do with the answers [kish1965survey].
        workload: what is estimated: a (K, N) matrix W of combinations W f, a frame with the letters in its
            columns, or the name of one, such as "prefix" or "mean" (`pmlopt.utility.workload_matrix`); left
            out, the N frequencies.
        intervals: "score", which hold with about the confidence, also where a frequency is near zero;
            "bernstein", which hold for any number of people; "exact", which do so too, for few outputs and
            few people (Clopper-Pearson and duality); or "wald".
        expected: frequencies that are expected: those at which the weights of the intervals "bernstein" are
            best. They hold whatever the frequencies are.
        min_p_value: counts are refused if the p-value of the test of fit is lower; 0 never refuses.

    Raises:
        MechanismError: the mechanism's rank does not allow what is requested, and the message states what it
            allows; an output is unknown; or no frequencies agree with the counts.
        PriorError: a count or weight is negative, a count is not a whole number, or there are no people.
        UtilityError: the workload does not fit the letters.
        InputError: the confidence is outside (0, 1), or an option is unknown.

    Warns:
        UserWarning: the p-value of the test of fit is below 1e-3, and `min_p_value` is not 0.

    Source: [ye2018optimal] (frequencies from a privatised sample).

    Examples:
        >>> from pmlopt import Mechanism, estimate
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> found = estimate(response, {"no": 600, "yes": 400})
        >>> found.frequencies.round(9), found.standard_errors.round(4)
        (array([0.7, 0.3]), array([0.031, 0.031]))
        >>> estimate(response, released=["no", "no", "yes"], method="linear").frequencies.round(9)
        array([0.83333333, 0.16666667])
        >>> estimate([[0.5, 0.5], [0.5, 0.5]], [6, 4])
        Traceback (most recent call last):
        ...
        pmlopt.errors.MechanismError: the mechanism has rank 1 for 2 letters: row 0 of what is asked for
        cannot be estimated from its output, which determines the frequency of no single letter;
        `estimable(mechanism)` lists what it determines. To estimate all, release with a mechanism for the
        utility estimation-error
    """
    m = as_mechanism(mechanism)
    share = check_confidence(confidence)
    if method not in get_args(Estimator):
        raise InputError(f"the method {method!r} is not known: use 'ml' or 'linear'")
    rows = build_workload_rows(workload, m.inputs)
    origins, combinations = rows.split()
    likely = None if expected is None else pair_with_prior(expected, m)[0].pmf
    if weights is not None and released is not None:
        released = list(released)
    seen: IntArray | FloatArray = count_outputs(m, counts, released)
    estimable(m).check(combinations)
    number = int(seen.sum())
    people = float(number)
    total = float(number)
    if weights is not None:
        seen, people, total = _count_weighted(m, released, weights)
    f = maximize_likelihood(m.matrix, seen.astype(float))
    fit = goodness_of_fit(m.matrix, seen, f)
    _check_fit(fit, min_p_value)
    if method == "ml":
        law = (people * f + 0.5) / (people + len(f) / 2) @ m.matrix
        weights = compute_unbiased_weights(m.matrix, combinations, law)
        values = combinations @ f
    else:
        law = seen + 0.5 * (m.matrix.max(axis=0) > 0)
        law /= law.sum()
        weights = compute_unbiased_weights(m.matrix, combinations, m.matrix.mean(axis=0))
        values = weights @ seen / people
    occurred = seen > 0
    centred = weights - (weights @ law)[:, None]
    return Estimate(
        letters=rows.names,
        origins=origins,
        values=values,
        covariance=(centred * law) @ centred.T / people,
        people=number,
        effective=people,
        total=total,
        confidence=share,
        method=method,
        kind=_check_interval_kind(intervals),
        log_likelihood=float(seen[occurred] @ np.log((f @ m.matrix)[occurred])),
        fit=fit,
        mechanism=m,
        counts=seen,
        combinations=combinations,
        weights=weights,
        law=law,
        expected=likely,
    )


def _count_weighted(
    mechanism: Mechanism, released: Iterable[Label] | None, weights: Iterable[float]
) -> tuple[FloatArray, float, float]:
    """Compute (M,) weighted counts, the effective sample size, and the total weight."""
    if released is None:
        raise InputError(
            "weights are of people: give the released column by `released`, not the counts"
        )
    places = find_outputs(mechanism, released)
    each = read_weights(weights, len(places))
    # in the unit of the largest one, whose square is in the range of floats
    unit = float(each.max())
    relative = each / unit
    total = float(relative.sum())
    if not np.isfinite(unit * total):
        raise PriorError(f"the weights, up to {unit:g}, sum to no float: divide them by {unit:.0e}")
    people = total**2 / float(relative @ relative)
    shares = np.bincount(places, weights=relative, minlength=len(mechanism.outputs)) / total
    return shares * people, people, unit * total


def _check_interval_kind(kind: str) -> Intervals:
    """Validate the name of an interval kind."""
    check_choice(kind, get_args(Intervals), "the kind of intervals", InputError)
    return cast("Intervals", kind)


def _check_fit(fit: GoodnessOfFit, least: float) -> None:
    """Raise an error, or warn, for counts that fit no (or hardly any) frequencies."""
    chance = f"p = {fit.p_value:.2g}" if fit.p_value > 0 else "p < 1e-300"
    if fit.p_value < least:
        raise MechanismError(
            f"no frequencies agree with these counts ({chance}): are they of what this mechanism released, "
            "with its outputs in the right order? With min_p_value=0 (--min-p-value 0) they are estimated "
            "anyway"
        )
    if least > 0 and fit.p_value < DOUBTFUL:
        warnings.warn(
            f"hardly any frequencies agree with these counts ({chance}): see whether they are of what this "
            "mechanism released",
            stacklevel=3,
        )
