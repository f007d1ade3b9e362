"""Explanations of matrices and labels that do not fit, as the ends of messages."""

from __future__ import annotations

import numpy as np

from pmlopt.core.near_labels import describe_difference
from pmlopt.core.numbers.arrays import DefaultLabels, FloatArray, Labels, make_label_key


def explain_sums(matrix: FloatArray) -> str:
    """Explain row sums that differ from one, from row and column sums."""
    # only a hint in a message: nothing is transposed or divided here
    down = matrix.sum(axis=0)
    across = matrix.sum(axis=1)
    for total, written in ((1.0, ""), (100.0, "in percent")):
        near = 1e-2 * total
        if total > 1 and np.abs(across - total).max() <= near:
            return "the numbers are percentages: divide all of them by 100"
        if np.abs(down - total).max() <= near:
            also = f", {written}: divide all of them by 100, too" if written else ""
            return (
                "the matrix is transposed, for each column sums to "
                f"{total:g}: give a row for each input and a column for each output{also}"
            )
    return "divide each row by its sum if rounding explains it"


def explain_sizes(labels: Labels, inputs: Labels) -> str:
    """Describe letters that are on one side only; empty text for none."""
    if isinstance(labels, DefaultLabels) or isinstance(inputs, DefaultLabels):
        return ""
    sides = (
        (
            (labels, inputs, "not among the inputs"),
            "give the mechanism a row for each letter of the prior",
        ),
        (
            (inputs, labels, "not among the letters of the prior"),
            "give its number, or leave out the row of a letter that nobody has",
        ),
    )
    for (side, other, words), remedy in sides:
        known = set(map(make_label_key, other))
        alone = [label for label in side if make_label_key(label) not in known]
        if alone:
            named = ", ".join(map(repr, alone[:5]))
            close = describe_difference(alone[:1], other)
            return f": {named} {words}{close}; {remedy}"
    return ""
