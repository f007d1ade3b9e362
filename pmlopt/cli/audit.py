"""The command `audit`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pmlopt.cli.audit_tables import (
    AuditedClaim,
    AuditTables,
    describe_correction,
    describe_rows,
    describe_secret_level,
    write_audit_page,
)
from pmlopt.cli.composition import Attributes, audit_together
from pmlopt.cli.data_options import describe_shares
from pmlopt.cli.exits import CLAIM_FAILS, VERDICT_CODES, prints_json
from pmlopt.cli.group import main
from pmlopt.cli.options import ArgumentNote, add_command, imports, json_option, refuse_options
from pmlopt.cli.printing import format_nats, print_json, print_table, warn_of_exact_counts
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.program_audit import ClaimOptions, ProgramOptions
from pmlopt.cli.reading import (
    align_prior,
    read_mechanism,
    read_saved_prior,
)
from pmlopt.cli.targets import TARGET
from pmlopt.cli.terminal import print_line
from pmlopt.cli.verification import print_verification
from pmlopt.core.files import disk
from pmlopt.core.matrices.formats import read_matrix
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.data.prior import Prior
    from pmlopt.programs.result import Result


def has_claims(path: Path) -> bool:
    """Return whether a file is a saved result with checkable claims."""
    return path.suffix.lower() in (".json", ".npz") and "certificate" in read_matrix(path).metadata


def audit_saved(saved_file: Path) -> int:
    """Print a saved mechanism's levels under its own prior, and the verdict; return the exit code."""
    from pmlopt.measures import audit
    from pmlopt.verification import verify_file

    verdict = verify_file(saved_file)  # first, for it complains of what the others rely on
    prior = read_saved_prior(saved_file)
    if prior is not None and not prints_json():
        mechanism = read_mechanism(saved_file)
        source = describe_shares(f"the one of {saved_file.name}", prior)
        levels = audit(prior, mechanism).levels
        AuditTables(saved_file.name, prior, source, mechanism, levels).print_all()
    print_verification(verdict, saved_file)
    return VERDICT_CODES[verdict.holds]


def audit_orbits(path: Path, asked: PrivacyOptions, wanted: ClaimOptions) -> None:
    """Recompute the levels of an orbit mechanism under its own prior; exit 1 for a false claim."""
    from pmlopt.data.symmetry import OrbitMechanism
    from pmlopt.model.privacy import LDP, LIP, PML
    from pmlopt.programs.claims import RATIONAL
    from pmlopt.programs.linear.columns import OrbitColumns

    if (wanted.envelope, wanted.confidence) != (None, None):
        raise InputError(
            f"{path}: is by orbits: leave out --envelope, which needs a matrix, and --confidence"
        )
    if asked.input_files:
        raise InputError(f"{path}: has its prior in it: leave out --prior, --counts and --about")
    mechanism = OrbitMechanism.load(path)
    space = mechanism.space
    levels: dict[str, float] = {}
    claim = (
        None
        if wanted.epsilon is None
        else asked.build_orbit_requirement(wanted.epsilon, space.prior)
    )
    for requirement in (PML(0.0), LDP(0.0), LIP(0.0, 0.0)):
        levels |= OrbitColumns.from_space(space, requirement).compute_levels(
            mechanism.scaled_entries
        )
    holds = None
    if claim is not None:
        columns = OrbitColumns.from_space(space, claim)
        levels |= columns.compute_levels(mechanism.scaled_entries)
        holds = columns.is_met_exactly(mechanism.masses) and space.orbits.is_consistent
    if not print_json("audit", {
        "level": levels["pml"],
        "levels": levels,
        "claimed": None if claim is None else claim.limits,
        "holds": holds,
        "rows_sum_to_one_exactly": mechanism.has_exact_rows,
        "orbits": space.orbits.count,
    }):  # fmt: skip
        print_line(f"{path.name}: {space.prior!r}, {space.orbits.count} orbits of pairs")
        print_table(
            ["measure", "level"], [(name, format_nats(level)) for name, level in levels.items()]
        )
        if claim is not None:
            rows = "" if mechanism.has_exact_rows else "The rows do not sum to exactly one."
            for line in AuditedClaim(claim, levels, bool(holds), RATIONAL, rows).list_sentences():
                print_line(line)
    sys.exit(CLAIM_FAILS if holds is False else 0)


