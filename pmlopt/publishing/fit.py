"""Whether a released file can have come from the mechanisms that are said to have made it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pmlopt.core.arrays import FloatArray, Label
from pmlopt.core.labels import counts_at, label_key
from pmlopt.core.roots import smallest_holding
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import InputError, MechanismError
from pmlopt.releases.attributes import through
from pmlopt.releases.joint import check_size

FALSE_ALARMS = 1e-3
"""The p-value below which a release is refused."""

POWER = 0.9
"""The probability with which a share of raw rows that is called detectable is detected."""

_POWER_QUANTILE = 1.2815515655446004
"""The quantile of the standard normal law at `POWER`."""


@dataclass(frozen=True)
class Fit:
    """How well released rows agree with the mechanisms and the law of the letters.

    Attributes:
        rows: how many there are.
        impossible: outcomes among them that cannot occur.
        p_value: an upper bound on that of the count of an outcome that is least likely, of all of them.
        raw_p_value: an upper bound on the p-value of the test against rows that were copied from the data
            in place of being drawn; None where no output is a letter.
        detectable: the share of copied rows that this test finds with probability `POWER`, about; None
            where it would not find all rows copied.
    """

    rows: int
    impossible: tuple[tuple[Label, ...], ...]
    p_value: float
    raw_p_value: float | None
    detectable: float | None

    @property
    def holds(self) -> bool:
        """Whether nothing impossible occurred, and no test refuses it: falsely with probability
        2 `FALSE_ALARMS` at most.
        """
        least = min(self.p_value, 1.0 if self.raw_p_value is None else self.raw_p_value)
        return not self.impossible and least >= FALSE_ALARMS


def fit_of_release(
    mechanisms: Sequence[Mechanism],
    law: FloatArray,
    observed: Mapping[tuple[Label, ...], int],
    *,
    same_people: bool,
) -> Fit:
    """Test whether rows can have been drawn by mechanisms, each row by itself.

    With `q(y) = sum_x law(x) prod_i P_i[x_i, y_i]`, two things are tested. The count of each outcome is
    held against `n q(y)` by Chernoff's bound, for all outcomes at once. The other test is the best one, near
    zero, against a share of rows in which the letters stand undrawn: `T = sum_y n(y) (law(y) / q(y) - 1)`,
    with law(y) the probability of the letters that y spells. Its p-value is bounded by Bennett's inequality
    [boucheron2013concentration, Theorem 2.9]. Both bounds hold for n independent rows at any n.

    Args:
        mechanisms: k of them, (N_i, M_i).
        law: (N_1, ..., N_k) the joint law of the letters.
        observed: how many rows have each outcome, by the labels of the outputs.
        same_people: whether the law is that of the rows' own letters, and not of a population.

    Raises:
        InputError: there is no row, or the law has another shape.
        MechanismError: an outcome is none of the outputs.

    Examples:
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> honest = {("no",): 600, ("yes",): 400}
        >>> fit_of_release([response], np.array([0.7, 0.3]), honest, same_people=True).holds
        True
        >>> other = {("no",): 700, ("yes",): 300}
        >>> fit_of_release([response], np.array([0.7, 0.3]), other, same_people=True).holds
        False
    """
    shape = tuple(len(one.inputs) for one in mechanisms)
    if law.shape != shape:
        raise InputError(f"the law has the shape {law.shape}, and the mechanisms have {shape} inputs")
    rows = sum(observed.values())
    if rows <= 0:
        raise InputError("there is no released row: nothing can be tested")
    check_size(math.prod(max(one.matrix.shape) for one in mechanisms))
    sides = [one.outputs for one in mechanisms]
    counts = counts_at(observed.items(), sides, "the released rows", MechanismError).astype(float)
    matrices = [one.matrix for one in mechanisms]
    expected = through(law, matrices)
    impossible = tuple(
        tuple(one.outputs[k] for one, k in zip(mechanisms, place, strict=True))
        for place in np.argwhere((counts > 0) & (expected <= 0)).tolist()
    )
    raw_p_value, detectable = _against_raw_rows(mechanisms, law, expected, counts, same_people)
    return Fit(rows, impossible, _frequencies(counts, expected, rows), raw_p_value, detectable)


def _frequencies(counts: FloatArray, expected: FloatArray, rows: int) -> float:
    """A bound on the p-value of the count that is least likely, of all outcomes and to both sides.

    A count of independent rows with the mean `rows q` is at least as far from it with a probability of at
    most `exp(-rows KL(count / rows || q))` to either side [boucheron2013concentration, Section 2.2].
    """
    from scipy.special import rel_entr

    share, law = counts / rows, np.minimum(expected, 1.0)
    exponent = rows * (rel_entr(share, law) + rel_entr(1 - share, 1 - law))
    cells = int(((expected > 0) | (counts > 0)).sum())
    return min(1.0, 2 * cells * math.exp(-float(exponent.max())))


def _against_raw_rows(
    mechanisms: Sequence[Mechanism],
    law: FloatArray,
    expected: FloatArray,
    counts: FloatArray,
    same_people: bool,
) -> tuple[float | None, float | None]:
    """The p-value against copied rows, and the share of them that would be found."""
    raw = _spelled(mechanisms, law)
    possible = expected > 0
    if not raw[possible].any():
        return None, None
    weights = np.where(possible, raw / np.where(possible, expected, 1.0) - 1.0, 0.0)
    mean, rows = float((expected * weights).sum()), float(counts.sum())
    if same_people:
        means = through(weights, [one.matrix.T for one in mechanisms])  # of the weight, given the letters
        spread, largest = float((law * means**2).sum()), float(weights.max() - means[law > 0].min())
    else:
        spread, largest = mean**2, float(weights.max()) - mean
    variance = rows * max(float((expected * weights**2).sum()) - spread, 0.0)
    drawn = float((counts * weights).sum()) - rows * mean
    shift = float((raw * weights).sum()) - mean
    p_value = _bennett(drawn, variance, largest)
    if shift <= 0:
        return p_value, None
    refused = smallest_holding(lambda t: _bennett(t, variance, largest) <= FALSE_ALARMS, math.sqrt(variance))
    share = (refused + _POWER_QUANTILE * math.sqrt(variance)) / (rows * shift)
    return p_value, share if share <= 1 else None


def _spelled(mechanisms: Sequence[Mechanism], law: FloatArray) -> FloatArray:
    """The probability of the letters that each outcome spells or reads like; 0 where it is none."""
    spells = []
    for one in mechanisms:
        texts = [str(label) for label in one.inputs]  # as a file of text has them
        at = dict(zip(texts, range(len(texts)), strict=True)) if len(set(texts)) == len(texts) else {}
        keys: dict[Label, int] = {label_key(label): place for place, label in enumerate(one.inputs)}
        same = np.zeros((len(one.inputs), len(one.outputs)))
        for y, label in enumerate(one.outputs):
            place = keys.get(label_key(label), at.get(str(label)))
            if place is not None:
                same[place, y] = 1.0
        spells.append(same)
    return through(law, spells)


def _bennett(excess: float, variance: float, largest: float) -> float:
    """A bound on the probability that a sum exceeds its mean by so much; its terms exceed theirs by at most
    `largest`.
    """
    if excess <= 0:
        return 1.0
    if variance <= 0 or largest <= 0:
        return 0.0
    u = largest * excess / variance
    return math.exp(-variance / largest**2 * ((1 + u) * math.log1p(u) - u))
