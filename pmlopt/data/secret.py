"""Secrets that are correlated with the data, by their joint law."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pmlopt.core.declared_orders import make_label_rank
from pmlopt.core.frames import find_column_orders, to_plain_list
from pmlopt.core.numbers.arrays import (
    NUMBER_HEADERS,
    SUM_ATOL,
    FloatArray,
    Label,
    Labels,
    abbreviate,
    check_labels_of_size,
    check_unmasked,
    have_same_label_set,
    indices_of,
    integers_over_common_denominator,
    parse_labels,
)
from pmlopt.core.numbers.counts import CountedTuples
from pmlopt.core.records.fields import ContextReference, Range, Record, Shape
from pmlopt.data.labelled import Numbers, read_column, read_labelled_table
from pmlopt.data.prior import Prior
from pmlopt.errors import FileFormatError, PriorError, PrivacyError


class Secret(Record):
    """A secret S with the joint law of (S, X); X is the released data.

    Args:
        joint: (S, N) probabilities that sum to one (within 1e-9), a row for each value of the secret; or
            (L, S, N), a law for each of L adversaries, of whom any may be there.
        labels: N labels of the letters of X.
        values: the labels of the values of S.
        name: of the secret, for messages about it.

    Raises:
        PriorError: an entry is negative or not finite, a law does not sum to one, a value of the secret or a
            letter has probability zero in one of them, or the labels do not fit.

    Examples:
        >>> disease = Secret([[0.1, 0.3], [0.5, 0.1]], labels=["young", "old"], values=["ill", "well"])
        >>> disease.prior.probabilities.round(12), disease.conditionals.round(12).tolist()
        (array([0.6, 0.4]), [[0.25, 0.75], [0.833333333333, 0.166666666667]])
    """

    def __init__(
        self,
        joint: ArrayLike,
        labels: Iterable[Label] | None = None,
        values: Iterable[Label] | None = None,
        name: str = "the secret",
    ) -> None:
        laws = _check_joint_laws(joint)
        totals = laws.sum(axis=(1, 2))
        off = int(np.abs(totals - 1).argmax())
        if abs(totals[off] - 1) > SUM_ATOL:
            raise PriorError(
                f"the joint law {off} sums to {totals[off]:.12g}, not to 1: divide it by its sum, or give "
                "whole counts (Secret.from_counts)"
            )
        self._initialize(
            [integers_over_common_denominator(law)[0] for law in laws], labels, values, name, False
        )

    def _initialize(
        self,
        weights: list[Any],
        labels: Iterable[Label] | None,
        values: Iterable[Label] | None,
        name: str,
        counted: bool,
    ) -> Self:
        """Validate and set integer-weighted joint laws with labels."""
        rows, letters = weights[0].shape
        self.weights = weights
        self.counted = counted
        self.labels = check_labels_of_size(
            labels, letters, "the letters of the joint law", PriorError
        )
        self.values = check_labels_of_size(values, rows, "the values of the secret", PriorError)
        self.name = name
        for law in weights:
            for axis, names, what in (
                (1, self.values, "the value"),
                (0, self.labels, "the letter"),
            ):
                sums = law.sum(axis=axis)
                if (sums == 0).any():
                    empty = names[int((sums == 0).argmax())]
                    raise PriorError(
                        f"{what} {empty!r} never occurs in the joint law: leave it out"
                    )
        return self

    @classmethod
    def from_counts(
        cls,
        counts: Numbers,
        labels: Iterable[Label] | None = None,
        values: Iterable[Label] | None = None,
        name: str = "the secret",
    ) -> Secret:
        """Build the empirical joint law of a table of counts, exact in exact arithmetic.

        Args:
            counts: a mapping from (value of the secret, letter) to count, or from value to letter to count;
                or an (S, N) table of counts, of which a pandas frame keeps its index and its columns as
                labels, and one of Polars or Arrow its first column and the names of the others. Of two
                columns of a data file, `pmlopt.tables.cross_counts` makes one.
            labels: N labels, where the table has none.
            values: S labels, the same.
            name: of the secret.

        Raises:
            PriorError: a count is negative or not a whole number, or a row or a column of the table is empty.

        Examples:
            >>> counts = {("ill", "old"): 3, ("ill", "young"): 1, ("well", "young"): 4}
            >>> Secret.from_counts(counts).prior.counts
            (3, 5)
        """
        found = read_labelled_table(counts, "the joint counts", PriorError, absent=0)
        rows, columns = found.axes
        if (values is not None and rows is not None) or (
            labels is not None and columns is not None
        ):
            raise PriorError(
                "the table names its rows or columns already: leave out `labels` and `values`"
            )
        values = values if rows is None else rows
        labels = labels if columns is None else columns
        cells = to_plain_list(found.values)
        law = _check_joint_laws(cells)[0]
        if (law != np.floor(law)).any():
            raise PriorError(
                "the joint counts must be whole numbers: give probabilities to Secret(...)"
            )
        whole = np.array([[int(count) for count in row] for row in cells], dtype=object)
        return cls.__new__(cls)._initialize([whole], labels, values, name, True)

    @classmethod
    def from_samples(
        cls, values: Iterable[Label], letters: Iterable[Label], name: str = "the secret"
    ) -> Secret:
        """Build the empirical joint law from (secret value, letter) samples.

        Examples:
            >>> Secret.from_samples(["ill", "well", "well"], ["old", "old", "young"]).values
            ('ill', 'well')
        """
        sides = {"the values of the secret": values, "the letters": letters}
        columns = [read_column(data, what, PriorError) for what, data in sides.items()]
        counts = CountedTuples(
            Counter(zip(*columns, strict=True)),
            [
                _order_letters(data, column)
                for data, column in zip(sides.values(), columns, strict=True)
            ],
        )
        return cls.from_counts(counts, name=name)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Secret:
        r"""Load the joint law from a CSV file in one of three layouts.

        - two columns, the value of the secret and the letter of each person;
        - three columns, the two and how often they occur together, or with which probability;
        - a crosstab: the letters in the header, and a row for each value of the secret.

        Cells are separated by commas, semicolons or tabs. Whole numbers are counts, others probabilities. The
        secret has the name of the first column. A table of three columns is a crosstab of two letters where
        its corner is empty.

        Raises:
            FileFormatError: the file is not there, or not of such a form.
            PriorError: the numbers are no joint law.

        Examples:
            >>> import pathlib, tempfile
            >>> folder = tempfile.TemporaryDirectory()
            >>> path = pathlib.Path(folder.name) / "table.csv"
            >>> _ = path.write_text(",young,old\nill,1,3\nwell,4,2\n")
            >>> Secret.load(path).prior.counts
            (5, 5)
            >>> folder.cleanup()
        """
        from pmlopt.core.files.csv_rows import read_text_table
        from pmlopt.core.files.letter_files import check_row_names
        from pmlopt.core.files.matrix_layout import is_number

        table = read_text_table(path)
        head, *body = table.rows
        if len(head) < 2:
            raise FileFormatError(f"{path}: has one column: the secret and the letter are two")
        counts = head[-1].strip().lower() in NUMBER_HEADERS
        if len(head) == 4 and counts:
            check_row_names(path, table.rows)
        name = head[0].strip() or "the secret"
        first = parse_labels([row[0] for row in body])
        second = parse_labels([row[1] for row in body])
        if len(head) == 2 and counts:
            raise FileFormatError(
                f"{path}: holds labels and numbers, as a prior does: a joint law has two columns of labels"
            )
        if len(head) == 2:
            return cls.from_samples(first, second, name)
        if len(head) == 3 and head[0].strip():
            if (
                not counts
                and len(set(first)) == len(first)
                and all(is_number(table.with_points(row[1])) for row in body)
            ):
                raise FileFormatError(
                    f"{path}: may be a crosstab of two letters or pairs with their numbers: leave the corner "
                    "empty for the one, and head the last column `count` or `probability` for the other"
                )
            cells = list(
                zip(zip(first, second, strict=True), [row[2] or "0" for row in body], strict=True)
            )
        else:
            letters = parse_labels(head[1:])
            cells = [((value, letter), cell) for value, row in zip(first, body, strict=True)
                     for letter, cell in zip(letters, row[1:], strict=True)]  # fmt: skip
        texts = dict(cells)
        if len(texts) < len(cells):
            twice = next(
                pair for pair, times in Counter(pair for pair, _ in cells).items() if times > 1
            )
            raise FileFormatError(f"{path}: the pair {twice!r} has two rows: add them up")
        # Digits of a count in a file; floats end at 308.
        whole = all(
            text.strip().isascii() and text.strip().isdigit() and len(text) < 300
            for text in texts.values()
        )
        try:
            if whole:
                return cls.from_counts({pair: int(text) for pair, text in texts.items()}, name=name)
            table.check_decimal_marks(texts.values())
            numbers = {pair: table.parse_number(text, str(path)) for pair, text in texts.items()}
            law = read_labelled_table(numbers, "the joint law", PriorError, absent=0)
            return cls(law.values, law.axes[1], law.axes[0], name)
        except PriorError as error:
            raise PriorError(f"{path}: {error}") from None

    @classmethod
    def from_fields(
        cls,
        name: str,
        labels: Annotated[Labels, ContextReference("labels"), Shape("letters")],
        values: Annotated[Labels, Shape("values")],
        weights: tuple[Annotated[NDArray[np.object_], Shape("values", "letters"), Range(0)], ...],
        counted: bool = False,
    ) -> Secret:
        """Build the secret from a saved file's fields.

        Raises:
            PriorError: there is no law, or a value or a letter never occurs.
        """
        if not weights or not weights[0].size or (counted and len(weights) != 1):
            raise PriorError(
                f"there are {len(weights)} joint laws: give one or more, of a sample one"
            )
        return cls.__new__(cls)._initialize(list(weights), labels, values, name, counted)

    def reordered(self, labels: Iterable[Label]) -> Secret:
        """Reorder the letters of X by labels.

        Raises:
            PriorError: they are not the letters of the joint law.

        Examples:
            >>> Secret([[0.1, 0.3], [0.5, 0.1]], ["young", "old"]).reordered(["old", "young"]).joint.tolist()
            [[[0.3, 0.1], [0.1, 0.5]]]
        """
        names = tuple(labels)
        if len(names) != len(self.labels) or not have_same_label_set(names, self.labels):
            raise PriorError(
                f"the letters {abbreviate(names)} are not those of the joint law, {abbreviate(self.labels)}"
            )
        order = indices_of(names, self.labels, "the letters", PriorError)
        weights = [law[:, order] for law in self.weights]
        return (
            type(self)
            .__new__(type(self))
            ._initialize(weights, names, self.values, self.name, self.counted)
        )

    @cached_property
    def joint(self) -> FloatArray:
        """Return the (L, S, N) joint laws."""
        return np.array([_normalize_weights(law) for law in self.weights])

    @cached_property
    def prior(self) -> Prior:
        """Return the marginal law of X under the first joint law."""
        weights = self.weights[0].sum(axis=0)
        if self.counted:
            return Prior.from_counts(weights.tolist(), self.labels)
        return Prior(_normalize_weights(weights[None])[0], self.labels)

    @property
    def law(self) -> FloatArray:
        """Return the (S,) marginal law of the secret under the first joint law."""
        return np.asarray(self.joint[0].sum(axis=1))

    @property
    def conditionals(self) -> FloatArray:
        """Return the (S, N) conditional laws of X given each secret value, under the first joint law."""
        return np.asarray(self.joint[0] / self.joint[0].sum(axis=1, keepdims=True))

    def __repr__(self) -> str:
        laws = "" if len(self.weights) == 1 else f", {len(self.weights)} joint laws"
        return f"Secret(<{self.name}: {abbreviate(self.values)}>, {len(self.labels)} letters{laws})"


def check_secret(about: object) -> None:
    """Raise an error for what is neither a secret nor None.

    Examples:
        >>> check_secret(0.5)
        Traceback (most recent call last):
        ...
        pmlopt.errors.PrivacyError: `about` is 0.5, which is no secret: give a Secret(joint) of S and X
    """
    if not isinstance(about, Secret | None):
        raise PrivacyError(
            f"`about` is {about!r:.60}, which is no secret: give a Secret(joint) of S and X"
        )


def _order_letters(data: Any, column: Sequence[Label]) -> list[Label]:
    """Return the distinct letters of a column in their declared order, or as they come."""
    letters = list(dict.fromkeys(column))
    orders = find_column_orders(data)
    if None in orders:
        return letters
    rank = make_label_rank(letters, orders)
    return letters if rank is None else sorted(letters, key=rank)


def _check_joint_laws(joint: ArrayLike) -> FloatArray:
    """Validate joint laws as a nonnegative (L, S, N) array."""
    check_unmasked(joint, "the joint law", PriorError)
    try:
        laws = np.array(joint, dtype=float)
    except (TypeError, ValueError) as cause:
        raise PriorError(f"the joint law must be numbers in a table: {cause}") from None
    laws = laws[None] if laws.ndim == 2 else laws
    if laws.ndim != 3 or laws.size == 0:
        raise PriorError(
            f"the joint law has the shape {np.shape(joint)}: give (S, N), or (L, S, N)"
        )
    if not np.isfinite(laws).all() or (laws < 0).any():
        raise PriorError("the joint law has an entry that is negative or not finite")
    return laws


def _normalize_weights(law: Any) -> FloatArray:
    """Normalize integer weights to probabilities."""
    total = law.sum()
    return np.array([[float(count) / float(total) if total < 2**1000 else count / total for count in row]
                     for row in law])  # fmt: skip
