"""Plan files of releases: which columns are released, kept or dropped."""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from pmlopt.core.files.disk import read_bytes
from pmlopt.core.frames import Missing
from pmlopt.core.numbers.arrays import Label, Labels, abbreviate
from pmlopt.core.records.fields import Context, Range
from pmlopt.core.records.record import read_record
from pmlopt.data.prior import Prior
from pmlopt.errors import FileFormatError, InputError
from pmlopt.library.logarithms import parse_logarithm
from pmlopt.library.shorthand import SHORTHAND_CONSTRUCTORS, Count
from pmlopt.model.privacy import PML, Requirement
from pmlopt.model.uncertainty import L1Ball
from pmlopt.model.utility import Utility, as_utility
from pmlopt.programs.designs import design
from pmlopt.programs.solving import solve
from pmlopt.publishing.household_columns import count_households
from pmlopt.publishing.joint_columns import JointColumn, RowLimit, count_stated_rows, design_columns
from pmlopt.publishing.releasing import Columns, Made
from pmlopt.publishing.rounded_counts import (
    bound_share_distance,
    choose_rounding_step,
    round_counts,
)
from pmlopt.publishing.stated_law import make_confidence_ball, restate_ledger_law
from pmlopt.releases.accounts.ledger_entries import build_remaining_requirement
from pmlopt.tables.counting import count_tuples, sort_tuples
from pmlopt.tables.reading import open_table
from pmlopt.tables.streams import CsvFormat

SETS_OF_SAMPLES = ("confidence-ball", "confidence-box")
"""Short forms of sets of priors that are computed from the counts of a sample."""


@dataclass(frozen=True)
class PlannedColumn:
    """The plan of one released column or column tuple.

    Attributes:
        columns: of the data; left out, the column that has the name of the table.
        mechanism: a file of a mechanism, next to the plan; or it is designed for the law of the letters:
        epsilon: the bound of a PML requirement in nats,
        confidence_delta: with it, the bound holds for the true law of which the people are a sample, except
            with this probability over the sample (at most one half),
        privacy: or any requirement, as a problem file has it,
        utility: a name (hamming, absolute, squared, mutual-information, estimation-error), or as a
            problem file has it; "model:FORMULA" of several columns is the error of its coefficients
            (`pmlopt.estimation.coefficient_error`), and runs the formula as code,
        outputs: their number or labels; left out, the letters.
        within_ledger: whether it is designed within what the ledger of the plan leaves to each of its people,
            with or without epsilon or privacy.
    """

    columns: tuple[str, ...] | None = None
    mechanism: str | None = None
    epsilon: float | None = None
    confidence_delta: Annotated[float, Range(0, 0.5)] | None = None
    privacy: Requirement | None = None
    utility: Utility | str | None = None
    outputs: Count | Labels | None = None
    within_ledger: bool = False

    def __post_init__(self) -> None:
        designed = {
            name: getattr(self, name) for name in ("epsilon", "privacy", "utility", "outputs")
        }
        given = [name for name, value in designed.items() if value is not None]
        if self.mechanism is not None and (given or self.confidence_delta is not None):
            raise InputError(
                f"a mechanism is given, and {(*given, 'confidence_delta')[0]} to design one: give one"
            )
        bounds = (self.epsilon is not None) + (self.privacy is not None)
        if self.mechanism is None and (bounds > 1 or (bounds == 0 and not self.within_ledger)):
            raise InputError(
                "give epsilon or privacy, one of them, or the file of a mechanism; or a total, and none of "
                "these for any column"
            )
        if self.mechanism is not None and self.within_ledger:
            raise InputError(
                "a mechanism is given, and within_ledger designs one: give one of them"
            )
        if self.mechanism is None and self.utility is None:
            raise InputError(
                'give a utility, what must stay useful: "estimation-error" (frequencies), "hamming", '
                '"absolute" (numbers), ...'
            )
        if self.confidence_delta is not None and self.epsilon is None:
            raise InputError("confidence_delta goes with epsilon")

    def make_mechanism(
        self,
        prior: Prior,
        folder: Path,
        ball: Callable[[Prior, float], L1Ball],
        remaining: Callable[[Prior], Requirement] | None = None,
        columns: Sequence[str] = (),
    ) -> Made:
        """Load the mechanism, or design it for a prior within remaining budgets.

        Args:
            prior: that is stated.
            folder: of files.
            ball: what holds the law of the population, around the prior, except with a probability.
            remaining: what the ledger leaves, where the design is to fit in it.
            columns: the parts of the letters.
        """
        if self.mechanism is not None:
            return folder / self.mechanism
        privacy = self.privacy
        if self.epsilon is not None:
            over = None if self.confidence_delta is None else ball(prior, self.confidence_delta)
            privacy = PML(self.epsilon, over)
        if self.within_ledger:
            if remaining is None:
                raise InputError(
                    "within_ledger designs for what a ledger leaves: give the ledger, too"
                )
            left = remaining(prior)
            privacy = left if privacy is None else privacy & left
        assert privacy is not None
        return solve(design(prior, privacy, self._read_utility(prior, columns), self.outputs))

    def _read_utility(self, prior: Prior, columns: Sequence[str]) -> Utility:
        """Read the utility: by its name, or the error of coefficients of a formula."""
        assert self.utility is not None
        if not isinstance(self.utility, str) or not self.utility.startswith("model:"):
            return as_utility(self.utility)
        from pmlopt.releases.estimation.model_designs import coefficient_error

        return coefficient_error(prior, self.utility.removeprefix("model:"), columns)


