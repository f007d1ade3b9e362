"""What an output tells of one record, and how uncertain the dataset is, from the law of (X_i, T)."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.measures.information import mutual_information


def record_information(joint: FloatArray, rows: FloatArray) -> float:
    """The mutual information of a record and the output, I(X_i; Y), in nats.

    (X_i, T) has the law J, and Y given T = t the row W[t].

    Args:
        joint: (A, T) J.
        rows: (T, M) W.

    Examples:
        >>> import math
        >>> round(math.exp(record_information(np.eye(2) / 2, np.eye(2))), 12)
        2.0
    """
    letters = joint.sum(axis=1)
    used = letters > 0
    laws = joint[used] @ rows / letters[used, None]
    return mutual_information(letters[used] / letters.sum(), laws / laws.sum(axis=1, keepdims=True))


def dataset_entropy(joint: FloatArray, log_counts: FloatArray) -> float:
    """The entropy H(X) = H(J) + sum_{a,t} J log c of a dataset uniform inside each cell (a, t), in nats.

    It is the most that a dataset's entropy can be for this law of (X_i, T).

    Args:
        joint: (A, T) J, zero where a cell is empty.
        log_counts: (A, T) log c; -inf for an empty cell.

    Examples:
        >>> import math
        >>> round(math.exp(dataset_entropy(np.full((2, 2), 0.25), np.log([[4.0, 4.0], [4.0, 4.0]]))), 9)
        16.0
    """
    used = joint > 0
    return float(joint[used] @ (log_counts[used] - np.log(joint[used])))


def uniform_alone(entropy: float, log_size: float) -> bool:
    """Whether an entropy b leaves the uniform dataset alone: log |X|, up to what one float can say of it.

    Examples:
        >>> uniform_alone(np.log(16), np.log(16)), uniform_alone(np.log(16) - 1e-14, np.log(16))
        (True, False)
    """
    return bool(log_size - entropy <= 4 * np.spacing(log_size))


def negative_entropies(laws: FloatArray) -> FloatArray:
    """The negative entropy sum_y v[y] log v[y] of each row v, (K,) in nats.

    Examples:
        >>> negative_entropies(np.array([[1.0, 0.0], [0.5, 0.5]])).round(6).tolist()
        [0.0, -0.693147]
    """
    return np.asarray((laws * np.log(np.where(laws > 0, laws, 1.0))).sum(axis=-1))
