"""`python -m pmlopt` is `pmlopt`."""

from pmlopt.cli import main

main(prog_name="pmlopt")
