"""Reading and verification of saved results."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core.records.fields import Context, find_tagged_classes, finite_or_none
from pmlopt.core.records.record import read_record
from pmlopt.data.mechanism import Mechanism, read_saved_mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism, is_orbit_file, read_orbit_mechanism
from pmlopt.errors import FileFormatError, InputError
from pmlopt.programs.certificate import Certificate, Status, Verdict, WarmStart, make_context
from pmlopt.programs.claims import FLOATS, Claim
from pmlopt.programs.program import load_installed_registries
from pmlopt.programs.registry import list_certificates
from pmlopt.programs.reports.pages import write_report_page
from pmlopt.programs.result import Result, ResultRecord


def verify_file(path: str | os.PathLike[str]) -> Verdict:
    """Verify a saved result's claims from its file, without a solver.

    The certificate is read back, level, value and bound are computed again from its numbers, and whatever
    else the file states of it must be what follows. `docs/certificate.md` states what each number is.

    Args:
        path: a .json or .npz file that `Result.save` wrote.

    Raises:
        FileFormatError: the file is no saved result, or lacks a part.

    Examples:
        >>> import pathlib, tempfile
        >>> from pmlopt import ExpectedLoss, PML, design, solve
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "mechanism.json"
        >>> solve(design([0.5, 0.5], PML(0.2), ExpectedLoss([[0, 1], [1, 0]]))).save(path)
        >>> verify_file(path).holds
        True
        >>> _ = path.write_text(path.read_text().replace('"epsilon": 0.2', '"epsilon": 0.1'))
        >>> found = verify_file(path)
        >>> found.holds, found.parts[1].detail
        (False, 'the output 0 reveals 0.2 nats about 0, and the limit is 0.1')
        >>> folder.cleanup()
    """
    return _read_with_verdict(path, *read_any_mechanism(path))[1]


def read_result_record(
    mechanism: Mechanism, metadata: Mapping[str, Any], path: str | os.PathLike[str]
) -> ResultRecord:
    """Read the result record of a file, with its certificate.

    Raises:
        FileFormatError: it is not of the format; the message starts with the path of what is wrong.
    """
    where = str(path)
    _load_kind(metadata.get("certificate"))
    prior = read_saved_prior(mechanism, metadata, where)
    found = read_record(ResultRecord, metadata, where, make_context(mechanism, prior))
    if found.certificate.mechanism is not mechanism:
        raise FileFormatError(f"{where}.certificate.mechanism: must be the word mechanism")
    if found.certificate.listed_prior != prior:
        raise FileFormatError(
            f"{where}.prior: the certificate is about another prior, or about none"
        )
    return found


def _load_kind(certificate: object) -> None:
    """Import questions where a certificate is of a kind that is not known: pmlopt's, then those installed."""
    kind = certificate.get("kind") if isinstance(certificate, Mapping) else None
    for load in (list_certificates, load_installed_registries):
        if isinstance(kind, str) and kind not in find_tagged_classes(Certificate):
            load()


