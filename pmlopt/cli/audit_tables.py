"""The tables and sentences of an audit, printed and on its page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pmlopt.cli.printing import MAX_TABLE_COLUMNS, format_nats, format_number, print_table
from pmlopt.cli.terminal import print_line
from pmlopt.core.display import format_nats as format_short_nats
from pmlopt.core.numbers.arrays import FloatArray, Label, join_words, make_label_key

if TYPE_CHECKING:
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.data.prior import Prior
    from pmlopt.data.secret import Secret
    from pmlopt.measures.outcomes import OutcomeSummary
    from pmlopt.model.privacy import Requirement

MEASURE_NAMES = {
    "pml": "the PML (pointwise maximal leakage)",
    "ldp": "the level of LDP (local differential privacy)",
    "maximal_leakage": "the maximal leakage",
}
"""Names of measures in sentences; others are named as in the table."""


@dataclass(frozen=True)
class AuditTables:
    """What an audit of a matrix found, as tables and sentences.

    Attributes:
        name: of the file with the matrix.
        prior: of the true values; None where no level depends on it.
        source: the line on the prior.
        mechanism: that is audited.
        levels: in nats, by measure.
        secret: that is protected in place of the data.
        claim: that was decided; None without one.
    """

    name: str
    prior: Prior | None
    source: str
    mechanism: Mechanism
    levels: Mapping[str, float]
    secret: Secret | None = None
    claim: AuditedClaim | None = None

    @cached_property
    def summaries(self) -> list[OutcomeSummary]:
        """Return what each output reveals; empty without a prior."""
        from pmlopt.measures.outcomes import summarize_outcomes

        return [] if self.prior is None else summarize_outcomes(self.prior, self.mechanism)

    @property
    def shape_line(self) -> str:
        """Return the line on the matrix."""
        inputs, outputs = self.mechanism.inputs, self.mechanism.outputs
        return f"{self.name}: {len(inputs)} true values, {len(outputs)} outputs"

    @property
    def prior_line(self) -> str:
        """Return the line on the prior, or on its absence."""
        if self.prior is None:
            return (
                "These levels need no prior. For all others, such as pml, give the prior by --prior or "
                "--counts."
            )
        return self.source

    @property
    def prior_record(self) -> dict[str, Any] | None:
        """Return the prior and how it was read, as plain data; None without one."""
        if self.prior is None:
            return None
        return {
            "source": self.source,
            "people": self.prior.samples,
            "letters": list(self.prior.labels),
            "shares": self.prior.pmf.tolist(),
        }

    def list_level_rows(self) -> tuple[Sequence[str], list[tuple[str, ...]]]:
        """Return the head and rows of the table of levels."""
        from pmlopt import measures

        letters = self.mechanism.inputs if self.prior is None else self.prior.labels
        infinite = describe_ruled_out(self.mechanism, letters)
        cells = {
            name: format_nats(level)
            + (
                f": {infinite}"
                if infinite and name in ("ldp", "lip_lower") and level == math.inf
                else ""
            )
            for name, level in self.levels.items()
        }
        if self.secret is None or self.prior is None:
            return ("measure", "level"), list(cells.items())
        of_data = measures.audit(self.prior, self.mechanism).levels
        return ("measure", "about", "level"), [
            (name, "the data" if name in of_data else self.secret.name, cell)
            for name, cell in cells.items()
        ]

    @cached_property
    def output_records(self) -> list[dict[str, Any]]:
        """Return what is known of each output, in descending order of the leakage, also about a secret.

        The leakage is about the data, and `about_secret` about the secret.
        """
        from pmlopt.measures import pointwise_leakage

        if self.prior is None:
            return []
        summaries = {make_label_key(one.output): one for one in self.summaries}
        law: FloatArray = self.prior.pmf @ self.mechanism.matrix
        leakage = pointwise_leakage(self.prior, self.mechanism)
        own = None if self.secret is None else pointwise_leakage(self.secret, self.mechanism)
        rows = []
        for y, label in enumerate(self.mechanism.output_names):
            if law[y] <= 0:
                continue
            one = summaries[make_label_key(label)]
            row: dict[str, Any] = {
                "output": label, "probability": float(law[y]), "leakage": float(leakage[y]),
                "value": one.letter, "before": one.before, "after": one.after,
                "rules_out": list(one.excluded),
            }  # fmt: skip
            rows.append(row if own is None else {**row, "about_secret": float(own[y])})
        # outputs that differ in the last digits stay in their order, on every machine
        name = "leakage" if own is None else "about_secret"
        return sorted(rows, key=lambda row: -round(row[name], 12))

    def list_output_rows(
        self, most: int | None = None
    ) -> tuple[Sequence[str], list[tuple[str, ...]]]:
        """Return the head and the first rows of the table of outputs."""
        about = [] if self.secret is None else [f"about {self.secret.name}"]
        excludes = any(row["rules_out"] for row in self.output_records)
        head = [
            "output",
            "probability",
            "leakage" if self.secret is None else "about the data",
            *about,
        ]
        head += ["true value", "before", "after", *(["rules out"] if excludes else [])]
        rows = [
            (
                join_words([row["output"]]),
                format_number(row["probability"]),
                format_short_nats(row["leakage"]),
                *(format_short_nats(row["about_secret"]) for _ in about),
                join_words([row["value"]]),
                f"{row['before']:.4g}",
                "certain" if row["after"] == 1 else f"{row['after']:.4g}",
                *([join_words(row["rules_out"], 3) if row["rules_out"] else ""] if excludes else []),
            )
            for row in self.output_records[:most]
        ]  # fmt: skip
        return head, rows

    def list_warnings(self) -> tuple[str, ...]:
        """Return the warnings on outputs, also on those that a short table leaves out."""
        from pmlopt.measures.outcomes import list_outcome_warnings

        return list_outcome_warnings(self.summaries)

    def print_all(self) -> None:
        """Print the tables: levels and, with a prior, the most revealing outputs."""
        print_line(self.shape_line)
        if self.prior is not None:
            print_line(self.prior_line)
        print_table(*self.list_level_rows())
        if self.prior is None:
            print_line(self.prior_line)
            return
        if self.secret is not None:
            found = describe_secret_level(self.secret, self.mechanism)
            print_line(
                f"The output {found['output']} reveals most of {self.secret.name}, for the value "
                f"{found['value']}."
            )
        print_table(*self.list_output_rows(MAX_TABLE_COLUMNS))
        if len(self.output_records) > MAX_TABLE_COLUMNS:
            for line in self.list_warnings():
                print_line(f"Warning: {line}")


@dataclass(frozen=True)
class AuditedClaim:
    """A claimed bound and its verdict.

    Attributes:
        requirement: that is claimed.
        levels: its levels, in nats.
        holds: the verdict, decided without a tolerance.
        arithmetic: in which it was decided, in words.
        rows: the sentence on rows that do not sum to one; empty where they do.
        violation: what breaks the claim most; empty where it holds.
        measured: the levels of the audit, which other measures are read from.
    """

    requirement: Requirement
    levels: Mapping[str, float]
    holds: bool
    arithmetic: str
    rows: str = ""
    violation: str = ""
    measured: Mapping[str, float] = field(default_factory=dict)

    def list_sentences(self) -> Iterator[str]:
        """Yield the verdict, the excess, what other measures say, and the notes."""
        limits, scope = self.requirement.limits, self.requirement.scope
        if self.holds:
            stated = ", ".join(f"{name} at most {limit!r}" for name, limit in limits.items())
            yield f"The claim holds: {f'{stated} nats {scope}'.rstrip()}, proved in {self.arithmetic}."
        else:
            yield from self._list_excesses()
        yield from self._compare_measures()
        if self.rows:
            yield self.rows
        if self.violation:
            yield f"By name: {self.violation}."

    def _list_excesses(self) -> Iterator[str]:
        """Yield which level is above its limit, and whether rounding explains it."""
        limits, scope = self.requirement.limits, self.requirement.scope
        excess = {name: self.levels[name] - limit for name, limit in limits.items()}
        over = max(excess.values())
        # those that rounding alone would not explain; else the one that is nearest to its limit
        shown = [name for name, by in excess.items() if by > 0] or [
            max(excess, key=excess.__getitem__)
        ]
        found = " and ".join(
            f"{MEASURE_NAMES.get(name, name)} is "
            + (f"{self.levels[name]:.9g} nats" if math.isfinite(self.levels[name]) else "infinite")
            + f", above {limits[name]!r}"
            for name in shown
        )
        yield f"The claim FAILS: {found}{f' (claimed {scope})' if scope else ''}."
        if over < 1e-9:
            yield (
                f"It is missed by less than {max(over, 1e-15):.0e} nats: rounding, in the matrix or in the "
                "claim. A claim that is rounded up would hold."
            )

    def _compare_measures(self) -> Iterator[str]:
        """Yield for which other measures the same number would hold, where the claim is of a plain one."""
        limits = self.requirement.limits
        if len(limits) != 1 or self.requirement.scope or not limits.keys() <= MEASURE_NAMES.keys():
            return
        ((own, limit),) = limits.items()
        others = {
            name: self.measured[name]
            for name in MEASURE_NAMES
            if name in self.measured and name != own
        }
        above = [name for name, level in others.items() if level > limit + 1e-12]
        within = [name for name in others if name not in above]
        parts = [f"would hold for {join_words(within, word='and')}"] if within else []
        parts += [f"would fail for {join_words(above, word='and')}"] if above else []
        if parts:
            yield f"The claim is decided for {own}; the same number {' and '.join(parts)}."


def describe_rows(matrix: FloatArray, exact: bool) -> str:
    """Return the sentence on rows that do not sum to one; empty where they do, or their decimals.

    The floats of a row such as 0.7, 0.2, 0.1 sum to one but for their last binary digit.
    """
    if exact:
        return ""
    max_decimal_entries = 200_000  # their sums take about a microsecond an entry
    if matrix.size <= max_decimal_entries and all(
        sum(map(Fraction, map(repr, row))) == 1 for row in matrix.tolist()
    ):
        return ""
    off = max(abs(math.fsum(row) - 1) for row in matrix.tolist())
    return (
        f"The rows do not sum to exactly one, but up to {max(off, 1e-16):.1g}: the verdict is on the numbers "
        "as they stand."
    )


def describe_correction(given: FloatArray, saved: FloatArray) -> str:
    """Return the sentence on how a saved matrix differs from the given one; empty where it does not."""
    moved = float(np.abs(given - saved).max())
    if moved == 0:
        return ""
    return f" Its entries differ from the given ones by at most {moved:.1g}, so that each row sums to one."


def describe_ruled_out(mechanism: Mechanism, letters: Sequence[Label]) -> str:
    """Name an output that never comes from some true value, one of `letters`; empty without one."""
    outputs = mechanism.output_names
    for y in np.flatnonzero(mechanism.support).tolist():
        missing = np.flatnonzero(mechanism.matrix[:, y] <= 0)
        if len(missing):
            value = join_words([letters[int(missing[0])]])
            return f"the output {join_words([outputs[y]])} rules out {value}"
    return ""


def describe_secret_level(secret: Secret, mechanism: Mechanism) -> dict[str, Any]:
    """Describe a secret's leakage level, with the value and outcome that attain it."""
    from pmlopt.measures import secret_witness

    witness = secret_witness(secret, mechanism.with_named_outputs())
    return {
        "secret": secret.name,
        "values": list(secret.values),
        "level": witness.level,
        "value": witness.value,
        "output": witness.outcome,
    }


