"""Sweeps: many related problems solved in warm-started chains, here or on other machines."""

from pmlopt.sweeps.runner import sweep
from pmlopt.sweeps.table import Row, Sweep

__all__ = ["Row", "Sweep", "sweep"]