_Proof: TypeAlias = Annotated[
    Path | None,
    "With --epsilon: where the claim holds, write the mechanism with its proof; of several, the product.",
    "-o/--output",
    TARGET,
]
_Page: TypeAlias = Annotated[
    Path | None,
    "Write the audit of a matrix as a page, .html or .md, also where the claim fails.",
    TARGET,
]


@add_command(main, extra=(json_option, imports))
def audit(
    asked: PrivacyOptions,
    wanted: ClaimOptions,
    program: ProgramOptions,
    mechanism_files: Annotated[tuple[Path, ...], ArgumentNote("[MECHANISM]...")] = (),
    no_header: Annotated[bool, "The CSV matrix has numbers only, no labels."] = False,
    attributes: Attributes = False,
    output: _Proof = None,
    page: _Page = None,
) -> None:
    """Recompute every leakage of MECHANISM.

    MECHANISM is a file: .csv, .tsv, .json, .npz, .npy, .mat, .parquet or .xlsx. A CSV has a header, a row for
    each true value with its name first, and a column of probabilities for each output. In place of a file,
    --traces or --samples audit a program. --privacy ldp, metric and maximal-leakage need no prior. The prior
    that was used is printed.
    Exits with 0 when the claim holds and with 1 when it fails. A saved result needs no prior:
    it is audited under its own, against all that it claims, as `verify` does; `check` is for the folder of a
    release. With --from-samples the level is
    bounded from both sides with confidence, and 3 states that it is not decided, as it does for --samples.

    Several mechanisms are releases of one secret: the level of all up to each is printed, and -o writes their
    product. One that is used twice is given twice. Folders of releases of one column need no --prior, where
    all state the same counts. Levels under the prior do not add up to a bound.
    """
    from pmlopt.data.symmetry.orbit_mechanism import is_orbit_file
    from pmlopt.programs.claims import decide_requirement
    from pmlopt.programs.compliance import prove
    from pmlopt.programs.exact.rounding import has_exact_rows

    if len(mechanism_files) > 1 or attributes:
        one_only = (page, program.traces_file, program.samples_file)
        if wanted != ClaimOptions() or no_header or any(one is not None for one in one_only):
            raise InputError(
                "several mechanisms take --prior, --attributes, -o and --json only: audit their product, "
                "which -o writes"
            )
        audit_together(mechanism_files, asked, attributes, output)
        return
    mechanism_file = mechanism_files[0] if mechanism_files else None
    normalises_matrix = asked.normalise and not asked.has_prior_file
    written = output is not None or page is not None
    of_matrix = wanted.from_samples or no_header or normalises_matrix or written
    program.check(mechanism_file, asked, wanted, of_matrix)
    if mechanism_file is None:
        program.audit(asked, wanted)
    check_not_folder(mechanism_file)
    by_orbits = not wanted.from_samples and is_orbit_file(mechanism_file)
    _check_written(output, page, wanted, by_orbits)
    if by_orbits:
        audit_orbits(mechanism_file, asked, wanted)
        return
    of_its_own = not asked.input_files and replace(wanted, confidence=None) == ClaimOptions()
    if of_its_own and page is None and has_claims(mechanism_file):
        sys.exit(audit_saved(mechanism_file))
    reads_own = not asked.has_prior_file and not wanted.from_samples
    own = read_saved_prior(mechanism_file) if reads_own else None
    needs_prior = own is not None or wanted.envelope is not None or output is not None
    without_prior = not needs_prior and _can_audit_without_prior(asked)
    _check_audit_options(asked, wanted, own is not None or without_prior)
    if wanted.from_samples:
        from pmlopt.cli.sampled_audits import audit_samples

        audit_samples(mechanism_file, asked, wanted)
        return
    is_saved = mechanism_file.suffix.lower() in (".json", ".npz") and asked.has_prior_file
    mechanism = read_mechanism(mechanism_file, no_header, asked.normalise and not is_saved)
    prior, source = _read_audited_prior(asked, mechanism_file, mechanism, own, without_prior)
    secret = asked.read_fields(prior)["about"]
    levels = _compute_levels(asked, prior, mechanism, without_prior)
    epsilon = wanted.epsilon
    claim = None if epsilon is None else asked.build_requirement(epsilon, prior)
    claimed = {} if claim is None else claim.levels(prior, mechanism)
    holds, arithmetic = (
        (None, "") if claim is None else decide_requirement(prior, claim, mechanism.matrix)
    )
    exact = has_exact_rows(mechanism.matrix)
    decided = None if claim is None else AuditedClaim(
        claim, claimed, bool(holds), arithmetic,
        # divided by their sums, rows add up to one but for the last digit of floats
        describe_rows(mechanism.matrix, exact or asked.normalise),
        "" if holds else claim.describe_violation(prior, mechanism), levels,
    )  # fmt: skip
    tables = AuditTables(
        mechanism_file.name,
        None if without_prior else prior,
        source,
        mechanism,
        levels,
        secret,
        decided,
    )
    curve = _solve_envelopes(prior, mechanism, wanted.deltas)
    _print_audit(tables, asked, epsilon, curve)
    if holds and output is not None:
        assert claim is not None
        proved = prove(prior, claim, mechanism)
        proved.save(output)
        moved = describe_correction(mechanism.matrix, proved.mechanism.matrix)
        print_line(
            f"The mechanism is written to {output}, with the proof of the claim.{moved}",
            err=prints_json(),
        )
        warn_of_exact_counts(output, proved, "audit under rounded or published shares")
    if page is not None:
        write_audit_page(page, tables, [mechanism_file, *asked.input_files])
        print_line(f"Wrote {page}.", err=prints_json())
    sys.exit(CLAIM_FAILS if holds is False else 0)


