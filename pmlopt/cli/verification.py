"""The commands that look at a saved result: `report` writes a page on it, and `verify` checks its claims."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pmlopt.cli.options import (
    CLAIM_FAILS,
    NOT_SOLVED,
    ArgumentNote,
    Json,
    OptionNote,
    add_command,
    imports,
    main,
)
from pmlopt.cli.printing import print_json, print_line, print_table
from pmlopt.cli.reading import read_saved_prior
from pmlopt.cli.targets import TARGET
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.programs.certificate import Verdict


@add_command(main, "report")
def report_command(
    saved_file: Annotated[Path, ArgumentNote("FILE")],
    output: Annotated[
        Path | None,
        OptionNote("The file to write, .html or .md; else next to FILE.", "-o/--output", TARGET),
    ] = None,
) -> None:
    """Write a page on what a saved result guarantees.

    It states about what and for whom, and what FILE (.json, .npz) does not guarantee; the leakage of each
    outcome; the utility compared with releasing nothing, everything, or by randomized response; and how
    to check all of it. The folder of a release is sealed: for a FILE in one, give -o elsewhere.
    """
    from pmlopt.programs.reports.pages import EXACT_COUNTS
    from pmlopt.verification import write_report

    target = saved_file.with_suffix(".html") if output is None else output
    write_report(saved_file, target)
    if (prior := read_saved_prior(saved_file)) is not None and prior.samples is not None:
        print_line(f"warning: {EXACT_COUNTS}", err=True)
    print_line(f"Wrote {target}.")


CODES: Mapping[bool | None, int] = {True: 0, False: CLAIM_FAILS, None: NOT_SOLVED}
"""The exit codes of a verdict: not all of it was checked is no yes."""

WORDS: Mapping[bool | None, str] = {
    True: "All that the file claims holds.",
    False: "A claim of the file is FALSE.",
    None: "What was checked holds, and a part cannot be checked from the file.",
}


@add_command(main, "verify", extra=(imports,))
def verify_command(
    saved_file: Annotated[Path, ArgumentNote("FILE")], as_json: Json = False
) -> None:
    """Check what a saved result claims.

    All is computed again from FILE (.json, .npz) only. Exits with 1 when a part is false, and with 3 where a
    part cannot be checked from the file, and states which. The script verifier.py of the package checks most
    kinds with Python's standard library only. `audit` is for a mechanism with a prior, `check` for releases.
    """
    from pmlopt.verification import verify_file

    if saved_file.is_dir():
        raise InputError(
            f"{saved_file}: is a folder: `pmlopt check` checks releases, and this saved results"
        )
    verdict = verify_file(saved_file)
    print_verification(verdict, saved_file, as_json)
    sys.exit(CODES[verdict.holds])


def print_verification(verdict: Verdict, saved_file: Path, as_json: bool) -> None:
    """Print the verdict on a saved file, as text or as JSON."""
    if as_json:
        print_json(verdict.to_dict())
        return
    print_line(f"{saved_file.name}: {verdict.kind}: {verdict.statement}")
    rows: list[tuple[Any, ...]] = [
        (p.name, p.verdict, p.arithmetic, p.detail) for p in verdict.parts
    ]
    print_table(["part", "verdict", "decided in", "what was found"], rows)
    print_line(WORDS[verdict.holds])
