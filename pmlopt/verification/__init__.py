"""What a saved result claims, read back from its file and computed again."""

from pmlopt.verification.verifying import load as load
from pmlopt.verification.verifying import trusted as trusted
from pmlopt.verification.verifying import trusted_mechanism as trusted_mechanism
from pmlopt.verification.verifying import verify_file as verify_file
from pmlopt.verification.verifying import write_report as write_report
