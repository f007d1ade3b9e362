"""Sweeps: many related problems solved one by one, here or on other machines."""

from pmlopt.sweeps.runner import sweep
from pmlopt.sweeps.table import Sweep, SweepRow

__all__ = ["Sweep", "SweepRow", "sweep"]
