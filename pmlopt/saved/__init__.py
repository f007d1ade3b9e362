"""What a saved result claims, read back from its file and computed again."""

from pmlopt.saved.verdict import Verdict as Verdict
from pmlopt.saved.verifying import verify_file as verify_file
from pmlopt.saved.verifying import trusted_mechanism as trusted_mechanism
