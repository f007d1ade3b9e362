"""Proof of a claim, from the matrix alone: repair, recomputed levels, a dual bound, exact arithmetic."""

from pmlopt.certificate.bound import column_bound, utility_bound
from pmlopt.certificate.certificate import Certificate, DesignCertificate
from pmlopt.certificate.certify import certify
from pmlopt.certificate.column import ColumnCertificate
from pmlopt.certificate.distortion import DistortionCertificate
from pmlopt.certificate.exact import holds_exactly, rows_are_exact, snap
from pmlopt.certificate.linear import LinearCertificate
from pmlopt.certificate.records import RecordCertificate
from pmlopt.certificate.repair import Repair

__all__ = [
    "Certificate",
    "ColumnCertificate",
    "DesignCertificate",
    "DistortionCertificate",
    "LinearCertificate",
    "RecordCertificate",
    "Repair",
    "certify",
    "column_bound",
    "holds_exactly",
    "rows_are_exact",
    "snap",
    "utility_bound",
]
