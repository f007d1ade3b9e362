"""Statistical tests that released rows can come from the mechanisms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pmlopt.core.lazy_imports import special
from pmlopt.core.numbers.arrays import FloatArray, Label, Labels, bound_sum_rounding, make_label_key
from pmlopt.core.numbers.counts import build_count_array
from pmlopt.core.numbers.roots import find_min_holding
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import InputError, MechanismError
from pmlopt.releases.accounts.attributes import apply_channels
from pmlopt.releases.accounts.joint import check_product_size

FALSE_ALARM_PROBABILITY = 1e-3
"""The p-value below which a release is refused."""

MIN_TEST_POWER = 0.9
"""The probability with which a share of raw rows that is called detectable is detected."""


@dataclass(frozen=True)
class FitTest:
    """The fit of released rows to mechanisms and letter law.

    Attributes:
        rows: how many there are.
        impossible: outcomes among them that cannot occur.
        p_value: an upper bound on that of the count of an outcome that is least likely, of all of them.
        raw_p_value: an upper bound on the p-value of the test against rows that were copied from the data
            in place of being drawn; None where no output is a letter.
        detectable: the share of copied rows that this test finds with probability `MIN_TEST_POWER`, about;
            None where it would not find all rows copied.
    """

    rows: int
    impossible: tuple[Labels, ...]
    p_value: float
    raw_p_value: float | None
    detectable: float | None

    @property
    def holds(self) -> bool:
        """Return whether no test rejects; each error is at most 2 `FALSE_ALARM_PROBABILITY`."""
        least = min(self.p_value, 1.0 if self.raw_p_value is None else self.raw_p_value)
        return not self.impossible and least >= FALSE_ALARM_PROBABILITY


def assess_release_fit(
    mechanisms: Sequence[Mechanism],
    law: FloatArray,
    observed: Mapping[Labels, int],
    *,
    same_people: bool,
    distance: float = 0.0,
) -> FitTest:
    """Test whether rows can be independent draws of the mechanisms.

    With `q(y) = sum_x law(x) prod_i P_i[x_i, y_i]`, two things are tested. The count of each outcome is
    compared with `n q(y)` by Chernoff's bound, for all outcomes at once. The other test is the best one, near
    zero, against a share of rows in which the letters stand undrawn: `T = sum_y n(y) (law(y) / q(y) - 1)`,
    with law(y) the probability of the letters that y spells. Its p-value is bounded by Bennett's inequality
    [boucheron2013concentration, Theorem 2.9]. Both bounds hold for n independent rows at any n.

    Args:
        mechanisms: k of them, (N_i, M_i).
        law: (N_1, ..., N_k) the joint law of the letters.
        observed: how many rows have each outcome, by the labels of the outputs.
        same_people: whether the law is that of the rows' own letters, and not of a population.
        distance: with it, a bound on the total variation distance between the law and the exact shares of the
            rows' letters, where the law is rounded.

    Raises:
        InputError: there is no row, or the law has another shape.
        MechanismError: an outcome is none of the outputs.

    Examples:
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> honest = {("no",): 600, ("yes",): 400}
        >>> assess_release_fit([response], np.array([0.7, 0.3]), honest, same_people=True).holds
        True
        >>> other = {("no",): 700, ("yes",): 300}
        >>> assess_release_fit([response], np.array([0.7, 0.3]), other, same_people=True).holds
        False
    """
    shape = tuple(len(one.inputs) for one in mechanisms)
    if law.shape != shape:
        raise InputError(
            f"the law has the shape {law.shape}, and the mechanisms have {shape} inputs"
        )
    rows = sum(observed.values())
    if rows <= 0:
        raise InputError("there is no released row: nothing can be tested")
    check_product_size(math.prod(max(one.matrix.shape) for one in mechanisms))
    sides = [one.outputs for one in mechanisms]
    counts = build_count_array(observed.items(), sides, "the released rows", MechanismError).astype(
        float
    )
    matrices = [one.matrix for one in mechanisms]
    expected = apply_channels(law, matrices)
    impossible = tuple(
        tuple(one.outputs[k] for one, k in zip(mechanisms, place, strict=True))
        for place in np.argwhere((counts > 0) & (expected <= 0)).tolist()
    )
    raw_p_value, detectable = _test_against_raw_rows(
        mechanisms, law, expected, counts, same_people, distance
    )
    lower, upper = _bound_outcome_probabilities(matrices, expected, distance)
    return FitTest(
        rows, impossible, _bound_frequencies(counts, lower, upper, rows), raw_p_value, detectable
    )


def _bound_outcome_probabilities(
    matrices: Sequence[FloatArray], expected: FloatArray, distance: float
) -> tuple[FloatArray, FloatArray]:
    """Bound outcome probabilities over all laws within a total variation distance.

    Moving a mass t of letters changes the mean of `P(y | x)` by t (max - min) at most, and never beyond its
    largest and smallest value.
    """
    most = np.ones(())
    least = np.ones(())
    for matrix in matrices:
        most = np.multiply.outer(most, matrix.max(axis=0))
        least = np.multiply.outer(least, matrix.min(axis=0))
    change = distance * (most - least)
    return np.maximum(expected - change, least), np.minimum(expected + change, most)


def _bound_frequencies(
    counts: FloatArray, lower: FloatArray, upper: FloatArray, rows: int
) -> float:
    """Bound the two-sided p-value of the least likely outcome count.

    A count of independent rows with the mean `rows q` is at least as far from it with a probability of at
    most `exp(-rows KL(count / rows || q))` to either side [boucheron2013concentration, Section 2.2]. Of the
    means between the bounds the nearest one counts.
    """
    share = counts / rows
    law = np.minimum(np.clip(share, lower, upper), 1.0)
    exponent = rows * (special.rel_entr(share, law) + special.rel_entr(1 - share, 1 - law))
    cells = int(((upper > 0) | (counts > 0)).sum())
    return min(1.0, 2 * cells * math.exp(-float(exponent.max())))


def _test_against_raw_rows(
    mechanisms: Sequence[Mechanism],
    law: FloatArray,
    expected: FloatArray,
    counts: FloatArray,
    same_people: bool,
    distance: float,
) -> tuple[float | None, float | None]:
    """Compute the p-value against the hypothesis of unreleased (copied) rows, and the test's power."""
    raw = _compute_copy_probabilities(mechanisms, law)
    possible = expected > 0
    if not raw[possible].any():
        return None, None
    weights = np.where(possible, raw / np.where(possible, expected, 1.0) - 1.0, 0.0)
    mean = float((expected * weights).sum())
    rows = float(counts.sum())
    offset = 0.0  # of the mean of the weight, for the law is rounded
    if same_people:
        transposed = [one.matrix.T for one in mechanisms]
        means = apply_channels(weights, transposed)  # of the weight, given the letters
        # its variance, given the letters
        own = np.maximum(apply_channels(weights**2, transposed) - means**2, 0.0)
        occurring = law > 0
        offset = rows * distance * float(np.ptp(means[occurring]))
        largest = float(weights.max() - means[occurring].min())
        variance = rows * float((law * own).sum() + distance * own[occurring].max())
    else:
        largest = float(weights.max()) - mean
        variance = rows * max(float((expected * weights**2).sum()) - mean**2, 0.0)
    # of a mechanism that is a function of the letters nothing varies, and rounding is all that is left
    offset += bound_sum_rounding(counts.size, 2 * rows * float(np.abs(weights).max()))
    drawn = float((counts * weights).sum()) - rows * mean - offset
    shift = float((raw * weights).sum()) - mean
    p_value = _bound_by_bennett(drawn, variance, largest)
    if shift <= 0:
        return p_value, None
    refused = find_min_holding(
        lambda t: _bound_by_bennett(t, variance, largest) <= FALSE_ALARM_PROBABILITY,
        math.sqrt(variance),
    )
    # The quantile of the standard normal law at `MIN_TEST_POWER`.
    share = (refused + 2 * offset + 1.2815515655446004 * math.sqrt(variance)) / (rows * shift)
    return p_value, share if share <= 1 else None


def _compute_copy_probabilities(mechanisms: Sequence[Mechanism], law: FloatArray) -> FloatArray:
    """Return each outcome's probability as a letter of the same spelling."""
    for axis, one in enumerate(mechanisms):
        texts = [str(label) for label in one.inputs]  # as a file of text has them
        at = dict(zip(texts, range(len(texts)), strict=True))
        if len(at) < len(texts):
            at = {}
        keys: dict[Label, int] = {
            make_label_key(label): place for place, label in enumerate(one.inputs)
        }
        places = np.array(
            [keys.get(make_label_key(label), at.get(str(label), -1)) for label in one.outputs]
        )
        shape = [-1 if other == axis else 1 for other in range(law.ndim)]
        law = np.take(law, np.maximum(places, 0), axis=axis) * (places >= 0).reshape(shape)
    return law


def _bound_by_bennett(excess: float, variance: float, largest: float) -> float:
    """Compute Bennett's bound on the probability that a sum exceeds its mean."""
    if excess <= 0:
        return 1.0
    if variance <= 0 or largest <= 0:
        return 0.0
    u = largest * excess / variance
    return math.exp(-variance / largest**2 * ((1 + u) * math.log1p(u) - u))