def _solve_envelopes(
    prior: Prior, mechanism: Mechanism, deltas: Sequence[float]
) -> list[Result[Any]]:
    """Compute the envelope at each delta, from the largest down, each warm-started."""
    from pmlopt.programs.envelope.program import envelope
    from pmlopt.programs.solving import solve

    found: dict[float, Result[Any]] = {}
    start = None
    for delta in sorted(set(deltas), reverse=True):
        found[delta] = solve(envelope(prior, mechanism, delta), warm_start=start)
        start = found[delta].restart
    return [found[delta] for delta in deltas]


def _read_audited_prior(
    asked: PrivacyOptions, path: Path, mechanism: Mechanism, own: Prior | None, prior_free: bool
) -> tuple[Prior, str]:
    """Read the prior of an audit and the line on it: of the file, of the options, or any one."""
    from pmlopt.data.prior import Prior

    if prior_free:  # no level that is computed depends on it
        return Prior.uniform(len(mechanism.inputs), mechanism.inputs), ""
    if own is not None:
        return own, describe_shares(f"the one of {path.name}", own)
    prior = align_prior(asked.read_prior(announce=False), mechanism)
    return prior, asked.describe_prior(prior)


def _print_audit(
    tables: AuditTables,
    asked: PrivacyOptions,
    epsilon: float | None,
    curve: Sequence[Result[Any]],
) -> None:
    """Print an audit with its envelope and verdict, as tables or as JSON."""
    from pmlopt.programs.exact.rounding import has_exact_rows

    claim = tables.claim
    if not prints_json():
        tables.print_all()
        if curve:
            print_table(["delta", "at most, after any processing", "gap", "status"], [
                (f"{e.certificate.delta:g}", format_nats(e.bound), f"{e.gap:.1e}", e.status.value)
                for e in curve
            ])  # fmt: skip
        for line in () if claim is None else claim.list_sentences():
            print_line(line)
        return
    claimed = {} if claim is None else claim.levels
    print_json("audit", {
        "level": tables.levels.get("pml"),
        "levels": tables.levels,
        "privacy": asked.privacy_name,
        "epsilon": epsilon,
        **{name: getattr(asked, name) for name in ("radius", "confidence_delta", "delta")},
        "about": None if tables.secret is None
        else describe_secret_level(tables.secret, tables.mechanism),
        "prior_used": tables.prior_record,
        "claimed": claimed,
        "holds": None if claim is None else claim.holds,
        "broken_by": None if claim is None or claim.holds else claim.violation,
        "rows_sum_to_one_exactly": has_exact_rows(tables.mechanism.matrix),
        "envelope": [
            {"delta": e.certificate.delta, "value": e.value, "bound": e.bound, "status": e.status.value}
            for e in curve
        ],
        "outputs": tables.output_records,
    })  # fmt: skip