@dataclass(frozen=True)
class ReleasePlan:
    """The content of a plan file.

    Attributes:
        release: a table for each column that is released, by its name. Its keys are utility, outputs,
            epsilon, confidence_delta (the level holds for the population of which the people are a sample,
            except with this probability), privacy, mechanism (a file of one that was designed before),
            columns (several through one mechanism) and within_ledger. Of columns that are designed together
            they are utility, weight (how much its loss counts; by default one over the loss of releasing
            nothing) and limit (nats of what is revealed of this column alone).
        keep: columns that stay, in clear.
        drop: columns that are not released. Every column of the data is in one of the three.
        total: the largest level of all releases together about the tuple of all letters, in nats. Where no
            table has a bound of its own, the columns are designed together for it.
        law: a data file with the same columns, next to the plan, for the law of the letters; left out, the
            data that are released.
        ledger: the file of a ledger, next to the plan, that must allow the release, and then records it.
        person_column: the column with the numbers of its people, from 0; left out, the rows are all of
            them in order.
        title: of the report.
        issuer: who answers for the release, named in the report.
        exact_counts: whether the exact number of people with each letter is published; else counts are
            rounded, and mechanisms are designed for the rounded ones.
        keep_order: whether the rows keep the order of the data, which may reveal what these are sorted by;
            else they have a uniformly random order.
        margins: of columns that are designed together, the groups of which cross tables are to be estimated.
        group: the column that names the household of each row, or another group of rows of people who depend
            on each other: the total counts what all rows of a group reveal about one member.
        groups: of columns that are designed together, a partition: a mechanism for each group.
        about: of columns that are designed together, by a name, tables with columns and the limit of what is
            revealed of them, or with classes, lists of their values, of the class of a row.
        labels: whether value labels of a file of SPSS, Stata or SAS are the letters, in place of codes.
    """

    release: Mapping[str, Mapping[str, Any]]
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    total: Annotated[float, Range(0)] | None = None
    law: str | None = None
    ledger: str | None = None
    person_column: str | None = None
    title: str = ""
    issuer: str = ""
    exact_counts: bool = False
    keep_order: bool = False
    margins: tuple[tuple[str, ...], ...] | None = None
    groups: tuple[tuple[str, ...], ...] | None = None
    group: str | None = None
    about: Mapping[str, RowLimit] | None = None
    labels: bool = False
    folder: Path = field(default=Path(), init=False, compare=False)

    def __post_init__(self) -> None:
        if not self.release:
            raise InputError("release has no table: give one for each column that is released")
        if not self.is_joint and (self.margins, self.groups, self.about) != (None, None, None):
            raise InputError(
                "margins, groups and about are of columns that are designed together: give a total, and no "
                "epsilon, privacy or mechanism for any column"
            )

    @property
    def is_joint(self) -> bool:
        """Return whether the columns are designed together: a total, and no bound for any column."""
        own = {"epsilon", "privacy", "mechanism", "within_ledger"}
        return self.total is not None and not any(
            own & table.keys() for table in self.release.values()
        )

    def with_options(self, **values: Any) -> ReleasePlan:
        """Return a copy with replaced options; None keeps a value."""
        given = {name: value for name, value in values.items() if value is not None}
        changed = replace(self, **given)
        # `replace` leaves out fields that are no arguments, and paths are relative to this folder
        object.__setattr__(changed, "folder", self.folder)
        return changed

    def choose_format(self, form: CsvFormat | None) -> CsvFormat:
        """Return how data files are read: as is given, with labels as letters where the plan says so."""
        given = form or CsvFormat()
        return replace(given, labels=given.labels or self.labels)

    def make_mechanisms(
        self, data: Any, missing: Missing = "refuse", form: CsvFormat | None = None
    ) -> dict[Columns, Made]:
        """Load or design the mechanism of each release.

        Args:
            data: the file or frame that is released.
            missing: what becomes of missing cells, as for `column_counts`.
            form: of CSV files.

        Raises:
            InputError: a table of the plan is wrong; the message names the key.
            SolverError: a design cannot be solved.
        """
        form = self.choose_format(form)
        found: dict[Columns, Made] = {}
        taken = {name: _parse_columns(name, table) for name, table in self.release.items()}
        source = data if self.law is None else self.folder / self.law
        if self.is_joint:
            return self._design_together(data, source, missing, form)
        with open_table(source, form) as rows:
            people = count_tuples(
                rows, [one for columns in taken.values() for one in columns], missing
            )
        # one pass over the data: the counts of each release are sums of those of the tuples
        numbers = np.array(list(people.values()), dtype=np.int64)
        sample = int(numbers.sum())
        # mechanisms are designed for the counts that are published, so a reader can verify them
        step = 1 if self.exact_counts else choose_rounding_step(sample)
        rounded = round_counts(numbers, step, list(people))
        stated = dict(zip(people, rounded.tolist(), strict=True))
        distance = bound_share_distance(rounded, step)

        def make_ball(prior: Prior, delta: float) -> L1Ball:
            return make_confidence_ball(prior, sample, distance, step, delta)

        # `first` is where the columns of this release begin in the tuples
        first = 0
        for name, columns in taken.items():
            exact = _sum_counts(people, people.letters, first, len(columns))
            counts = _sum_counts(stated, people.letters, first, len(columns))
            first += len(columns)
            table = self.release[name]
            # People of whom each may have a value of their own; a column of more such values is an id, and no
            # letter.
            if "mechanism" not in table and sample == len(exact) > 50:
                raise InputError(
                    f"each of {sample:,} people has a value of their own: drop the column, or group it"
                )
            if not self.exact_counts and _needs_sample(table.get("privacy")):
                raise InputError(
                    f"release.{name}.privacy: a confidence set needs the exact counts, which are not "
                    "published: give epsilon and confidence_delta, which allow for the rounding, or "
                    "exact_counts = true"
                )
            # rounded counts are no sample: a prior with a sample size would promise too much
            make_prior = Prior.from_counts if self.exact_counts else Prior.from_weights
            prior = make_prior(list(counts.values()), list(counts))
            context = Context(
                {"labels": None, "prior": prior, **prior.context.given},
                complete=False,
                error=InputError,
                number=parse_logarithm,
                forms=SHORTHAND_CONSTRUCTORS,
            )
            planned = read_record(PlannedColumn, table, f"release.{name}", context)
            found[columns] = planned.make_mechanism(
                prior, self.folder, make_ball, self._remaining_requirement(data, form), columns
            )
        return found

    def _design_together(
        self, data: Any, source: Any, missing: Missing, form: CsvFormat | None
    ) -> dict[Columns, Made]:
        """Design the columns together, for the rounded counts of their tuples."""
        assert self.total is not None
        context = Context(complete=False, error=InputError, number=parse_logarithm)
        columns = {
            name: read_record(JointColumn, _name_utility(table), f"release.{name}", context)
            for name, table in self.release.items()
        }
        stated = count_stated_rows(source, list(columns), missing, form, self.exact_counts)
        households = count_households(
            data, self.group, list(columns), missing, form, self.exact_counts
        )
        about = {
            name: (one.build_function(name, list(columns), stated), one.limit)
            for name, one in (self.about or {}).items()
        }
        return {
            **design_columns(
                stated, columns, self.total, self.margins, self.groups, households, about
            )
        }

    def _remaining_requirement(
        self, data: Any, form: CsvFormat | None
    ) -> Callable[[Prior], Requirement] | None:
        """Return the function of remaining ledger budgets; None without a ledger."""
        if self.ledger is None:
            return None
        # a ledger has one secret, and here it is the tuple: no single column can be bounded by it
        if len(self.release) > 1:

            def refuse_prior(prior: Prior) -> Requirement:
                raise InputError(
                    f"the ledger is about the tuples of {len(self.release)} columns, and one is designed on "
                    f"{abbreviate(prior.labels)}: release them as one tuple, by `columns`"
                )

            return refuse_prior
        path = self.folder / self.ledger

        def build_remaining(prior: Prior) -> Requirement:
            restate = None if self.exact_counts else restate_ledger_law
            return build_remaining_requirement(path, prior, data, self.person_column, form, restate)

        return build_remaining


