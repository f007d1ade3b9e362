"""The command line, `pmlopt` or `python -m pmlopt`: the commands that design, audit and verify.

Exit codes: 0 done, 1 the claim fails, 2 bad input (a message, no traceback, no file), 3 no solver
could solve it, 70 a bug in pmlopt (with a traceback to report), 130 interrupted, 141 no one reads the
output any more. Modules are imported where they are used, so that help and audits answer at once.
"""

from pmlopt.cli.group import main

__all__ = ["main"]
