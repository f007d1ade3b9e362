"""Estimation from a release folder, and from the rows of released data."""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core.display import format_row_share
from pmlopt.core.files import disk
from pmlopt.core.frames import MISSING_LETTER, Missing
from pmlopt.core.numbers.arrays import Label, Labels, indices_of, join_words, parse_labels
from pmlopt.data.labelled import LabelledArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import FileFormatError, InputError
from pmlopt.publishing.checking import (
    assess_described_fit,
    count_outcomes,
    describe_fit,
    find_released_data,
    load_listed_matrix,
)
from pmlopt.publishing.folder import (
    DESCRIPTION,
    ReleasedMechanism,
    ReleaseFile,
    find_mechanism_file,
    find_release_of,
)
from pmlopt.publishing.letter_names import make_namer
from pmlopt.publishing.page import describe_rounding
from pmlopt.publishing.release_fit import FALSE_ALARM_PROBABILITY
from pmlopt.releases import compose_attributes
from pmlopt.releases.estimation import Estimate, FittedModel, estimate, model
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables.counting import count_tuples
from pmlopt.tables.reading import find_column, list_data_files, open_table, read_texts
from pmlopt.tables.streams import CsvFormat
from pmlopt.tables.weights import check_weights, parse_weight


@dataclass(frozen=True)
class ReleasedRows:
    """How many rows of released data have the same cells.

    Attributes:
        counts: by the outputs, then the group if there is one, and the weight if there is one.
        where: the data, for messages.
        groups: the values of the group in order; None where there is no group.
        weighted: whether there is a weight.
        left_out: how many rows with a missing cell were left out, in words; empty without any.
    """

    counts: Mapping[Labels, int]
    where: str
    groups: Labels | None = None
    weighted: bool = False
    left_out: str = ""

    def make_sample(self, mechanism: Mechanism) -> dict[str, Any]:
        """Return the arguments of `estimate` that are this sample: counts, or outputs and weights."""
        end = len(next(iter(self.counts))) - self.weighted
        labels = tuple(key[0] if end == 1 else key[:end] for key in self.counts)
        numbers = list(self.counts.values())
        if not self.weighted:
            return {"counts": LabelledArray(numbers, (labels,), self.where, text=True)}
        weights = [parse_weight(key[-1], f"{self.where}: a weight") for key in self.counts]
        places = indices_of(
            labels, mechanism.outputs, f"{self.where}: the released values", InputError, text=True
        )
        outputs = (mechanism.outputs[place] for place in places)
        return {
            "released": [
                one for one, number in zip(outputs, numbers, strict=True) for _ in range(number)
            ],
            "weights": np.repeat(weights, numbers),
        }

    def split_by_group(self) -> dict[Label, ReleasedRows]:
        """Return the rows of each group, in the order of the groups."""
        place = -1 - self.weighted
        found: dict[Label, dict[Labels, int]] = {group: {} for group in self.groups or ()}
        for key, number in self.counts.items():
            rest = (*key[:place], *(key[-1:] if self.weighted else ()))
            found[key[place]][rest] = number
        return {
            group: ReleasedRows(counts, self.where, weighted=self.weighted)
            for group, counts in found.items()
            if counts
        }

    def drop_missing(self, first: int, missing: Missing) -> ReleasedRows:
        """Leave out, or refuse, rows whose cells from a place on are missing, if that is asked for."""
        lacking = {
            key: number for key, number in self.counts.items() if MISSING_LETTER in key[first:]
        }
        if missing == "letter" or not lacking:
            return self
        share = format_row_share(sum(lacking.values()), sum(self.counts.values()))
        if missing == "refuse":
            raise InputError(
                f"{self.where}: {share} have a missing cell: give --missing drop or letter"
            )
        kept = {key: number for key, number in self.counts.items() if key not in lacking}
        if not kept:
            raise InputError(f"{self.where}: every row has a missing cell")
        return replace(self, counts=kept, left_out=f"{self.where}: {share} are left out")


