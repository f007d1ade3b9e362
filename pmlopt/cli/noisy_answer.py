"""The command that answers counts, sums and means of a data file with noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np

from pmlopt.cli.data_options import DataOptions, Seed, warn_of_seed
from pmlopt.cli.group import main
from pmlopt.cli.options import ArgumentNote, add_command, json_option
from pmlopt.cli.printing import format_nats, format_number, print_json, print_table
from pmlopt.cli.reading import read_counts, read_prior
from pmlopt.cli.targets import TARGET
from pmlopt.cli.terminal import print_line
from pmlopt.core.files import disk
from pmlopt.core.files.csv_rows import encode_csv
from pmlopt.core.numbers.arrays import Label, parse_labels
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.core.numbers.arrays import FloatArray
    from pmlopt.core.numbers.counts import CountedTuples
    from pmlopt.data.prior import Prior
    from pmlopt.model.uncertainty.prior_set import PriorSet
    from pmlopt.releases.noise import QueryNoise

Row: TypeAlias = tuple[Label, ...]
"""The values of one record in the columns of the answers."""

HEADER = ("answer", "value", "low", "high")
"""The columns of the file that is written."""


@dataclass(frozen=True)
class Answer:
    """A count of classes, a sum or a mean of one column.

    Attributes:
        kind: "count", "sum" or "mean".
        column: the name of the column.
        classes: those that are counted, of a count.
        bounds: the least and the largest number, of a sum and a mean.
    """

    kind: str
    column: str
    classes: tuple[str, ...] = ()
    bounds: tuple[float, float] = (0.0, 0.0)

    @property
    def takes_occurring(self) -> bool:
        """Return whether the classes are those that occur."""
        return self.kind == "count" and not self.classes

    @property
    def names(self) -> list[str]:
        """Return a name for each number of the answer."""
        if self.kind == "count":
            return [f"count {self.column} {label}" for label in self.classes]
        return [f"{self.kind} {self.column}"]

    @property
    def extremes(self) -> tuple[Label, ...]:
        """Return two values whose answers are as far apart as those of any two."""
        return (self.classes[0], self.classes[-1]) if self.kind == "count" else self.bounds

    def list_contributions(self, values: Sequence[Label], people: int) -> FloatArray:
        """Return (n, k) what each of n values adds to the answer, on a grid on which sums are exact."""
        from pmlopt.releases.noise import round_contributions

        if self.kind == "count":
            strange = next((one for one in values if str(one) not in self.classes), None)
            if strange is not None:
                raise InputError(
                    f"the column {self.column!r} has the value {strange!r}, which is none of the classes of "
                    "--count: name all that there can be, or what occurs would be visible"
                )
            return np.array([[float(str(one) == name) for name in self.classes] for one in values])
        numbers = np.array([_read_number(value, self.column) for value in values])
        # the grid is that of the bounds, whatever the values are
        table = np.append(np.clip(numbers, *self.bounds), self.bounds)[:, None]
        return round_contributions(table, people)[: len(values)]


def _read_number(value: Label, column: str) -> float:
    """Return a value as a finite number."""
    try:
        number = float(value) if not isinstance(value, bool | tuple) else math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(
            f"the column {column!r} has the value {value!r}, and sums and means are of finite numbers"
        )
    return number


def _parse_count(text: str, public: bool) -> Answer:
    """Return the answer of an option `--count COLUMN=a,b,c`, or COLUMN where the classes are public."""
    column, equals, listed = text.partition("=")
    if public and column and not equals:
        return Answer("count", column)
    names = tuple(name.strip() for name in listed.split(","))
    if not equals or not column or not all(names) or len(set(names)) < len(names):
        raise InputError(
            f"--count {text!r}: give COLUMN=a,b,c with all classes there can be, each once; or COLUMN and "
            "--public-classes, which declares that it is public which ones occur"
        )
    return Answer("count", column, names)


def _parse_bounds(kind: str, text: str) -> Answer:
    """Return the answer of an option such as `--mean COLUMN=0..100`."""
    column, equals, bounds = text.rpartition("=")
    low, dots, high = bounds.partition("..")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = math.nan, math.nan
    if not (equals and dots and column and math.isfinite(ends[1] - ends[0]) and ends[0] < ends[1]):
        raise InputError(
            f"--{kind} {text!r}: give COLUMN=LOW..HIGH with numbers between which values are clipped, such "
            "as age=0..100"
        )
    return Answer(kind, column, bounds=ends)


@dataclass(frozen=True)
class RecordLaw:
    """What is known of one record.

    Attributes:
        columns: those of the answers.
        prior: of its letters; without letters, of two at which each answer is as far apart as it can be.
        over: the laws that it may have, or None for the prior only.
        scope: text on that.
        letters: its values in the columns; None where they may be any, of any law.
    """

    columns: Sequence[str]
    prior: Prior
    over: PriorSet | None
    scope: str
    letters: Sequence[Row] | None

    def select_values(self, rows: Iterable[Row], answer: Answer) -> list[Label]:
        """Return the values in an answer's column."""
        return [row[self.columns.index(answer.column)] for row in rows]