def write_report(saved: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Write the report page of a saved result, from its file.

    Args:
        saved: a .json or .npz file in which a result was saved.
        path: where to write: .html, or .md for Markdown.

    Raises:
        FileFormatError: the file holds no result, a claim of it is false, or the path has another ending or
            cannot be written.
    """
    told, verdict = _read_with_verdict(saved, *read_any_mechanism(saved))
    write_report_page(told.certificate, verdict, path, Path(saved).name)


def load_trusted(path: str | os.PathLike[str]) -> Any:
    """Load a mechanism or result for releasing; raise an error for a false claim.

    A file without a certificate, such as a CSV, claims nothing. One that claims what it does not hold the
    means to decide is taken: `verify_file` names it.

    Args:
        path: a mechanism, in any format of `Mechanism.load`, or a saved result: .json (by orbits, too)
            or .npz.

    Raises:
        FileFormatError: the file holds no mechanism, or a claim of its certificate is false.
    """
    found, verdict = load_with_verdict(path)
    if verdict is not None and verdict.failures:
        raise FileFormatError(
            f"{path}: what its certificate claims is false, so it is not used: "
            + "; ".join(f"{claim.name}: {claim.detail}" for claim in verdict.failures)
            + ". Design it again, or save the matrix only, as CSV, to use it without its claims"
        )
    return found


def load_trusted_mechanism(path: str | os.PathLike[str]) -> Mechanism:
    """Load a mechanism for releasing; raise an error for a false claim.

    Raises:
        FileFormatError: the file holds no mechanism, or a claim of its certificate is false.
    """
    found = load_trusted(path)
    return found.mechanism if isinstance(found, Result) else found


def read_any_mechanism(path: str | os.PathLike[str]) -> tuple[Mechanism, Mapping[str, Any]]:
    """Read a mechanism, explicit or by orbits, with metadata."""
    read = read_orbit_mechanism if is_orbit_file(path) else read_saved_mechanism
    return read(path)


def _read_with_verdict(
    path: str | os.PathLike[str], mechanism: Mechanism, metadata: Mapping[str, Any]
) -> tuple[ResultRecord, Verdict]:
    """Verify a read file; raise an error where it lacks data for the check."""
    if not isinstance(metadata.get("certificate"), Mapping):
        raise FileFormatError(
            f"{path}: holds a mechanism and no certificate: save a Result as .json or .npz, or audit it"
        )
    if "kind" not in metadata["certificate"]:
        raise FileFormatError(
            f"{path}: holds less than its check needs: save the result again, if its kind can be"
        )
    try:
        with np.errstate(all="ignore"):  # numbers of a file may be of any size
            told = read_result_record(mechanism, metadata, path)
            return told, Verdict.from_certificate(told.certificate, _check_record(told))
    except InputError as error:
        raise FileFormatError(str(error)) from None
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError) as error:
        raise FileFormatError(
            f"{path}: does not follow the format: {type(error).__name__}: {error}"
        ) from None


def read_saved_prior(mechanism: Mechanism, metadata: Mapping[str, Any], where: str) -> Prior | None:
    """Return the prior of a saved result; raise an error without one.

    Raises:
        FileFormatError: it is not of the format, or has other letters than the mechanism.
    """
    if "prior" not in metadata:
        raise FileFormatError(f"{where}: the key 'prior' is missing")
    data = metadata["prior"]
    if data is None or isinstance(mechanism, OrbitMechanism):
        if data is not None:
            raise FileFormatError(
                f"{where}.prior: must be null, for the mechanism by orbits has it"
            )
        return None
    found = read_record(Prior, data, f"{where}.prior", Context({"labels": mechanism.inputs}))
    if found.labels != mechanism.inputs:
        raise FileFormatError(
            f"{where}.prior: has other letters than the mechanism, or in another order"
        )
    return found


def _check_record(record: ResultRecord) -> Claim:
    """Check that a record's summary follows from its certificate."""
    # Up to this share, or this much, numbers that follow from others may differ: floats of one formula.
    derived_tolerance = 1e-12
    certificate = record.certificate
    made = {
        name: finite_or_none(getattr(certificate, name))
        for name in ("value", "bound", "gap", "level")
    }
    boasts = record.status is Status.OPTIMAL and record.bound is None
    found = ["the status is optimal, and no bound is claimed"] if boasts else []
    for name, number in made.items():
        stated = getattr(record, name)
        tolerance = derived_tolerance if name == "level" else 0.0
        near = None not in (stated, number) and math.isclose(
            stated, number or 0.0, rel_tol=tolerance, abs_tol=tolerance
        )
        if stated is not number and not near:
            found.append(f"the {name} of the result is {stated!s:.40}, and {number!s:.40} follows")
    if (form := record.closed_form) is not None:
        off = certificate.value - form.value - form.difference
        if not abs(off) <= derived_tolerance * max(1.0, abs(certificate.value)):
            text = f"the difference from the closed form is {form.difference!r}, and {off:.3g} more follows"
            found.append(text)
    other = next(iter(found), None)
    text = "everything else that the file states follows" if other is None else other
    return Claim("record", other is None, FLOATS, text)


def load_saved(path: str | os.PathLike[str]) -> Any:
    """Load a saved `Mechanism` or `Result`.

    A result comes back with its certificate, as the file has it: `verify_file` decides whether what it claims
    is true, and `certificate.verify()` does.

    Args:
        path: what `save` of one of them wrote.

    Raises:
        FileFormatError: it is not there, or neither of these.

    Examples:
        >>> import pathlib, tempfile
        >>> from pmlopt import PML, design, solve
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "mechanism.json"
        >>> solve(design([0.5, 0.5], PML(0.2), "hamming")).save(path)
        >>> round(load_saved(path).value, 6)  # 1 - e^0.2 / 2
        0.389299
        >>> folder.cleanup()
    """
    mechanism, metadata = read_any_mechanism(path)
    if metadata.get("certificate") is None:
        return mechanism
    return _build_result(read_result_record(mechanism, metadata, path))


def load_with_verdict(path: str | os.PathLike[str]) -> tuple[Any, Verdict | None]:
    """Load a saved `Mechanism` or `Result`, and verify the claims of a result; None where nothing is claimed.

    Args:
        path: what `save` of one of them wrote.

    Raises:
        FileFormatError: it is not there, or neither of these.
    """
    mechanism, metadata = read_any_mechanism(path)
    if metadata.get("certificate") is None:
        return mechanism, None
    told, verdict = _read_with_verdict(path, mechanism, metadata)
    return _build_result(told), verdict


def _build_result(record: ResultRecord) -> Result[Any]:
    """Build the result of a saved record."""
    return Result(
        record.status, record.certificate, record.solver, record.reason, record.attempts, record.iterations,
        record.warm_started, record.timings, record.closed_form, WarmStart(record.solver, {}),
        record.solver_options,
    )  # fmt: skip
