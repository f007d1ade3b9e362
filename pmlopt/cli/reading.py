"""Reading of command inputs: priors, mechanisms, requirements and utilities."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import numpy as np

from pmlopt.cli.completion import list_utility_names
from pmlopt.cli.terminal import print_line
from pmlopt.core.files import disk
from pmlopt.core.files.csv_rows import read_text_table
from pmlopt.core.files.letter_files import read_letters
from pmlopt.core.files.matrix_layout import is_rounded_sum
from pmlopt.core.matrices.formats import read_matrix
from pmlopt.core.matrices.matrix_file import MatrixFile
from pmlopt.core.matrices.text_tables import parse_labelled_matrix
from pmlopt.core.numbers.arrays import (
    SUM_ATOL,
    DefaultLabels,
    Label,
    have_same_label_set,
    join_words,
    parse_labels,
)
from pmlopt.core.suggestions import did_you_mean
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import FileFormatError, InputError, MechanismError

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.model.constraints import Constraint
    from pmlopt.model.utility import EstimationError, LinearUtility, SubConvex
    from pmlopt.programs.linear.certificate import AffineConstraint

Minimise: TypeAlias = Annotated[bool, "The matrix of --utility holds losses."]
Outputs: TypeAlias = Annotated[
    str | None, "The outputs: their number, or their labels with commas between."
]
UtilityName: TypeAlias = Annotated[
    str,
    "hamming, absolute, squared (losses); mutual-information, total-variation, chi-square, "
    "hellinger, guessing-probability; estimation-error, or estimation-error:WORKLOAD (prefix, range, "
    "mean, marginals); or a CSV matrix of gains.",
    list_utility_names,
]
OptionalUtility: TypeAlias = Annotated[
    str | None,
    "hamming, absolute, squared (losses); estimation-error, mutual-information and others; a CSV matrix.",
    list_utility_names,
]


def read_prior(path: Path, rounded: bool = False) -> Prior:
    """Read the prior of a two-column CSV: counts where all numbers are integers, else probabilities.

    Args:
        path: of the file.
        rounded: whether probabilities are divided by their sum, which may be off one by 0.01.
    """
    from pmlopt.data.prior import Prior
    from pmlopt.errors import PriorError

    labels, numbers = read_letters(path)
    try:
        if all(isinstance(number, int) for number in numbers):
            return Prior.from_counts([int(number) for number in numbers], labels)
        total = math.fsum(numbers)
        if not 0 < total < math.inf or abs(total - 1) <= (0.0 if rounded else SUM_ATOL):
            return Prior(numbers, labels)
        divided = Prior(np.asarray(numbers) / total, labels)  # raises what else is wrong with them
    except PriorError as error:
        raise PriorError(f"{path}: {error}") from None
    if rounded and is_rounded_sum(total):
        print_line(
            f"The shares of {path.name} sum to {total:.9g}: each is divided by it.", err=True
        )
        return divided
    remedy = "--normalise divides by sums within 0.01 of 1, and no others"
    if is_rounded_sum(total):
        remedy = "if rounding explains it, --normalise divides each by the sum"
    raise PriorError(
        f"{path}: the shares sum to {total:.12g}, not to 1: correct them, or write whole counts; {remedy}"
    )


def read_saved_prior(path: Path) -> Prior | None:
    """Return the prior stored in a saved result; None without one."""
    from pmlopt.verification.verify_saved import read_any_mechanism, read_saved_prior

    if path.suffix.lower() not in (".json", ".npz"):
        return None
    mechanism, metadata = read_any_mechanism(path)
    return read_saved_prior(mechanism, metadata, str(path)) if "certificate" in metadata else None


def read_saved_constraints(path: Path) -> tuple[AffineConstraint, ...]:
    """Return the linear constraints stored in a saved design; empty without any."""
    from pmlopt.programs.linear.certificate import LinearCertificate
    from pmlopt.verification.verify_saved import read_any_mechanism, read_result_record

    if path.suffix.lower() not in (".json", ".npz"):
        return ()
    mechanism, metadata = read_any_mechanism(path)
    if "certificate" not in metadata:
        return ()
    certificate = read_result_record(mechanism, metadata, path).certificate
    return (certificate.added_rows or ()) if isinstance(certificate, LinearCertificate) else ()


def read_counts(path: Path) -> Prior:
    """Read the empirical distribution of a two-column CSV of counts, with its sample size."""
    return require_counts(read_prior(path), path)


def require_counts(prior: Prior, path: Path) -> Prior:
    """Return a prior that has counts; raise an error for one of shares."""
    if prior.counts is None:
        raise FileFormatError(
            f"{path}: holds numbers that are not whole, and --counts needs counts: use --prior"
        )
    return prior


def align_prior(prior: Prior, mechanism: Mechanism) -> Prior:
    """Align a prior with the mechanism's rows by labels; state the letters of rows that have none."""
    inputs = mechanism.inputs
    if not isinstance(inputs, DefaultLabels):
        return prior.reordered(inputs) if have_same_label_set(prior.labels, inputs) else prior
    if prior.size == len(inputs) and tuple(prior.labels) != tuple(inputs):
        letters = join_words(map(repr, prior.labels), 12)
        print_line(
            f"The rows of the matrix have no labels: they are taken for {letters}, in this order.",
            err=True,
        )
    return prior


