"""The command line, `pmlopt` or `python -m pmlopt`."""

from pmlopt.cli import commands as commands
from pmlopt.cli import histogram as histogram
from pmlopt.cli import least as least
from pmlopt.cli import library as library
from pmlopt.cli import records as records
from pmlopt.cli import sweeps as sweeps
from pmlopt.cli.shared import main

__all__ = ["main"]