def _read_record_law(
    path: Path | None, delta: float | None, min_mass: float | None, answers: Sequence[Answer]
) -> RecordLaw:
    """Read the law of one record over the columns of the answers."""
    from pmlopt import AllPriors, Prior, confidence_ball
    from pmlopt.model.uncertainty import MinimumMass

    columns = list(dict.fromkeys(answer.column for answer in answers))
    if min_mass is not None:
        if path is not None or [one.kind for one in answers] != ["count"]:
            raise InputError(
                "--min-mass is about the classes of one --count, without --prior: leave out the others"
            )
        classes = answers[0].classes
        scope = f"it is in each class with probability {min_mass:g} or more"
        rows = [(name,) for name in classes]
        laws = MinimumMass(len(classes), min_mass)
        return RecordLaw(columns, Prior.uniform(len(classes), classes), laws, scope, rows)
    if path is None:
        if delta is not None:
            raise InputError(
                "--confidence-delta is about the sample of --prior: give that file, too"
            )
        return RecordLaw(columns, Prior.uniform(2), AllPriors(2), "whatever its law is", None)
    prior = read_prior(path) if delta is None else read_counts(path)
    over = None if delta is None else confidence_ball(prior, delta)
    rows = [label if isinstance(label, tuple) else (label,) for label in prior.labels]
    if any(len(row) != len(columns) for row in rows):
        raise InputError(
            f"{path}: its letters are not values of {', '.join(columns)}, the columns of the answers in the "
            "order in which they are first named"
        )
    scope = f"its values have the law of {path}" if over is None else over.scope
    return RecordLaw(columns, prior, over, scope, rows)


