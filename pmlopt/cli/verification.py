"""The commands on a saved result: `report` writes a page, `verify` checks it, `prove` writes its proof."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pmlopt.cli.exits import CLAIM_FAILS, VERDICT_CODES
from pmlopt.cli.export import SOURCE_ENDINGS, describe_for_registry, verify_source
from pmlopt.cli.group import main
from pmlopt.cli.options import ArgumentNote, add_command, imports, json_option
from pmlopt.cli.printing import print_json, print_table
from pmlopt.cli.reading import read_saved_prior
from pmlopt.cli.targets import TARGET
from pmlopt.cli.terminal import print_line
from pmlopt.core.lazy_imports import tempfile
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.programs.certificate import Certificate, Verdict


@add_command(main, "report")
def report_command(
    saved_file: Annotated[Path, ArgumentNote("FILE")],
    output: Annotated[
        Path | None, "The file to write, .html or .md; else next to FILE.", TARGET
    ] = None,
    registry: Annotated[
        bool, "FILE is the folder of a release: describe it for a registry of deployments."
    ] = False,
) -> None:
    """Write a page on what a saved result guarantees.

    It states about what and for whom, and what FILE (.json, .npz) does not guarantee; the leakage of each
    outcome; the utility compared with releasing nothing, everything, or by randomized response; and how
    to check all of it. The folder of a release is sealed: for a FILE in one, give -o elsewhere.

    With --registry the folder is checked first, and a record printed, or written to -o: JSON, by the keys
    that registries of deployments of differential privacy use. What the folder does not state is left empty
    for its issuer.
    """
    from pmlopt.programs.reports.pages import EXACT_COUNTS
    from pmlopt.verification import write_report

    if registry:
        describe_for_registry(saved_file, output)
        return
    check_saved_result(saved_file)
    target = saved_file.with_suffix(".html") if output is None else output
    write_report(saved_file, target)
    if (prior := read_saved_prior(saved_file)) is not None and prior.samples is not None:
        print_line(f"warning: {EXACT_COUNTS}", err=True)
    print_line(f"Wrote {target}.")


def check_saved_result(path: Path) -> None:
    """Raise an error for a file that can be no saved result, with the command for what it is."""
    if path.is_dir():
        raise InputError(
            f"{path}: is a folder: name a saved result, a .json or .npz file. The folder of a release has "
            "its report in it, and `pmlopt check` checks it"
        )
    if path.suffix.lower() not in (".json", ".npz"):
        raise InputError(
            f"{path}: is no saved result, which is a .json or .npz file of pmlopt design, solve or audit -o. "
            "A matrix is audited, with a page: pmlopt audit FILE --prior PRIOR --page audit.html"
        )


WORDS: Mapping[bool | None, str] = {
    True: "All that the file claims holds.",
    False: "A claim of the file is FALSE.",
    None: "What was checked holds, and a part cannot be checked from the file.",
}


@add_command(main, "verify", extra=(json_option, imports))
def verify_command(
    saved_file: Annotated[Path, ArgumentNote("FILE")],
    checker: Annotated[
        str | None,
        "The command of a checker of VIPR certificates, such as viprchk. FILE is then the folder of a "
        "proof (`pmlopt prove`), one certificate of it, or a saved result, which is proved first.",
        "--vipr",
    ] = None,
    mechanism_file: Annotated[
        Path | None,
        "FILE is source code, or a workbook, that `pmlopt export` wrote: compare it with this mechanism.",
        "--of",
    ] = None,
) -> None:
    """Check what a saved result claims.

    With --of, check whether source code draws from a mechanism.

    All is computed again from FILE (.json, .npz) only. Exits with 1 when a part is false, and with 3 where a
    part cannot be checked from the file, and states which. The script verifier.py of the package checks most
    kinds with Python's standard library only. `audit` is for a mechanism with a prior, `check` for releases.
    """
    from pmlopt.verification import verify_file

    if checker is not None:
        sys.exit(_run_checker(checker, saved_file))
    if saved_file.is_dir():
        raise InputError(
            f"{saved_file}: is a folder: `pmlopt check` checks releases, `pmlopt verify --vipr CHECKER` the "
            "folder of a proof, and this saved results"
        )
    if mechanism_file is not None:
        sys.exit(VERDICT_CODES[verify_source(saved_file, mechanism_file)])
    if saved_file.suffix.lower() in SOURCE_ENDINGS:
        raise InputError(f"{saved_file}: is source code: name its mechanism by --of MECHANISM")
    if saved_file.suffix.lower() == ".xlsx":
        raise InputError(
            f"{saved_file}: is a workbook: name the mechanism of a form or a spreadsheet by --of MECHANISM. "
            "A matrix has no certificate: save a Result as .json or .npz, or audit it"
        )
    check_saved_result(saved_file)
    verdict = verify_file(saved_file)
    print_verification(verdict, saved_file)
    sys.exit(VERDICT_CODES[verdict.holds])


@add_command(main, "prove", extra=(json_option, imports))
def prove_command(
    saved_file: Annotated[Path, ArgumentNote("FILE")],
    output: Annotated[Path, "The folder to make."],
) -> None:
    """Write the proof of a result for independent checkers.

    The folder has certificates in the format VIPR, of which some checkers were themselves proved correct, the
    same linear programs as MPS files for exact solvers, and a README on what is proved and how to check it.
    """
    from pmlopt.programs.proofs.folder import write_proof
    from pmlopt.programs.reports.pages import warn_of_sample

    check_saved_result(saved_file)
    certificate = _load_certificate(saved_file)
    found = write_proof(certificate, output)
    for warning in warn_of_sample(certificate):
        print_line(f"warning: {warning}", err=True)
    if print_json("proof", found.to_dict()):
        return
    print_table(["file", "what it proves"], list(found.sentences.items()))
    print_line(f"Wrote {found.folder}: its README.md states how to check it.")


def _load_certificate(saved_file: Path) -> Certificate:
    """Load the certificate of a saved result, none of whose claims is false."""
    from pmlopt.programs.result import Result
    from pmlopt.verification import load_trusted

    found = load_trusted(saved_file)
    if not isinstance(found, Result):
        raise InputError(
            f"{saved_file}: holds a mechanism without claims: there is nothing to prove"
        )
    certificate: Certificate = found.certificate
    return certificate


def _run_checker(checker: str, place: Path) -> int:
    """Run a checker on a proof, which is made first of a saved result; return the exit code."""
    from pmlopt.programs.proofs.folder import write_proof
    from pmlopt.verification.vipr_checkers import VIPR_ENDING, run_checker

    with tempfile.TemporaryDirectory() as folder:
        if not place.is_dir() and place.suffix != VIPR_ENDING:
            place = write_proof(_load_certificate(place), Path(folder) / "proof").folder
        verdicts = run_checker(checker, place)
    if not print_json("verdict", {
        "kind": "proof",
        "statement": f"the certificates of {place.name} by {checker}",
        "holds": all(one.accepts for one in verdicts),
        "parts": [
            {"part": one.file, "holds": one.accepts, "detail": one.output} for one in verdicts
        ],
    }):  # fmt: skip
        for one in verdicts:
            print_line(one.output.rstrip())
        rows = [(one.file, "accepted" if one.accepts else "REFUSED") for one in verdicts]
        print_table(["certificate", f"by {checker}"], rows)
    return 0 if all(one.accepts for one in verdicts) else CLAIM_FAILS


def print_verification(verdict: Verdict, saved_file: Path) -> None:
    """Print the verdict on a saved file, as text or as JSON."""
    if print_json("verdict", verdict.to_dict()):
        return
    print_line(f"{saved_file.name}: {verdict.kind}: {verdict.statement}")
    rows: list[tuple[Any, ...]] = [
        (p.name, p.verdict, p.arithmetic, p.detail) for p in verdict.parts
    ]
    print_table(["part", "verdict", "decided in", "what was found"], rows)
    print_line(WORDS[verdict.holds])
