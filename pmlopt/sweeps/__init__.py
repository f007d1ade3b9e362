"""Sweeps: grids of related problems, solved serially or by workers."""

from pmlopt.sweeps.runner import sweep
from pmlopt.sweeps.table import Sweep, SweepRow

__all__ = ["Sweep", "SweepRow", "sweep"]