def _compute_levels(
    asked: PrivacyOptions, prior: Prior, mechanism: Mechanism, prior_free: bool
) -> dict[str, float]:
    """Compute the levels that an audit prints, all of them or the prior-free ones."""
    from pmlopt import measures

    measured = asked.build_requirement(0.0, prior)
    if prior_free:
        return {
            "ldp": measures.ldp_level(mechanism),
            "maximal_leakage": measures.maximal_leakage(mechanism),
            **measured.levels(prior, mechanism),
        }
    levels = dict(measures.audit(prior, mechanism).levels)
    if asked.is_robust:
        return {**levels, "pml_robust": measured.level(prior, mechanism)}
    return {**levels, **measured.levels(prior, mechanism)}


def check_not_folder(path: Path) -> None:
    """Raise an error for a folder in the place of a mechanism, with the command that checks it."""
    if not path.is_dir():
        return
    from pmlopt.publishing.folder import DESCRIPTION

    command = f"pmlopt check {shlex.quote(str(path))}"
    if (path / DESCRIPTION).is_file():
        raise InputError(f"{path}: is the folder of a release: {command} checks it")
    raise InputError(
        f"{path}: is a folder: name the file of the mechanism in it; the folder of a release is checked by "
        f"{command}"
    )


def _check_written(
    output: Path | None, page: Path | None, wanted: ClaimOptions, by_orbits: bool
) -> None:
    """Raise an error where a proof is to be written of no claim on a matrix, or a page of no matrix."""
    from pmlopt.core.files.sealing import check_not_sealed
    from pmlopt.programs.reports.pages import REPORT_FORMATS

    without_matrix = wanted.from_samples or by_orbits
    refuse_options(
        (output is not None and (wanted.epsilon is None or without_matrix),
         "-o writes the proof of a claim on a matrix: give --epsilon, and no --from-samples"),
        (page is not None and without_matrix, "--page is of the audit of a matrix: leave it out"),
    )  # fmt: skip
    if page is not None:
        disk.get_file_format(page, REPORT_FORMATS)
        check_not_sealed(page)


def _check_audit_options(asked: PrivacyOptions, wanted: ClaimOptions, has_prior: bool) -> None:
    """Raise an error for conflicting audit options."""
    samples, envelope = wanted.from_samples, wanted.envelope is not None
    if not has_prior:
        asked.check()
    refuse_options(
        (samples and envelope,
         "--envelope needs a mechanism, and --from-samples are counts: leave one out"),
        (wanted.confidence is not None and not samples, "--confidence belongs to --from-samples"),
        (asked.is_robust and envelope and not samples,
         "--envelope is for the given prior only: leave out --radius and --confidence-delta"),
    )  # fmt: skip


def _can_audit_without_prior(asked: PrivacyOptions) -> bool:
    """Return whether the levels of the requirement need no prior, and none is given."""
    if asked.has_prior_file or asked.columns:
        return False
    asked.check_belonging()
    return asked.requirement_class.is_prior_free