def write_audit_page(path: Path, tables: AuditTables, files: Sequence[Path]) -> None:
    """Write an audit as a page, whatever its verdict.

    Args:
        path: to write, .html or .md.
        tables: of the audit.
        files: that were read, which the page names with their digests.
    """
    from pmlopt import __version__
    from pmlopt.core.files.disk import atomic_write, digest_file
    from pmlopt.programs.reports.pages import EXACT_COUNTS, ReportSection, render_page

    claim = tables.claim
    sentences = [] if claim is None else list(claim.list_sentences())
    read = [(str(file), digest_file(file)) for file in files if file.is_file()]
    sampled = tables.prior is not None and tables.prior.samples is not None
    warnings = (*((EXACT_COUNTS,) if sampled else ()), *tables.list_warnings())
    outputs = []
    if tables.prior is not None:
        outputs = [ReportSection("What an output reveals", (), *tables.list_output_rows(100))]
    sections = [
        ReportSection("", [tables.shape_line + "."]),
        *([ReportSection("", sentences[:1], kind="promise")] if sentences else []),
        *([ReportSection("", sentences[1:])] if sentences[1:] else []),
        ReportSection("The prior", [tables.prior_line]),
        ReportSection("Levels", (), *tables.list_level_rows()),
        *outputs,
        *([ReportSection("", warnings, kind="warning")] if warnings else []),
        ReportSection("What an audit does not show", [
            "Whether the program that draws the outputs draws them by this matrix.",
            "Whether the prior is that of the people.",
            "What several releases about one person reveal together.",
        ], kind="list"),
        ReportSection(
            "What was read", [f"pmlopt {__version__} read these files:"], ("file", "SHA-256"), read
        ),
    ]  # fmt: skip
    page = render_page(f"Audit of {tables.name}", sections, path.suffix.lower())
    atomic_write(path, page)