def read_utility(
    name: str, minimise: bool, prior: Prior
) -> tuple[LinearUtility | SubConvex | EstimationError, Sequence[Any] | None]:
    """Read a utility by name, or from a CSV matrix aligned with the prior."""
    from pmlopt.model.utility import ExpectedGain, ExpectedLoss, as_utility

    if not _is_matrix_file(name):
        utility: Any = as_utility(name)
        if minimise:
            already = "maximised" if utility.maximised else "minimised already"
            raise InputError(f"--minimise belongs to a matrix: {name} is {already}")
        return utility, None
    rows, columns = _read_rows(name, prior)
    return (ExpectedLoss if minimise else ExpectedGain)(rows), columns


def read_distance(name: str, prior: Prior) -> Any:
    """Read a distance by name, or from an (N, N) CSV matrix aligned with the prior."""
    from pmlopt.data.labelled import read_labelled_table
    from pmlopt.model.privacy.metric_privacy import DISTANCES

    if name in DISTANCES:
        return DISTANCES[name]
    if not _is_matrix_file(name):
        known = ", ".join(DISTANCES)
        raise InputError(
            f"the distance {name!r} is not known: use {known}, or a matrix such as d.csv"
        )
    found = read_labelled_table(Path(name), "the distances", InputError).reorder_axis(
        0, prior.labels, InputError
    )
    return found.reorder_axis(1, prior.labels, InputError).values


def _is_matrix_file(name: str) -> bool:
    """Return whether a name has the suffix of a matrix file."""
    ending = Path(name).suffix.lower()
    return ending in disk.ENDINGS and ending not in _OWN


def read_gains(path: Path, prior: Prior) -> Any:
    """Read the (W, N) gains of a CSV file with a row for each letter and a column for each guess."""
    rows = _read_rows(str(path), prior)[0]
    return rows.T


def read_known(text: str, _: Prior | None = None) -> Any:
    """Parse positions of known attributes, or "any".

    Raises:
        InputError: a part is no whole number.

    Examples:
        >>> read_known("0,2"), read_known("any")
        ((0, 2), 'any')
    """
    if text == "any":
        return text
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(
            f"--known {text!r}: give any, or positions of attributes from 0, such as 0,2"
        )
    return tuple(map(int, parts))


def _read_rows(name: str, prior: Prior) -> tuple[Any, Sequence[Any]]:
    """Read a CSV matrix aligned with the prior's letters, with column labels."""
    from pmlopt.data.labelled import read_labelled_table
    from pmlopt.errors import UtilityError

    found = read_labelled_table(Path(name), "the matrix", UtilityError).reorder_axis(
        0, prior.labels, UtilityError
    )
    return found.values, found.axes[1] or DefaultLabels(len(found.values[0]))


