"""`pmlopt verify`: what a saved result claims, computed again from its file; and audits by its own words."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pmlopt.cli.options import CLAIM_FAILS, NOT_SOLVED, Arg, Json, Opt, check_apart, command, imports, main
from pmlopt.cli.printing import echo_json, print_audit, print_table, say
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.programs.certificate import Verdict


@command(main, "report")
def report_command(
    saved_file: Annotated[Path, Arg("FILE")],
    output: Annotated[
        Path | None, Opt("Where to write, .html or .md; beside FILE where left out.", "-o/--output")
    ] = None,
) -> None:
    """Write a page on what a saved result promises.

    It says about what, for whom, and what FILE (.json, .npz) does not promise. It has the leakage of each
    outcome, the utility beside that of releasing nothing, everything, or by randomized response, and how to
    check all of it.
    """
    from pmlopt.verification import write_report

    target = saved_file.with_suffix(".html") if output is None else output
    check_apart([target], [saved_file])
    write_report(saved_file, target)
    say(f"Wrote {target}.")


CODES: Mapping[bool | None, int] = {True: 0, False: CLAIM_FAILS, None: NOT_SOLVED}
"""The exit codes of a verdict: not all of it was checked is no yes."""

WORDS: Mapping[bool | None, str] = {
    True: "All that the file claims holds.",
    False: "A claim of the file is FALSE.",
    None: "What was checked holds, and a part cannot be checked from the file.",
}


@command(main, "verify", extra=(imports,))
def verify_command(saved_file: Annotated[Path, Arg("FILE")], as_json: Json = False) -> None:
    """Check what a saved result claims.

    All is computed again from FILE (.json, .npz) alone. Exits with 1 when a part is false, and with 3 where a
    part cannot be checked from the file, and says which. The script verifier.py of the package checks most
    kinds with Python's standard library alone.
    """
    from pmlopt.verification import verify_file

    if saved_file.is_dir():
        raise InputError(f"{saved_file}: is a folder: `pmlopt check` checks releases, and this saved results")
    verdict = verify_file(saved_file)
    _print(verdict, saved_file, as_json)
    sys.exit(CODES[verdict.holds])


def has_claims(path: Path) -> bool:
    """Whether a file is a saved result, with claims of its own."""
    from pmlopt.core import files

    return path.suffix.lower() in (".json", ".npz") and "certificate" in files.read_matrix(path).metadata


def prior_in(path: Path) -> Prior | None:
    """The prior that a saved result has in its file; None where it is another file, or has none."""
    if not has_claims(path):
        return None
    from pmlopt.verification.verifying import read_saved, saved_prior

    mechanism, metadata = read_saved(path)
    return saved_prior(mechanism, metadata, str(path))


def audit_saved(saved_file: Path, as_json: bool) -> int:
    """Print the levels of a saved mechanism under its own prior, and the verdict; return the exit code."""
    from pmlopt.measures import audit
    from pmlopt.verification import verify_file
    from pmlopt.verification.verifying import read_saved, saved_prior

    verdict = verify_file(saved_file)  # first, for it complains of what the others rely on
    mechanism, metadata = read_saved(saved_file)
    prior = saved_prior(mechanism, metadata, str(saved_file))
    if prior is not None and not as_json:
        print_audit(saved_file, prior, mechanism, dict(audit(prior, mechanism).levels))
    _print(verdict, saved_file, as_json)
    return CODES[verdict.holds]


def _print(verdict: Verdict, saved_file: Path, as_json: bool) -> None:
    if as_json:
        echo_json(verdict.to_dict())
        return
    say(f"{saved_file.name}: {verdict.kind}: {verdict.statement}")
    rows: list[tuple[Any, ...]] = [(p.name, p.verdict, p.arithmetic, p.detail) for p in verdict.parts]
    print_table(["part", "verdict", "decided in", "what was found"], rows)
    say(WORDS[verdict.holds])
