"""The command line, `pmlopt` or `python -m pmlopt`."""

from pmlopt.cli.group import main

__all__ = ["main"]
