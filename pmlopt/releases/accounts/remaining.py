"""Ledger budgets for mechanisms on several release histories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    FloatArray,
    IntArray,
    Label,
    abbreviate,
    indices_of,
    make_label_key,
)
from pmlopt.data.labelled import read_column
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.model.privacy import PML, RatioBound
from pmlopt.programs.exact.rounding import is_met_exactly
from pmlopt.releases.accounts.ledger_file import HistoryTable, compute_levels, compute_levels_after


def build_joint_requirement(
    prior: Prior, histories: HistoryTable, rows: IntArray, total: float, order: IntArray
) -> RatioBound:
    """Build the requirement that a release keeps the total budget for each of several histories.

    After a history with the likelihoods w, an outcome with the probabilities v of the letters keeps it iff
    `w_x v_x <= e^total sum_x' p_x' w_x' v_x'` for each letter x: a ratio bound. Bounds that others imply are
    left out. The total is lowered by what rounding may add. The requirement states the prior, from whose
    probabilities its weights follow.

    Args:
        prior: on N letters.
        histories: of the ledger.
        rows: the histories of the people in the release.
        total: in nats.
        order: (N,) the places of the letters of the design in the ledger.

    Raises:
        PrivacyError: the leakage on someone is above the total already.
    """
    law = prior.pmf
    lowered = total - 4 * float(histories.rounding_errors(rows, total).max())
    above = float(compute_levels(law, histories.likelihoods[rows]).max())
    if above > lowered:
        raise PrivacyError(
            f"the leakage on a person is {above:.6g} nats by the ledger, and the total is {total:.6g}: "
            "nothing is left to release"
        )
    weights = np.exp(histories.likelihoods[rows])[:, order]
    masses = weights * law[order]
    numerators = []
    denominators = []
    for letter in range(len(order)):
        possible = weights[:, letter] > 0
        if not np.logical_or.reduce(possible):
            continue
        least = _find_minimal_rows(masses[possible] / weights[possible, letter, None])
        numerators.append(np.repeat(np.eye(len(order))[letter : letter + 1], len(least), axis=0))
        denominators.append(least)
    stated = prior.reordered([prior.labels[place] for place in order.tolist()])
    return RatioBound(np.concatenate(numerators), np.concatenate(denominators), lowered, stated)


def _find_minimal_rows(rows: FloatArray) -> FloatArray:
    """Return the distinct minimal rows in the componentwise order."""
    distinct = np.unique(rows, axis=0)
    below = np.logical_and.reduce(distinct[:, None, :] >= distinct[None, :, :], axis=2)
    np.fill_diagonal(below, False)
    return np.asarray(distinct[~np.logical_or.reduce(below, axis=1)])


def find_excess(
    prior: Prior, histories: HistoryTable, total: float, rows: IntArray, matrix: FloatArray
) -> tuple[int, float] | None:
    """Find the history with the largest level after a release, if it exceeds the total.

    What the likelihoods may be off is counted in; no level is above that of the least likely letter.
    """
    after = compute_levels_after(prior.pmf, histories.likelihoods[rows], matrix)
    units = histories.rounding_errors(rows, after)
    bounds = np.minimum(after + units, prior.max_leakage)
    # of people of whom nothing was released yet, exact arithmetic decides what rounding leaves open
    unused = (histories.likelihoods[rows] == 0).all(axis=1)
    undecided = unused & (bounds > total) & (after - units <= total)
    if undecided.any() and is_met_exactly(prior, PML(total), matrix):
        bounds[undecided] = total
    worst = int(bounds.argmax())
    if bounds[worst] <= total:
        return None
    return int(rows[worst]), float(after[worst])


def align_matrix(
    labels: Sequence[Label], histories: HistoryTable, mechanism: Mechanism, rows: IntArray
) -> FloatArray:
    """Align a mechanism's matrix with the ledger's letters; zero rows for excluded ones.

    Raises:
        MechanismError: the mechanism is on other letters.
    """
    inputs = mechanism.inputs
    if isinstance(inputs, DefaultLabels) or (
        isinstance(labels, DefaultLabels) and len(inputs) == len(labels)
    ):
        if len(inputs) != len(labels):
            raise MechanismError(
                f"the mechanism has {len(inputs)} inputs, without labels, and the ledger has "
                f"{len(labels)} letters"
            )
        return mechanism.matrix
    rows_of = {make_label_key(label): row for row, label in enumerate(inputs)}
    found = np.array([rows_of.get(make_label_key(label), -1) for label in labels])
    places = np.flatnonzero(found >= 0)
    missing = np.flatnonzero(found < 0)
    if not len(places):
        raise MechanismError(
            f"the mechanism's inputs {abbreviate(inputs)} are none of the letters of the ledger "
            f"{abbreviate(labels)}"
        )
    needed = missing[(histories.likelihoods[np.ix_(rows, missing)] > -np.inf).any(axis=0)]
    if needed.size:
        raise MechanismError(
            f"the mechanism has no row for the letter {labels[needed[0]]!r}, which is still possible for "
            "a person in the release"
        )
    matrix = np.zeros((len(labels), len(mechanism.outputs)))
    matrix[places] = mechanism.matrix[found[places]]
    return matrix


def find_columns(mechanism: Mechanism, outcomes: Iterable[Label]) -> IntArray:
    """Find the output index of each outcome."""
    if (
        type(outcomes) is np.ndarray and outcomes.dtype.kind in "iu" and outcomes.ndim == 1
        and isinstance(mechanism.outputs, DefaultLabels)
        and ((outcomes >= 0) & (outcomes < len(mechanism.outputs))).all()
    ):  # fmt: skip
        return outcomes.astype(np.int64)
    given = read_column(outcomes, "the outcomes", MechanismError, missing=True)
    return np.array(
        indices_of(given, mechanism.outputs, "the outcomes", MechanismError), dtype=np.int64
    )
