"""Letters so rare that sums of floats lose their probabilities."""

from __future__ import annotations

from pmlopt.core.numbers.arrays import FloatArray


def has_rare_values(probabilities: FloatArray) -> bool:
    """Return whether sums of floats lose half of the digits of some of the (N,) probabilities; not of 0."""
    return bool(((probabilities > 0) & (probabilities < 1e-9)).any())
