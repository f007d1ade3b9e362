"""The command line, `pmlopt` or `python -m pmlopt`."""

from pmlopt.cli import apply as apply
from pmlopt.cli import commands as commands
from pmlopt.cli import estimation as estimation
from pmlopt.cli import ledger as ledger
from pmlopt.cli import library as library
from pmlopt.cli import noisy_answer as noisy_answer
from pmlopt.cli import queries as queries
from pmlopt.cli import release as release
from pmlopt.cli import verification as verification
from pmlopt.cli.options import main

__all__ = ["main"]
