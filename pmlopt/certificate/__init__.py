"""Proof of a claim, from the matrix alone: repair, recomputed levels, a dual bound, exact arithmetic."""

from pmlopt.certificate.bound import utility_bound
from pmlopt.certificate.certificate import Certificate, certify
from pmlopt.certificate.exact import holds_exactly, rows_are_exact, snap
from pmlopt.certificate.repair import Repair

__all__ = [
    "Certificate",
    "Repair",
    "certify",
    "holds_exactly",
    "rows_are_exact",
    "snap",
    "utility_bound",
]