def read_outcomes(
    folder: str | os.PathLike[str],
    columns: Sequence[str] = (),
    group_by: Sequence[str] = (),
    within: str | None = None,
    weight_column: str | None = None,
    missing: Missing = "letter",
) -> tuple[list[Mechanism], ReleasedRows]:
    """Read the mechanisms and the rows of a release folder.

    Args:
        folder: that `release` made.
        columns: of the parts that are read; all parts where none is named.
        group_by: columns in clear whose values are counted too, through a mechanism that keeps them.
        within: a column in clear whose values are the groups of the rows.
        weight_column: a column in clear with the weights of the people.
        missing: what becomes of rows with a missing cell in a column in clear. A missing weight is no letter.

    Raises:
        FileFormatError: it is no such folder, or a file that is read was changed since it was released.
        InputError: a column is not released, or not in clear, or a row has no usable weight.
    """
    groups = [*group_by, *([] if within is None else [within])]
    weights = [] if weight_column is None else [weight_column]
    described = ReleaseFile.read(Path(folder).resolve())
    known = {name for part in described.parts for name in part.columns}
    unknown = [name for name in columns if name not in known]
    if unknown:
        raise InputError(
            f"{folder}: {join_words(unknown)} is not released: name one of {join_words(sorted(known), 9)}"
        )
    hidden = [name for name in (*groups, *weights) if name not in described.kept]
    if hidden:
        raise InputError(
            f"{folder}: {join_words(hidden)} is not in clear: columns in clear are "
            f"{join_words(described.kept, 9)}"
        )
    parts = [part for part in described.parts if not columns or set(part.columns) & set(columns)]
    data, form, releases = _open_release(folder, described, parts)
    released = len(releases)
    for name in groups:
        with open_table(data, form) as table:
            (values,) = count_tuples(table, [name], "letter").letters
        releases.append(ColumnRelease(keep_values(name, values), (name,)))
    for name in weights:
        with open_table(data, form) as table:
            check_weights(table, name, missing)
    with open_table(data, form) as table:
        names = [name for one in releases for name, _ in one.output_columns] + weights
        places = [find_column(table.names, name, table.where) for name in names]
        observed, _ = count_outcomes(table, places, releases)
    mechanisms = [one.mechanism for one in releases]
    order = None if within is None else mechanisms[-1].outputs
    rows = ReleasedRows(observed, str(table.where), order, bool(weights))
    return mechanisms[: released + len(group_by)], rows.drop_missing(released, missing)


def _open_release(
    folder: str | os.PathLike[str], described: ReleaseFile, parts: Sequence[ReleasedMechanism]
) -> tuple[Path, CsvFormat, list[ColumnRelease]]:
    """Find the data of a release and read the mechanisms of some parts, as they were released."""
    place = Path(folder).resolve()
    data = find_released_data(place, described)
    if data is None:
        raise FileFormatError(f"{folder}: the released data {described.data!r:.80} are missing")
    releases = []
    for part in parts:
        path = find_mechanism_file(place, part.mechanism)
        _check_digest(path, part.mechanism, described)
        releases.append(ColumnRelease(load_listed_matrix(path, part.mechanism), part.columns))
    _check_data(place, data, described)
    return data, CsvFormat(described.delimiter, "utf-8"), releases


