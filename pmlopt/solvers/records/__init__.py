"""The leakage of a dataset's records against an adversary whose knowledge is bounded by an entropy."""

from pmlopt.solvers.records.known import is_parity, parity_error
from pmlopt.solvers.records.leakage import record_leakage, record_leakage_curve

__all__ = ["is_parity", "parity_error", "record_leakage", "record_leakage_curve"]