@add_command(main, "answer", extra=(json_option,), spends=True)
def answer_command(
    data: Annotated[Path, ArgumentNote("DATA")],
    epsilon: Annotated[float, "What all answers together may leak about any one record, in nats."],
    output: Annotated[Path, "The CSV file to write: answer, value, low, high.", TARGET],
    form: DataOptions,
    counts: Annotated[
        tuple[str, ...],
        "Count classes: COLUMN=a,b,c, all that there can be, fixed before the data was seen.",
        "--count",
    ] = (),
    sums: Annotated[
        tuple[str, ...],
        "A sum: COLUMN=LOW..HIGH; values are clipped to these numbers, fixed before the data was seen.",
        "--sum",
    ] = (),
    means: Annotated[
        tuple[str, ...],
        "A mean: COLUMN=LOW..HIGH, as for a sum; the number of records is public.",
        "--mean",
    ] = (),
    prior: Annotated[
        Path | None,
        "The law of one record, not from DATA: letter, and count or probability; of several columns, "
        "tuples. Left out, a record may have any law, as in differential privacy.",
    ] = None,
    confidence_delta: Annotated[
        float | None,
        "The counts of --prior are a sample: hold for the true law, but for this probability.",
    ] = None,
    min_mass: Annotated[
        float | None, "Of one --count: each record is in each class with this probability or more."
    ] = None,
    public_classes: Annotated[
        bool, "Declare that it is public which classes occur: --count COLUMN takes all of them."
    ] = False,
    confidence: Annotated[float, "Of each interval, over the noise."] = 0.95,
    seed: Seed = None,
) -> None:
    """Answer counts, sums and means of columns with noise.

    The noise is Laplace noise. The level is what all answers together leak about any one record of DATA (CSV,
    Parquet or Arrow); the other records may have any law that is independent of it. The number of records,
    the classes and the bounds are public. Intervals are for the answers in DATA, values clipped; no cell may
    be missing.
    """  # fmt: skip
    answers = [
        *(_parse_count(text, public_classes) for text in counts),
        *(_parse_bounds("sum", text) for text in sums),
        *(_parse_bounds("mean", text) for text in means),
    ]
    if not answers:
        raise InputError("there is nothing to answer: give --count, --sum or --mean")
    if not 0 < confidence < 1:
        raise InputError(f"--confidence {confidence:g}: give a number between 0 and 1")
    warn_of_seed(seed)
    columns = list(dict.fromkeys(answer.column for answer in answers))
    table = form.count_tuples(data, columns)
    answers = [_find_classes(one, table, columns) for one in answers]
    law = _read_record_law(prior, confidence_delta, min_mass, answers)
    people = sum(table.values())
    if people == 0:
        raise InputError(f"{data}: has no records")
    noise = _calibrate(answers, law, people, epsilon)
    level = noise.level(law.prior, law.over)
    released = noise.release(_answer_exactly(answers, law, table, people), seed)
    rows = _list_rows(answers, released, noise.scales, people, confidence)
    disk.atomic_write(output, encode_csv([HEADER, *rows]))
    if print_json("noisy-answer", {
        "level": level, "scope": law.scope, "scales": list(noise.scales), "people": people,
        "confidence": confidence,
        "answers": [dict(zip(HEADER, row, strict=True)) for row in rows],
    }):  # fmt: skip
        return
    print_table(
        ["answer", "value", f"{confidence:.0%} interval"],
        [(name, format_number(value), f"{format_number(low)} to {format_number(high)}")
         for name, value, low, high in rows],
    )  # fmt: skip
    print_line(
        f"All answers together leak at most {format_nats(level)} about any one record, {law.scope}. The "
        "other records may have any law that is independent of that record. Public are the number of records "
        f"({people}), the classes and the bounds. Intervals are over the noise: they are for these "
        f"{people} records, and for no larger population. Written to {output}."
    )


def _find_classes(answer: Answer, table: CountedTuples, columns: Sequence[str]) -> Answer:
    """Return the answer with the classes that occur, where it states none."""
    if not answer.takes_occurring:
        return answer
    letters = table.letters[columns.index(answer.column)]
    return replace(answer, classes=tuple(map(str, letters)))


def _calibrate(
    answers: Sequence[Answer], law: RecordLaw, people: int, epsilon: float
) -> QueryNoise:
    """Return the least noise for a level."""
    from pmlopt.releases.noise import QueryNoise, derive_differences

    tables = []
    for one in answers:
        values = one.extremes if law.letters is None else law.select_values(law.letters, one)
        tables.append(derive_differences(one.list_contributions(values, people)))
    return QueryNoise.calibrate(tables, law.prior, epsilon, law.over)


def _answer_exactly(
    answers: Sequence[Answer], law: RecordLaw, table: Mapping[Row, int], people: int
) -> list[FloatArray]:
    """Return the exact answers; sums in place of means."""
    if law.letters is not None:
        known = {tuple(map(_normalize, row)) for row in law.letters}
        strange = next((row for row in table if tuple(map(_normalize, row)) not in known), None)
        if strange is not None:
            raise InputError(
                f"a record has the values {', '.join(map(str, strange))}, for which --prior has no letter: "
                "give a law with every letter that can occur"
            )
    # sums of what is on the grid are exact
    counts = np.array(list(table.values()), dtype=float)
    return [
        counts @ one.list_contributions(law.select_values(table, one), people) for one in answers
    ]


def _normalize(value: Label) -> Label:
    """Return a value as a label that is read from text."""
    return parse_labels([str(value)])[0]


def _list_rows(
    answers: Sequence[Answer],
    released: Sequence[FloatArray],
    scales: Sequence[float],
    people: int,
    confidence: float,
) -> list[tuple[str, float, float, float]]:
    """List name, value and interval of each number: `P(|noise| > t) = e^(-t / scale)`."""
    rows = []
    for answer, values, scale in zip(answers, released, scales, strict=True):
        part = people if answer.kind == "mean" else 1
        half = -math.log1p(-confidence) * scale
        for name, value in zip(answer.names, values.tolist(), strict=True):
            rows.append((name, value / part, (value - half) / part, (value + half) / part))
    return rows
