"""Packages that take long to load, each loaded when something of it is first used.

`import pmlopt` and small designs need none of them; a module that does names them at its top like any other.

Examples:
    >>> from pmlopt.core.lazy_imports import special
    >>> float(special.xlogy(0.0, 0.0))
    0.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import cvxpy as cp
    from scipy import linalg, optimize, sparse, special
else:

    class LazyModule:
        """A module that is imported when one of its names is first used."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):  # a caller that only inspects its type
                raise AttributeError(name)
            return getattr(import_module(self._name), name)

    cp, linalg, optimize, sparse, special = map(
        LazyModule, ("cvxpy", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special")
    )

__all__ = ["cp", "linalg", "optimize", "sparse", "special"]
