"""The joint leakage of several attributes of one person, each released by its own mechanism."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pmlopt.core.frames import to_narwhals
from pmlopt.core.numbers.arrays import (
    SUM_ATOL,
    FloatArray,
    Labels,
    check_unmasked,
    copy_float_array,
)
from pmlopt.core.numbers.counts import build_count_array
from pmlopt.data.labelled import read_labelled_table as labelled
from pmlopt.data.mechanism import Mechanism, MechanismLike
from pmlopt.data.secret import Secret
from pmlopt.errors import MechanismError, PriorError
from pmlopt.measures.leakage import check_mechanism_letters, leakage_level
from pmlopt.releases.accounts.joint import MAX_PRODUCT_ENTRIES, check_mechanisms


@dataclass(frozen=True)
class AttributeLevels:
    """The leakage levels of jointly released attributes.

    Attributes:
        together: the level about all attributes at once, in nats.
        each: (k,) the level of all releases about each attribute, in nats.
        alone: (k,) the level of the release of each attribute separately, about that attribute, in nats.
        outcome: the outputs that leak most about the tuple.
        witness: the tuple of letters that they point at.
    """

    together: float
    each: tuple[float, ...]
    alone: tuple[float, ...]
    outcome: Labels
    witness: Labels


def attribute_levels(
    joint: ArrayLike | Mapping[Labels, int], mechanisms: Iterable[MechanismLike]
) -> AttributeLevels:
    """Compute the leakage levels of released dependent attributes: about their tuple, and each one.

    About the tuple `max log prod_i P_i[x_i, y_i] / P(y)` over the tuples x of positive probability, and about
    attribute i `max log(P(y | x_i) / P(y))`, with `P(y) = sum_x p(x) prod_i P_i[x_i, y_i]`.

    Args:
        joint: the joint law, an array with an axis for each attribute, of counts or of probabilities; or, by
            the labels of the mechanisms, a mapping from the tuple of letters to its count, or a crosstab of
            two attributes.
        mechanisms: one for each attribute, (N_i, M_i).

    Raises:
        PriorError: the joint law is not one, or a letter never occurs.
        MechanismError: a mechanism is on other letters, or there are too many outcomes to list
            (`pmlopt.releases.accounts.joint.MAX_PRODUCT_ENTRIES`).

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> levels = attribute_levels([[4, 1], [1, 4]], [response, response])
        >>> [round(math.exp(level), 12) for level in (levels.together, *levels.each, *levels.alone)]
        [2.647058823529, 1.695652173913, 1.695652173913, 1.5, 1.5]
    """
    parts = check_mechanisms(mechanisms)
    law = _check_joint_law(joint, parts)
    shape = tuple(len(part.inputs) for part in parts)
    if law.shape != shape:
        raise MechanismError(
            f"the joint law has the shape {law.shape}, and the mechanisms have {shape} inputs: give an axis "
            "for each mechanism, in their order"
        )
    outcomes = math.prod(len(part.outputs) for part in parts)
    # one mechanism is in memory already
    if len(parts) > 1 and outcomes * max(law.shape) > MAX_PRODUCT_ENTRIES:
        raise MechanismError(f"there are {outcomes} outcomes: give fewer attributes or outputs")
    # Pairs of tuples of letters that occur and of outcomes that are looked at: some ten seconds.
    if int((law > 0).sum()) * outcomes > 2_000_000_000:
        raise MechanismError(
            f"there are {int((law > 0).sum()):,} tuples of letters and {outcomes:,} outcomes: give fewer "
            "attributes or outputs"
        )
    matrices = [part.matrix for part in parts]
    everything = apply_channels(law, matrices)
    each = [_compute_level_about(law, matrices, axis, everything) for axis in range(len(parts))]
    alone = [
        leakage_level(compute_marginal(law, axis), matrix) for axis, matrix in enumerate(matrices)
    ]
    level, outcome, witness = _compute_level_about_tuple(law, matrices, everything)
    return AttributeLevels(
        level,
        tuple(each),
        tuple(alone),
        tuple(part.outputs[y] for part, y in zip(parts, outcome, strict=True)),
        tuple(part.inputs[x] for part, x in zip(parts, witness, strict=True)),
    )


def _check_joint_law(joint: Any, parts: list[Mechanism]) -> FloatArray:
    """Validate a joint law with one axis per mechanism."""
    if isinstance(joint, Mapping):
        sides = [part.inputs for part in parts]
        table: FloatArray = build_count_array(
            joint.items(), sides, "the joint law", MechanismError, float
        )
    elif to_narwhals(joint) is not None:
        found = labelled(joint, "the joint law", MechanismError)
        for axis, part in enumerate(parts[:2]):
            found = found.reorder_axis(axis, part.inputs, MechanismError, absent=0)
        table = copy_float_array(found.values, 2, "the joint law", PriorError)
    else:
        check_unmasked(joint, "the joint law", PriorError)
        try:
            table = np.array(joint, dtype=float)
        except (TypeError, ValueError) as cause:
            raise PriorError(f"the joint law must be numbers in a regular array: {cause}") from None
    if table.ndim == 0 or not np.isfinite(table).all() or (table < 0).any() or not table.sum() > 0:
        raise PriorError("the joint law must have finite entries of at least 0, and one above it")
    total = table.sum()
    if abs(total - 1) > SUM_ATOL and (table != np.floor(table)).any():
        raise PriorError(
            f"the joint law sums to {total:.12g}, not to 1: divide it by that, or give counts"
        )
    for axis in range(table.ndim):
        empty = np.flatnonzero(compute_marginal(table, axis) == 0)
        if empty.size:
            raise PriorError(
                f"letter {int(empty[0])} of attribute {axis} never occurs: leave it out"
            )
    return np.asarray(table / total)


def compute_marginal(law: NDArray[Any], axis: int) -> NDArray[Any]:
    """Marginalize a joint law to one axis."""
    return np.asarray(law.sum(axis=tuple(other for other in range(law.ndim) if other != axis)))


def apply_channels(
    law: FloatArray, matrices: Sequence[FloatArray], axes: Iterable[int] | None = None
) -> FloatArray:
    """Push a joint law through the channels of some or all attributes."""
    for axis in range(law.ndim) if axes is None else axes:
        law = np.moveaxis(np.tensordot(law, matrices[axis], axes=(axis, 0)), -1, axis)
    return law


def _compute_level_about(
    law: FloatArray, matrices: list[FloatArray], axis: int, everything: FloatArray
) -> float:
    """Compute the leakage level of all releases about one attribute."""
    others = [other for other in range(law.ndim) if other != axis]
    if not others:  # nothing else is released
        occurs = everything > 0
        peaks = matrices[axis].max(axis=0)[occurs]
        return max(0.0, float(np.log((peaks / everything[occurs]).max(initial=1.0))))
    given = np.moveaxis(apply_channels(law, matrices, others), axis, 0)
    given = given / compute_marginal(law, axis).reshape(-1, *[1] * len(others))
    below = np.moveaxis(everything, axis, 0)
    best = 0.0
    for y in range(below.shape[0]):
        column = matrices[axis][:, y].reshape(-1, *[1] * len(others))
        occurring = below[y] > 0
        ratios = (given * column).max(axis=0)[occurring] / below[y][occurring]
        best = max(best, float(np.log(ratios.max(initial=1.0))))
    return best


def _compute_level_about_tuple(
    law: FloatArray, matrices: list[FloatArray], everything: FloatArray
) -> tuple[float, tuple[int, ...], tuple[int, ...]]:
    """Compute the leakage level about the tuple, with the outcome and letters that attain it."""
    best = -1.0
    where = np.zeros(law.ndim, dtype=int)
    witness = np.zeros(law.ndim, dtype=int)
    occurring = everything > 0
    for letters in np.argwhere(law > 0):
        product = np.ones(())
        for matrix, letter in zip(matrices, letters, strict=True):
            product = np.multiply.outer(product, matrix[letter])
        ratios = np.divide(product, everything, out=np.zeros_like(product), where=occurring)
        if ratios.max() > best:
            best = float(ratios.max())
            witness = letters
            where = np.array(np.unravel_index(int(ratios.argmax()), ratios.shape))
    return max(0.0, math.log(best)), tuple(where.tolist()), tuple(witness.tolist())


def level_with_clear_column(joint: Secret | ArrayLike, mechanism: MechanismLike) -> float:
    """Compute the leakage about X of a release of X together with a column Z in clear, in nats.

    `max log(P(y, z | x) / P(y, z)) = max log(p(z, x) P[x,y] / (p(x) sum_x' p(z, x') P[x',y]))`. It is at
    least the level of the mechanism where Z reveals nothing, and `level_in_clear` where the mechanism does.

    Args:
        joint: the joint law of (Z, X), (S, N) probabilities or counts, or a `Secret`, whose values are those
            of the column in clear; of several laws the worst counts.
        mechanism: (N, M).

    Raises:
        PriorError: the joint law is none.
        MechanismError: the mechanism is on other letters.

    Examples:
        >>> import math
        >>> counts = [[30, 10], [10, 50]]  # a column that depends on the secret, in clear
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(level_with_clear_column(counts, response)), 12)
        2.25
        >>> nothing = [[1.0], [1.0]]
        >>> (
        ...     round(math.exp(level_with_clear_column(counts, nothing)), 12),
        ...     round(math.exp(level_in_clear(counts)), 12),
        ... )
        (1.875, 1.875)
    """
    secret = _to_secret(joint)
    m = check_mechanism_letters(secret, mechanism)
    columns = m.matrix[:, m.support]
    best = 0.0
    for law in secret.joint:
        marginal = law.sum(axis=0)
        for row in law:  # a value of the column in clear
            masses = row @ columns
            occurring = masses > 0
            peaks = ((row / marginal)[:, None] * columns).max(axis=0)
            best = max(best, float((peaks[occurring] / masses[occurring]).max(initial=0.0)))
    return max(0.0, float(np.log(best)))


def level_in_clear(joint: Secret | ArrayLike) -> float:
    """Compute the leakage `max log p(x | z) / p(x)` about X of a column Z in clear, in nats.

    Args:
        joint: as for `level_with_clear_column`.

    Examples:
        >>> import math
        >>> round(math.exp(level_in_clear([[30, 10], [10, 50]])), 12)  # (30/40) / (40/100)
        1.875
    """
    secret = _to_secret(joint)
    return level_with_clear_column(secret, np.ones((secret.prior.size, 1)))


def _to_secret(joint: Secret | ArrayLike) -> Secret:
    """Convert a joint law or count table to a `Secret`."""
    if isinstance(joint, Secret):
        return joint
    check_unmasked(joint, "the joint law", PriorError)
    try:
        total = float(np.sum(np.asarray(joint, dtype=float)))
    except (TypeError, ValueError):
        total = 1.0  # whatever it is, the error of the law explains it
    return Secret(joint) if abs(total - 1) <= SUM_ATOL else Secret.from_counts(joint)
