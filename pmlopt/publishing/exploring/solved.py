"""The points of an exploration from sweep results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pmlopt.core.display import format_nats, pluralize
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import InputError, MechanismError, SweepError
from pmlopt.measures.outcomes import list_outcome_warnings
from pmlopt.programs.certificate import ListedCertificate
from pmlopt.programs.declared_parts import count_sampled_people
from pmlopt.programs.program import Program
from pmlopt.programs.reports.pages import EXACT_COUNTS, list_warnings
from pmlopt.programs.result import Result
from pmlopt.publishing.exploring.exploration import CurvePoint, ExploredPart
from pmlopt.releases.estimation import people_needed
from pmlopt.sweeps import Sweep, SweepRow, sweep
from pmlopt.verification import load_saved

DEFAULT_HALF_WIDTH = 0.01
"""Of the intervals of estimated frequencies for which people are counted: one in a hundred."""

ROUNDED_COUNTS = (
    "Counts of people are rounded, as in a release, and designs are for the rounded shares."
)
"""What is stated of a page whose prior comes from a sample."""


@dataclass(frozen=True, eq=False)
class SweepAnswers:
    """The rows of a sweep with their loaded results.

    Attributes:
        table: the sweep.
        results: for each row the result with its certificate; None where its mechanism is not there.
    """

    table: Sweep
    results: tuple[Result[Any] | None, ...]

    @classmethod
    def read(cls, table: Sweep, folder: str | os.PathLike[str] | None) -> SweepAnswers:
        """Load the results of a sweep saved with `sweep(..., mechanisms=folder)`.

        Raises:
            SweepError: a mechanism is that of another sweep: its value is not that of its row.
        """
        found: list[Result[Any] | None] = []
        for place, row in enumerate(table.rows):
            path = None if folder is None else Path(folder) / f"{place:05d}.json"
            result = (
                load_saved(path) if path is not None and path.exists() and not row.failed else None
            )
            if result is not None and not (
                isinstance(result, Result) and result.value == row.value
            ):
                raise SweepError(
                    f"{path}: is not the mechanism of row {place}, whose value is {row.value}: give the "
                    "folder of this sweep"
                )
            found.append(result)
        return cls(table, tuple(found))

    @property
    def solved_rows(self) -> Iterator[tuple[SweepRow, Result[Any] | None]]:
        """Return the solved rows with their results."""
        pairs = zip(self.table.rows, self.results, strict=True)
        return ((row, result) for row, result in pairs if row.value is not None and not row.failed)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return warnings on certificates with exact sample counts."""
        told = (
            one is not None and count_sampled_people(one.certificate) is not None
            for one in self.results
        )  # fmt: skip
        return (EXACT_COUNTS,) if any(told) else ()

    @property
    def describe_failures(self) -> tuple[str, ...]:
        """Describe failed rows, with the first error."""
        failed = self.table.failed
        if not failed:
            return ()
        count = f"{len(failed)} of {pluralize(len(self.table.rows), 'point')}"
        return (
            f"{count} could not be solved and are left out; the first error: {failed[0].error}",
        )


def warn_of_exact_counts(*priors: Prior | None) -> tuple[str, ...]:
    """Return the warning that a page contains exact sample shares."""
    return (
        (EXACT_COUNTS,) if any(getattr(one, "samples", None) is not None for one in priors) else ()
    )


def solve_grid(builder: Callable[..., Program[Any]], grid: Any, **options: Any) -> SweepAnswers:
    """Solve a grid of programs, and keep the results.

    Raises:
        SweepError: no point could be solved, or as `sweep` does.
    """
    with TemporaryDirectory() as folder:
        found = SweepAnswers.read(sweep(builder, grid, mechanisms=folder, **options), folder)
    if not any(True for _ in found.solved_rows):
        raise SweepError(f"no point could be solved: {found.table.rows[0].error}")
    return found


def make_point(
    at: float,
    row: SweepRow,
    result: Result[Any] | None,
    half_width: float = DEFAULT_HALF_WIDTH,
    command: str = "",
    python: str = "",
) -> CurvePoint:
    """Build a curve point from a sweep row and its result.

    Args:
        at: where it is.
        row: of the sweep.
        result: the same with its certificate.
        half_width: for which people are counted, where frequencies can be estimated.
        command: of the point.
        python: the same.
    """
    assert row.value is not None
    plain = CurvePoint(
        at, row.value, row.bound, row.gap, row.level, row.status, command=command, python=python
    )
    if result is None:
        return plain
    certificate = result.certificate
    prior = result.certificate.listed_prior
    warned = list_outcome_warnings(result.outcome_summaries) if result.outcome_summaries else ()
    if isinstance(certificate, ListedCertificate) and prior is not None:
        warned = list_warnings(prior, certificate.privacy, result.outcome_summaries)
    return replace(
        plain,
        promise=certificate.statement,
        meanings=getattr(getattr(certificate, "privacy", None), "meanings", ()),
        facts=(*compute_facts(result, half_width), ("found by", row.solver or result.solver)),
        warnings=warned,
        parts=make_parts(result),
    )


def make_parts(result: Result[Any], name: str = "") -> tuple[ExploredPart, ...]:
    """Return the mechanism of a result as a part; empty where its letters are not listed."""
    mechanism = result.mechanism
    prior = result.certificate.listed_prior
    if not isinstance(mechanism, Mechanism):
        return ()
    known = prior is not None and prior.size == len(mechanism.inputs)
    return (ExploredPart.from_mechanism(name, mechanism, prior if known else None),)


def compute_facts(result: Result[Any], half_width: float) -> tuple[tuple[str, str], ...]:
    """Compute displayed facts: PML under the prior, and sample size for estimates."""
    prior = result.certificate.listed_prior
    mechanism = result.mechanism
    if not result.outcome_summaries or prior is None:
        return ()
    return (
        ("what the worst outcome reveals", format_nats(result.outcome_summaries[0].leakage)),
        (
            f"people for frequencies within {half_width:g}",
            _count_people(prior, mechanism, half_width),
        ),
    )


def _count_people(prior: Prior, mechanism: Mechanism, half_width: float) -> str:
    """Return the sample size for an estimate's half-width as text."""
    outcomes = int(mechanism.support.sum())
    if (
        outcomes < prior.size
    ):  # stated without the rank, which takes a second for hundreds of letters
        return f"no number suffices: {pluralize(outcomes, 'outcome')} cannot distinguish {prior.size} letters"
    try:
        return f"{people_needed(prior, mechanism, half_width):,}"
    except MechanismError as cause:
        return f"no number is enough: {str(cause).partition(' (')[0]}"
    except InputError as cause:
        return f"not planned: {cause}"