def read_linear_utility(
    name: str, minimise: bool, prior: Prior
) -> tuple[LinearUtility, Sequence[Any] | None]:
    """Read a linear utility by name, or from a CSV matrix."""
    from pmlopt.model.utility import LinearUtility

    utility, outputs = read_utility(name, minimise, prior)
    if not isinstance(utility, LinearUtility):
        raise InputError(
            f"--utility {name} has no value for a letter and an output: give a loss or a matrix"
        )
    return utility, outputs


def read_outputs(text: str, letters: Sequence[Label] = ()) -> int | Sequence[Any]:
    """Parse outputs: a number, or comma-separated labels.

    A label that reads like a letter of the prior is that letter, so that losses know it again; another one
    is a number where it is written as Python writes it, else text.

    Args:
        text: of the option.
        letters: labels of the prior.

    Raises:
        InputError: a label is empty or no text in UTF-8, or the number is none of 1 to 100,000.

    Examples:
        >>> read_outputs("3"), read_outputs("1,2,unknown", (1, 2)), read_outputs("1,2,3", ("1", "2"))
        (3, (1, 2, 'unknown'), ('1', '2', 3))
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError(f"--outputs {text!r}: a label is empty")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"--outputs {text!r}: is not text in UTF-8")
    if len(parts) == 1 and disk.is_number(parts[0]):
        count = parse_labels(parts)[0]
        max_outputs = 100_000  # a mechanism with two letters then has 1.6 MB
        if not isinstance(count, int) or not 1 <= count <= max_outputs:
            raise InputError(
                f"--outputs {text!r}: give a number of outputs of at least 1 and at most {max_outputs}, or "
                "two labels or more; from Python, design(..., outputs=...) takes any number"
            )
        return count
    known = {str(letter): letter for letter in letters}
    return tuple(known[part] if part in known else parse_labels([part])[0] for part in parts)


def find_known_name(given: str, kinds: Mapping[str, type]) -> str:
    """Match a requirement's name regardless of case, underscores or class form.

    Examples:
        >>> from pmlopt.core.records.fields import find_tagged_classes
        >>> from pmlopt.model.privacy import Requirement
        >>> kinds = find_tagged_classes(Requirement)
        >>> [find_known_name(name, kinds) for name in ("PML", "approximate_pml", "MetricPrivacy", "other")]
        ['pml', 'approximate-pml', 'metric', 'other']
    """
    written = {name.lower(): name for name in kinds}
    classes = {kind.__name__.lower(): name for name, kind in kinds.items()}
    plain = "-".join(given.lower().replace("_", " ").split())
    return given if given in kinds else written.get(plain) or classes.get(plain) or given


def read_constraint(text: str, labels: Iterable[Label]) -> Constraint:
    """Parse a constraint such as "variance=2" or "zeros=FILE.csv".

    Args:
        text: of the option.
        labels: of the letters and outputs, which a file names as text.

    Raises:
        InputError: there is no such constraint, or it needs another value.
    """
    from pmlopt.core.records.fields import find_tagged_classes, get_fields
    from pmlopt.model.constraints import CategoryRetention, Constraint, OutcomeLeakage, Strata

    given, _, value = text.partition("=")
    kinds = find_tagged_classes(Constraint)
    name = find_known_name(given, kinds)
    if name not in kinds:
        raise InputError(
            f"--constraint {text!r}: {did_you_mean(name, kinds, 'known are ' + ', '.join(kinds))}"
        )
    needed = [one.name for one in get_fields(kinds[name]) if one.required]
    if not needed or not value:
        if needed or value:
            raise InputError(
                f"--constraint {text!r}: give {name + '=' + needed[0].upper() if needed else name}"
            )
        return cast("Constraint", kinds[name]())
    if Path(value).suffix.lower() != ".csv":
        return cast("Constraint", kinds[name](disk.parse_number(value, f"--constraint {name}")))
    known = {str(label): label for label in labels}
    table = read_text_table(Path(value))
    rows = table.rows[1:]
    if any(len(row) != 2 for row in rows):
        raise FileFormatError(
            f"{value}: a row has not two cells: it has a header and two columns of labels"
        )
    if kinds[name] in (OutcomeLeakage, CategoryRetention):
        return cast("Constraint", kinds[name](
            [(known.get(label, label), table.parse_number(number, value)) for label, number in rows]
        ))  # fmt: skip
    pairs = [(known.get(one, one), known.get(other, other)) for one, other in rows]
    return cast("Constraint", kinds[name](dict(pairs) if kinds[name] is Strata else pairs))


def read_numbers(text: str, option: str) -> list[float]:
    """Parse comma-separated numbers of an option."""
    parts = [part.strip() for part in text.split(",")]
    if any(re.fullmatch(r"0\d+", part) for part in parts[1:]):
        raise InputError(f"{option} {text!r}: commas are between numbers: write {'.'.join(parts)}")
    try:
        return [float(part) for part in parts]
    except ValueError:
        raise InputError(f"{option} {text!r}: give numbers with commas between") from None


_TEXT, _OWN = (".csv", ".tsv", ".txt"), (".json", ".npz")
"""Endings of tables of text, and of the formats that pmlopt only writes."""


def read_mechanism(path: Path, bare: bool = False, rounded: bool = False) -> Mechanism:
    """Read a mechanism file, or a spreadsheet-style matrix.

    A CSV may have semicolons or tabs between its cells, with decimal commas.

    Args:
        path: with one of the endings of `pmlopt.core.files.disk.ENDINGS`.
        bare: whether a CSV or TSV has no header and no first column of labels.
        rounded: whether rows are divided by their sums, which may be off one by 0.01.

    Raises:
        FileFormatError: the file holds no mechanism; the message names the option that may help.
    """
    ending = disk.get_file_format(path)
    if bare and ending not in _TEXT:
        raise FileFormatError(f"{path}: --no-header belongs to CSV, TSV and other text files")
    if ending in _OWN:
        if rounded:
            raise FileFormatError(
                f"{path}: --normalise is for matrices of other programs, not {ending}"
            )
        return Mechanism.load(path)
    stored = _read_text(path, bare) if ending in _TEXT else read_matrix(path)
    matrix = np.asarray(stored.matrix, dtype=float)
    sums = matrix.sum(axis=1)
    off = float(np.abs(sums - 1).max(initial=0.0))
    is_rounded = is_rounded_sum(1 + off)
    if rounded and off > 0 and is_rounded:
        print_line(
            f"The rows of {path.name} sum to one up to {off:.1g}: each is divided by its sum.",
            err=True,
        )
        matrix = matrix / sums[:, None]
    elif off > 1e-9 and is_rounded:
        raise FileFormatError(
            f"{path}: a row sums to {sums[np.abs(sums - 1).argmax()]:.9g}: if rounding explains it, "
            "--normalise divides each row by its sum"
        )
    try:
        return Mechanism(matrix, stored.inputs, stored.outputs)
    except MechanismError as error:
        limit = "; --normalise divides rows whose sums are within 0.01 of 1, and no others"
        if is_rounded:
            limit = ""
        raise FileFormatError(f"{path}: {error}{limit}") from None


def _read_text(path: Path, bare: bool) -> MatrixFile:
    """Read a matrix from a text table, with or without a header."""
    read = read_text_table(path, least=1 if bare else 2, labelled=not bare)
    table = replace(read, rows=[row for row in read.rows if any(row)])
    rows = table.rows
    if bare:
        # nan, inf and 1e-3 are numbers, and "50%" has a message of its own
        labels = [
            cell for cell in rows[0] if any(map(str.isalpha, cell)) and not disk.is_number(cell)
        ]
        if labels:
            raise FileFormatError(
                f"{path}: row 1 has the label {labels[0]!r}, and --no-header is for numbers only: remove all "
                "labels; or leave --no-header out, and give a header and a first column with the inputs"
            )
        cells = [
            [table.parse_number(cell, f"{path}: row {number}") for cell in row]
            for number, row in enumerate(rows, 1)
        ]
        return MatrixFile(np.array(cells), DefaultLabels(len(cells)), DefaultLabels(len(cells[0])))
    if len(rows[0]) > 1 and all(disk.is_number(cell) and "." in cell for cell in rows[0]):
        raise FileFormatError(
            f"{path}: its first row {rows[0][:4]} looks like probabilities: if so, give --no-header"
        )
    return parse_labelled_matrix(table)