def keep_values(name: str, values: Labels) -> Mechanism:
    """Build the mechanism of a column in clear, by which a table is estimated: the identity.

    Raises:
        InputError: it has too many values for a table.

    Examples:
        >>> keep_values("town", ("east", "west")).matrix.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    if len(values) > 1_000:
        raise InputError(
            f"the column {name!r} has {len(values)} values: a table by them has too many cells"
        )
    return Mechanism(np.eye(len(values)), values, values)


def make_estimate_namer(
    folder: str | os.PathLike[str],
    columns: Sequence[str] = (),
    group_by: Sequence[str] = (),
    within: str | None = None,
) -> Callable[[Label], Label]:
    """Return the function that names the letters of an estimate from a release by their labels.

    Args:
        folder: that `release` made.
        columns: as for `estimate_release`.
        group_by: the same.
        within: the column whose values begin the letters.
    """
    described = ReleaseFile.read(Path(folder).resolve())
    parts = [part for part in described.parts if not columns or set(part.columns) & set(columns)]
    names = [name for part in parts for name in part.columns]
    first = [] if within is None else [within]
    return make_namer(described.value_labels, [*first, *names, *group_by])


def explain_stated_counts(folder: str | os.PathLike[str]) -> str:
    """Return a sentence on counts in a release folder of the people who are estimated; empty without any."""
    described = ReleaseFile.read(Path(folder).resolve())
    if not described.same_people:
        return ""
    table = "a table with a column in clear"
    if described.kept:
        table = f"a table by {described.kept[0]} (--group-by {shlex.quote(described.kept[0])})"
    return (
        f"{Path(folder) / DESCRIPTION} states the counts of these people too, "
        f"{describe_rounding(described.step)}. An estimate is for what "
        f"it does not state: a part of the rows, {table}, or other people's shares."
    )


def explain_fit(folder: str | os.PathLike[str]) -> str:
    """Return whether a release's rows fit its mechanisms and shares, as `check` decides it.

    It is empty where the folder states shares of other people, under which nothing is decided.
    """
    described = ReleaseFile.read(Path(folder).resolve())
    if not described.same_people:
        return ""
    data, form, releases = _open_release(folder, described, described.parts)
    with open_table(data, form) as table:
        names = [name for one in releases for name, _ in one.output_columns]
        places = [find_column(table.names, name, table.where) for name in names]
        observed, _ = count_outcomes(table, places, releases)
    people = described.count_people([one.mechanism for one in releases])
    fit = assess_described_fit(described, people, releases, observed)
    fits = "fit" if fit.p_value >= FALSE_ALARM_PROBABILITY else "do not fit"
    return f"The counts {fits} the mechanism: {describe_fit(fit, same_people=True)}."


def explain_missing_outputs(file: Path) -> str:
    """Return the message where a file is to be estimated from, and no outputs are given for it."""
    if (folder := find_release_of(file)) is not None:
        return (
            f"{file}: is a file of a release: give the folder of it, "
            f"pmlopt estimate {shlex.quote(str(folder))}"
        )
    return (
        f"{file}: give the folder of a release, as in pmlopt estimate out, or a mechanism and its outputs by "
        "--counts FILE, or by --data FILE with --column NAME"
    )


def estimate_release(
    folder: str | os.PathLike[str],
    columns: Sequence[str] = (),
    group_by: Sequence[str] = (),
    weight_column: str | None = None,
    **options: Any,
) -> Estimate:
    """Estimate input frequencies from a release folder.

    Of several columns, and with columns in clear, it is their cross table, whose letters are tuples.

    Args:
        folder: that `release` made.
        columns: of the parts that are estimated; all parts where none is named.
        group_by: columns in clear, by whose values the table is.
        weight_column: a column in clear with the weights of the people.
        **options: as for `pmlopt.estimate`, such as method and confidence.

    Raises:
        FileFormatError: it is no such folder, or a file that is read was changed since it was released.
        InputError: a column is not released.
        MechanismError: frequencies cannot be estimated from what was released; the message states which can.

    Examples:
        >>> import pathlib, tempfile
        >>> from pmlopt.publishing import release
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> place = tempfile.TemporaryDirectory()
        >>> out = pathlib.Path(place.name) / "out"
        >>> _ = release({"ill": ["yes", "no", "no", "no"] * 50}, {"ill": response}, out, seed=1)
        >>> estimate_release(out).letters
        ('no', 'yes')
        >>> place.cleanup()
    """
    mechanisms, rows = read_outcomes(folder, columns, group_by, weight_column=weight_column)
    mechanism = mechanisms[0] if len(mechanisms) == 1 else compose_attributes(mechanisms)
    return estimate(mechanism, **rows.make_sample(mechanism), **options)


def model_release(
    folder: str | os.PathLike[str], formula: str, weight_column: str | None = None, **options: Any
) -> FittedModel:
    """Fit a generalized linear model to the columns of a release folder.

    Args:
        folder: that `release` made.
        formula: of its columns, released and in clear.
        weight_column: a column in clear with the weights of the people.
        **options: as for `pmlopt.estimation.model`.

    Raises:
        FileFormatError: it is no such folder, or a file that is read was changed since it was released.
        InputError: the formula does not fit the columns, or a weight is none.

    Examples:
        >>> import pathlib, tempfile
        >>> from pmlopt.publishing import release
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
        >>> place = tempfile.TemporaryDirectory()
        >>> out = pathlib.Path(place.name) / "out"
        >>> _ = release({"ill": ["yes", "no", "no", "no"] * 50}, {"ill": response}, out, seed=1)
        >>> model_release(out, "ill ~ 1").names
        ('Intercept',)
        >>> place.cleanup()
    """
    described = ReleaseFile.read(Path(folder).resolve())
    data, form, releases = _open_release(folder, described, described.parts)
    released = [[name for name, _ in one.output_columns] for one in releases]
    kept = list(described.kept)
    if weight_column is not None and weight_column not in kept:
        raise InputError(
            f"{folder}: {weight_column!r} is not in clear: columns in clear are {join_words(kept, 9)}"
        )
    with open_table(data, form) as table:
        every = [*itertools.chain.from_iterable(released), *kept]
        cells = dict(zip(every, read_texts(table, every), strict=True))
    columns: dict[str, list[Label | None]] = {}
    for one, names in zip(releases, released, strict=True):
        seen: Any = cells[names[0]]
        if len(names) > 1:
            seen = zip(*(cells[name] for name in names), strict=True)
        outputs = one.mechanism.outputs
        what = f"the column {'+'.join(names)!r}"
        places = indices_of(seen, outputs, what, InputError, text=True)
        for name, labels in one.output_columns:
            columns[name] = [labels[place] for place in places]
    for name in kept:
        distinct = tuple(dict.fromkeys(cells[name]))
        known = dict(zip(distinct, parse_labels(distinct), strict=True))
        columns[name] = [known[cell] if cell else None for cell in cells[name]]
    if weight_column is not None:
        where = f"{folder}: the weight in {weight_column!r}"
        options["weights"] = [parse_weight(cell, where) for cell in cells[weight_column]]
    return model(columns, formula, {one.columns: one.mechanism for one in releases}, **options)


def _check_data(place: Path, data: Path, described: ReleaseFile) -> None:
    """Raise an error where released files have changed since the release."""
    found = [data] if data.is_file() else list_data_files(data)[1]
    names = [path.relative_to(place).as_posix() for path in found]
    for path, name in zip(found, names, strict=True):
        _check_digest(path, name, described)
    inside = f"{described.data}/"
    missing = sorted({name for name in described.digests if name.startswith(inside)} - set(names))
    if missing:
        raise FileFormatError(
            f"{place}: the released file {missing[0]!r:.80} is missing: see pmlopt check"
        )


def _check_digest(path: Path, name: str, described: ReleaseFile) -> None:
    """Raise an error where a file's digest differs from the stated one."""
    if disk.digest_file(path) != described.digests.get(name):
        raise FileFormatError(f"{path}: was changed since it was released: see pmlopt check")