def _name_utility(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the table of a column, with its utility by its name where that is all that is given."""
    utility = table.get("utility")
    if isinstance(utility, Mapping) and utility.keys() == {"kind"}:
        return {**table, "utility": utility["kind"]}
    return table


def _sum_counts(
    people: Mapping[Labels, int],
    letters: Sequence[Sequence[Label]],
    first: int,
    width: int,
) -> dict[Label, int]:
    """Sum population counts over other columns.

    Args:
        people: the counts of tuples.
        letters: of each column, in order.
        first: where the columns that are kept begin.
        width: how many they are.
    """
    counts: Counter[Labels] = Counter()
    for values, number in people.items():
        counts[values[first : first + width]] += number
    ordered = sort_tuples(counts, letters[first : first + width])
    return {own[0] if width == 1 else own: counts[own] for own in ordered}


def _needs_sample(value: Any) -> bool:
    """Return whether a requirement's field is a confidence set, by its name."""
    if isinstance(value, Mapping):
        return value.get("kind") in SETS_OF_SAMPLES or any(map(_needs_sample, value.values()))
    return isinstance(value, list | tuple) and any(map(_needs_sample, value))


_CONTEXT = Context(complete=False, error=InputError)


def read_plan(path: str | os.PathLike[str]) -> ReleasePlan:
    """Read a TOML plan file, strictly.

    Raises:
        FileFormatError: it cannot be read, or is no TOML.
        InputError: a key is missing, not known, or of another type; the message names it.
    """
    try:
        data = tomllib.loads(read_bytes(path).decode())
    except (ValueError, RecursionError) as cause:
        raise FileFormatError(f"{path}: is not a whole TOML file: {cause}") from None
    if isinstance(data.get("release"), list):
        raise InputError(
            f"{path}: [[release]] begins a list: write a table for each column, by its name: "
            f"[release.{_find_column_name(data['release'])}]"
        )
    try:
        plan = read_record(ReleasePlan, data, "", _CONTEXT)
    except InputError as cause:
        raise InputError(f"{path}: {cause}") from None
    object.__setattr__(plan, "folder", Path(path).parent)
    return plan


def _find_column_name(tables: Sequence[Any]) -> str:
    """Return a name that a list of tables states for its first column, for a message."""
    first = tables[0] if tables and isinstance(tables[0], Mapping) else {}
    names = (first.get(key) for key in ("column", "name"))
    return next((name for name in names if isinstance(name, str) and name.isidentifier()), "NAME")


def _parse_columns(name: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    """Parse the columns of a planned release."""
    if "columns" not in table:
        return (name,)
    found = read_record(tuple[str, ...], table["columns"], f"release.{name}.columns", _CONTEXT)
    if not found:
        raise InputError(f"release.{name}.columns names no column")
    return found
