"""The command line, `pmlopt` or `python -m pmlopt`."""

from pmlopt.cli import library as library
from pmlopt.cli.commands import main

__all__ = ["main"]
