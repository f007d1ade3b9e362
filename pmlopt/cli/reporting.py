"""`pmlopt report`: the page on what a saved result promises."""

from __future__ import annotations

from pathlib import Path

import click

from pmlopt.cli.options import PATH, check_apart, exits, main
from pmlopt.cli.printing import say


@main.command("report")
@click.argument("saved_file", metavar="FILE", type=PATH)
@click.option("-o", "--output", type=PATH, help="Where to write, .html or .md; beside FILE where left out.")
@exits
def report_command(saved_file: Path, output: Path | None) -> None:
    """Write a page on what a saved result promises.

    It says about what, for whom, and what FILE (.json, .npz) does not promise. It has the leakage of each
    outcome, the utility beside that of releasing nothing, everything, or by randomized response, and how to
    check all of it.
    """
    from pmlopt.reports import write_report

    target = saved_file.with_suffix(".html") if output is None else output
    check_apart([target], [saved_file])
    write_report(saved_file, target)
    say(f"Wrote {target}.")
