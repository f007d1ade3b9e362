"""Verification of saved results from their files."""

from pmlopt.verification.verify_saved import load_saved as load_saved
from pmlopt.verification.verify_saved import load_trusted as load_trusted
from pmlopt.verification.verify_saved import load_trusted_mechanism as load_trusted_mechanism
from pmlopt.verification.verify_saved import verify_file as verify_file
from pmlopt.verification.verify_saved import write_report as write_report
