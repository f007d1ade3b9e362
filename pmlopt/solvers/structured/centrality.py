"""The correction of complementarity products that are far from the others, for all interior points here.

Source: J. Gondzio, Comput. Optim. Appl. 6 (1996).
"""

from __future__ import annotations

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray


def correct_products(products: FloatArray, target: float | FloatArray) -> FloatArray:
    """Compute what brings products to within a tenth and ten times their target.

    A large product would turn the step: it is lowered by no more than ten times the target.

    Args:
        products: at the end of a step that is longer than the one that is corrected.
        target: of all, or of each.

    Examples:
        >>> correct_products(np.array([0.0, 0.5, 12.0, 50.0]), 1.0)
        array([  0.1,   0. ,  -2. , -10. ])
    """
    change = np.clip(products, 0.1 * target, 10 * target)
    change -= products
    return np.maximum(change, -10 * target, out=change)
