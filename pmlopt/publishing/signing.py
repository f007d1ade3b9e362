"""Signature data of a report: date, issuer, file digests and signature lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime

from pmlopt.errors import InputError
from pmlopt.programs.reports.pages import ReportSection
from pmlopt.publishing.folder import DESCRIPTION, REPORTS, ReleaseFile

EPOCH = "SOURCE_DATE_EPOCH"
"""The variable of the environment that gives the date of reproducible builds, in seconds since 1970."""


def get_release_date() -> str:
    """Return today's UTC date as YYYY-MM-DD; `SOURCE_DATE_EPOCH` overrides the clock.

    Raises:
        InputError: the variable is set and no whole number of seconds.
    """
    given = os.environ.get(EPOCH)
    if given is None:
        return datetime.now(UTC).date().isoformat()
    try:
        if not re.fullmatch(r"[0-9]{1,12}", given):
            raise ValueError(given)
        return datetime.fromtimestamp(int(given), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"{EPOCH} is {given!r}: give the seconds since 1970 as a whole number"
        ) from None


def is_date(text: str) -> bool:
    """Return whether text is a YYYY-MM-DD date."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def make_fact_table(described: ReleaseFile) -> ReportSection:
    """Build the table of issuer, title and date."""
    return ReportSection(rows=[
        ("issuer", described.issuer or "not named"),
        ("date", described.date or "not stated"),
        ("made with", f"pmlopt {described.version}"),
        ("rows", f"{described.rows:,} in {described.data}"),
    ])  # fmt: skip


def list_signature_lines(described: ReleaseFile) -> Iterator[ReportSection]:
    """Yield file digests and signature lines."""
    digests = sorted(
        (name, digest) for name, digest in described.digests.items() if name not in REPORTS
    )
    yield ReportSection(
        "Signature",
        [
            "Who signs answers for this release, which consists of these files and of the statements above:"
        ],
        ("file", "SHA-256"),
        [*digests, (f"{DESCRIPTION}, without the reports", described.compute_seal)],
    )
    line = "_" * 40
    yield ReportSection(
        rows=[("name", described.issuer or line), ("place and date", line), ("signature", line)]
    )
