"""The covariates of a regression formula, at each true value of the released columns."""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from pmlopt.core.display import import_pandas, pluralize
from pmlopt.core.frames import is_frame, list_missing, to_narwhals
from pmlopt.core.lazy_imports import import_optional
from pmlopt.core.numbers.arrays import (
    FloatArray,
    IntArray,
    Label,
    Labels,
    join_words,
    make_label_key,
)
from pmlopt.data.labelled import read_column
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.errors import InputError, MechanismError
from pmlopt.releases.estimation.observed_likelihood import multiply_pairs
from pmlopt.releases.estimation.released_outputs import find_outputs, match_output_labels
from pmlopt.releases.estimation.responses import fit_least_squares
from pmlopt.releases.estimation.tables import format_label
from pmlopt.releases.rows.batches import ColumnRelease

MAX_CELLS = 100
"""The joint true values of released columns up to which models are fitted."""

ColumnMechanisms: TypeAlias = Mapping[Any, MechanismLike]
"""Mechanisms by the name of a column, or by the tuple of the names of columns."""


@dataclass(frozen=True)
class ReleasedColumns:
    """A column that was released, or several by one mechanism, of a regression.

    Attributes:
        names: of the columns: the letters of several are tuples of their values.
        mechanism: (N, M) that released them.
        places: (n,) the outputs of the people.
    """

    names: tuple[str, ...]
    mechanism: Mechanism
    places: IntArray

    @cached_property
    def values(self) -> dict[str, Labels]:
        """Return the values of each column as they first occur in the letters; sorted if tuples are."""
        columns = zip(*map(self._split, self.mechanism.inputs), strict=True)
        found = {
            name: tuple({make_label_key(one): one for one in parts}.values())
            for name, parts in zip(self.names, columns, strict=True)
        }
        letters: tuple[Any, ...] = self.mechanism.inputs
        with suppress(TypeError):  # values of several types have no order
            if len(self.names) > 1 and all(one < other for one, other in pairwise(letters)):
                ordered: dict[str, Any] = found
                return {name: tuple(sorted(values)) for name, values in ordered.items()}
        return found

    @cached_property
    def codes(self) -> dict[str, IntArray]:
        """Return the (N,) values of each column at the letters of the mechanism."""
        return {name: self._find_values(name, self.mechanism.inputs) for name in self.names}

    def _split(self, label: Label) -> Labels:
        """Return the parts of a letter, or of an output: none where it is no tuple of the columns."""
        if len(self.names) == 1:
            return (label,)
        return label if isinstance(label, tuple) and len(label) == len(self.names) else ()

    def _find_values(self, name: str, labels: Sequence[Label]) -> IntArray:
        """Find the values of a column that letters or outputs have by name; -1 where they have none."""
        known = {make_label_key(one): place for place, one in enumerate(self.values[name])}
        column = self.names.index(name)
        parts = [self._split(label)[column : column + 1] for label in labels]
        return np.array([known.get(make_label_key(one[0]), -1) if one else -1 for one in parts])

    def find_letters(self, name: str) -> IntArray | None:
        """Return (n,) the values of a column that an analyst takes the outputs for.

        They are those of the same names, or where outputs have other names, those of the letters that make
        them likeliest. None where an output is for none.
        """
        named = self._find_values(name, self.mechanism.outputs)
        if (named < 0).all():
            count = len(self.values[name])
            chances = np.array(
                [self.mechanism.matrix[self.codes[name] == one].max(axis=0) for one in range(count)]
            )
            is_only = (chances == chances.max(axis=0)).sum(axis=0) == 1
            named = np.where(is_only, chances.argmax(axis=0), -1)
        found: IntArray = named[self.places]
        return None if (found < 0).any() else found

    def make_cells(self, name: str, letters: IntArray) -> Any:
        """Build a column of a frame with these values: numbers, or categories in their order."""
        known = self.values[name]
        if all(isinstance(one, int | float) and not isinstance(one, bool) for one in known):
            return np.array(known, dtype=float)[letters]
        names = [format_label(one) if isinstance(one, tuple) else one for one in known]
        return import_pandas().Categorical.from_codes(letters, categories=names)


@dataclass(frozen=True)
class ModelFrame:
    """The columns of a regression.

    Attributes:
        response: the name of the response.
        covariates: the formula of its covariates, as formulaic reads it.
        law: that of the law of the released covariates; None for the default one.
        clear: a pandas frame of the columns that the formula names.
        owners: what released the others of them, by name.
        kept: (n,) the places of its rows among all.
        row_count: how many there are.
    """

    response: str
    covariates: Any
    law: Any
    clear: Any
    owners: Mapping[str, ReleasedColumns]
    kept: IntArray
    row_count: int

    @property
    def covariate_names(self) -> tuple[str, ...]:
        """Return the names of the released covariates."""
        return tuple(name for name in self.owners if name != self.response)

    @property
    def every_owner(self) -> list[ReleasedColumns]:
        """Return what released the columns, each once."""
        return list({id(one): one for one in self.owners.values()}.values())

    @property
    def confused_columns(self) -> tuple[str, ...]:
        """Return the names of columns whose mechanism does not identify the law of their values."""
        found = []
        for one in self.every_owner:
            columns = np.column_stack(
                [one.codes[name] for name in one.names if name in self.owners]
            )
            groups = np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1)
            matrix = one.mechanism.matrix
            both = np.hstack([matrix, np.eye(groups.max() + 1)[groups]])
            if np.linalg.matrix_rank(both) > np.linalg.matrix_rank(matrix):
                found.append("+".join(one.names))
        return tuple(found)

    @cached_property
    def cell_owners(self) -> tuple[ReleasedColumns, ...]:
        """Return what released the columns whose joint true values are listed.

        A response that was released alone is not among them where everything else is a covariate: the law
        of the response sums it out.
        """
        every = self.every_owner
        others = [one for one in every if one.names != (self.response,)]
        is_apart = all(set(one.names) <= set(self.covariate_names) for one in others)
        return tuple(others if is_apart else every)

    @cached_property
    def cells(self) -> dict[str, IntArray]:
        """Return the (K,) values of released columns at each of their joint true values that occur.

        Raises:
            InputError: they are too many.
        """
        sizes = [len(one.mechanism.inputs) for one in self.cell_owners]
        if (count := math.prod(sizes)) > MAX_CELLS:
            names = [name for one in self.cell_owners for name in one.names]
            raise InputError(
                f"the released columns {join_words(names)} have {count} joint values: a model has at most "
                f"{MAX_CELLS}, those of columns included that were released together with its own. Leave "
                "released covariates out of the formula"
            )
        places = np.unravel_index(np.arange(count), sizes) if sizes else ()
        return {
            name: codes[letters]
            for one, letters in zip(self.cell_owners, places, strict=True)
            for name, codes in one.codes.items()
        }

    def number_cells(self, names: Iterable[str]) -> IntArray:
        """Find (K,) numbers of the joint true values, which those share that agree in some columns."""
        columns = [self.cells[name] for name in names if name in self.cells]
        if not columns:
            return np.zeros(math.prod(len(one.mechanism.inputs) for one in self.cell_owners), int)
        found = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1]
        return np.asarray(found.reshape(-1))

    def compute_cell_likelihoods(self, people: IntArray) -> FloatArray:
        """Compute (K, r) the probability of what people released, by the joint true values."""
        found = np.ones((1, len(people)))
        for one in self.cell_owners:
            found = multiply_pairs(found, one.mechanism.matrix[:, one.places[people]])
        return found

    @property
    def response_outputs(self) -> FloatArray:
        """Return the probability of what a person released of the response, by its true letter.

        It is (N, 1, n), or where the joint true values have the response, (N, K, n) whether it is theirs.
        """
        owner = self.owners[self.response]
        if self.response not in self.cells:
            return owner.mechanism.matrix[:, None, owner.places]
        own = np.eye(len(owner.values[self.response]))[:, self.cells[self.response], None]
        return np.broadcast_to(own, (*own.shape[:2], len(self.clear)))

    def group_people(self, designs: Iterable[FloatArray]) -> tuple[IntArray, IntArray]:
        """Group people who are alike in all columns: (r,) one of each, and (n,) the group of each person.

        Everybody is a group where (..., n) covariates differ within one, as those of a running mean do.
        """
        pandas = import_pandas()
        columns = [pandas.factorize(self.clear[name])[0] for name in self.clear]
        places = np.zeros(len(self.clear), dtype=int)
        for column in (*columns, *(one.places for one in self.every_owner)):
            places = pandas.factorize(places * (column.max() + 1) + column)[0]
        first = np.unique(places, return_index=True)[1]
        alike = first[places]
        if all((design[..., alike] == design).all() for design in designs):
            return first, places
        everybody = np.arange(len(places))
        return everybody, everybody

    def build_designs(self) -> tuple[list[str], FloatArray]:
        """Build the names and the (d, K, n) covariates, by the joint true values.

        Raises:
            InputError: the formula cannot be evaluated, or the true values are too many.
        """
        people = len(self.clear)
        _, first, numbers = np.unique(
            self.number_cells(self.covariate_names), return_index=True, return_inverse=True
        )
        stacked = [
            self.clear.assign(**{
                name: self.owners[name].make_cells(name, np.full(people, self.cells[name][cell]))
                for name in self.covariate_names
            })
            for cell in first
        ]  # fmt: skip
        whole = import_pandas().concat(stacked, ignore_index=True)
        names, design = evaluate_formula(self.covariates, whole)
        found = design.reshape(-1, len(first), people)
        return names, found if len(first) == len(numbers) else found[:, numbers]

    def build_noisy_design(self) -> FloatArray | None:
        """Build the (d, 1, n) covariates as if what was released were true; None where it is no letter."""
        cells = {}
        for name in self.covariate_names:
            letters = self.owners[name].find_letters(name)
            if letters is None:
                return None
            cells[name] = self.owners[name].make_cells(name, letters)
        return evaluate_formula(self.covariates, self.clear.assign(**cells))[1][:, None]


def read_model_frame(
    released: Any,
    formula: str,
    mechanisms: ColumnMechanisms,
    law: str | None = None,
    drop_missing: bool = False,
) -> ModelFrame:
    """Read the columns that a formula names, from a frame of any library or a mapping.

    Args:
        released: the frame.
        formula: of the regression.
        mechanisms: by name, or by the tuple of their names, of the columns that were released.
        law: the formula of the law of the released covariates.
        drop_missing: whether rows with missing cells in these columns are left out, or refused.

    Raises:
        InputError: the formula is none, a column is missing or has missing cells, or a mechanism is of no
            column, or of one that another is of.
        MechanismError: a released value is no output of its mechanism.
    """
    columns = _read_columns(released)
    response, covariates = _parse_formula(formula)
    parts = _list_mechanisms(columns, mechanisms)
    law_terms = None if law is None else _read_formula(law.strip().removeprefix("~"))
    named = _choose_columns(columns, response, covariates, law_terms, parts)
    hidden = {names: one for names, one in parts.items() if set(names) & set(named)}
    clear = [name for name in named if not any(name in names for names in hidden)]
    used = [*clear, *(name for one in hidden.items() for name in _name_outputs(*one))]
    rows = len(columns[used[0]])
    kept = _find_complete_rows({name: columns[name] for name in used}, drop_missing)
    if len(kept) < rows:
        columns = {name: _take_cells(columns[name], kept) for name in used}
    read = [_read_released(*one, columns) for one in hidden.items()]
    owners = {name: one for name in named for one in read if name in one.names}
    frame = import_pandas().DataFrame(
        {name: columns[name] for name in clear}, index=range(len(kept))
    )
    for name in frame.columns[frame.dtypes == "category"]:
        frame[name] = frame[name].cat.remove_unused_categories()
    return ModelFrame(response, covariates, law_terms, frame, owners, kept, rows)


def _list_mechanisms(
    columns: Mapping[str, Any], mechanisms: ColumnMechanisms
) -> dict[tuple[str, ...], Mechanism]:
    """List mechanisms by their columns, and check that what they released is there."""
    lists = [names if isinstance(names, tuple) else (names,) for names in mechanisms]
    found = dict(zip(lists, map(as_mechanism, mechanisms.values()), strict=True))
    every = [name for names in lists for name in names]
    if twice := [name for name in every if every.count(name) > 1]:
        raise InputError(f"two mechanisms are for {twice[0]!r}: a column is released once")
    for names, mechanism in found.items():
        for name in _name_outputs(names, mechanism):
            if name not in columns:
                raise InputError(
                    f"the mechanism of {name!r} is of no column: there are {join_words(columns, 9)}"
                )
        wrong = [
            label for label in mechanism.inputs
            if not (isinstance(label, tuple) and len(label) == len(names))
        ]  # fmt: skip
        if len(names) > 1 and wrong:
            raise InputError(
                f"the letter {wrong[0]!r} is no tuple of the columns {join_words(names)}, which were "
                "released together"
            )
    return found


def _name_outputs(names: tuple[str, ...], mechanism: Mechanism) -> list[str]:
    """Name the columns with the outputs of a mechanism."""
    return [name for name, _ in ColumnRelease(mechanism, names).output_columns]


def _choose_columns(
    columns: Mapping[str, Any],
    response: str,
    covariates: Any,
    law: Any,
    mechanisms: Iterable[tuple[str, ...]],
) -> list[str]:
    """Choose the columns that the formulas of a model name, and check that they are there."""
    hidden = [*itertools.chain.from_iterable(mechanisms)]
    known = dict.fromkeys([*columns, *hidden])
    terms = [*covariates, *(law or ())]
    factors = {str(factor) for term in terms for factor in term.factors}
    required = {str(name) for one in (covariates, law) if one for name in one.required_variables}
    for name in (response, *sorted(factors & required)):
        if name not in known:
            raise InputError(f"there is no column {name!r}: there are {join_words(known, 9)}")
    variables = required.union(*map(_find_names, factors))
    if response in variables:
        raise InputError(f"{response!r} is the response and a covariate: leave it out of one side")
    if "Intercept" in required:
        raise InputError("a column is named 'Intercept', which is a name of formulas: rename it")
    for name in law.required_variables if law else ():
        if name in hidden:
            raise InputError(
                f"the law is of columns in clear, and {str(name)!r} was released: leave it out"
            )
    return [name for name in known if name in {response, *variables}]


def _find_names(factor: str) -> set[str]:
    """Find the names of columns in a factor, also in transforms such as `scale(age)`.

    formulaic lists none of a transform that keeps a state. Functions and modules are left out.

    Examples:
        >>> sorted(_find_names("bs(age, df=4) * np.log(height)")), _find_names("scale(`the age`)")
        (['age', 'height'], {'the age'})
    """
    quoted = re.findall(r"`([^`]*)`", factor)
    try:
        tree = ast.parse(re.sub(r"`[^`]*`", "0", factor), mode="eval")
    except SyntaxError:
        return set(quoted)
    nodes = list(ast.walk(tree))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    called |= {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    names = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}
    return {*quoted, *names}


def _find_complete_rows(columns: Mapping[str, Any], drop_missing: bool) -> IntArray:
    """Find the rows without missing cells."""
    sizes = {name: len(cells) for name, cells in columns.items()}
    rows = max(sizes.values())
    if len(set(sizes.values())) > 1 or not rows:
        raise InputError(f"columns have the same number of rows, at least one, and not {sizes}")
    kept = np.arange(rows)
    for name, cells in columns.items():
        lacking = _find_missing(cells)
        if len(lacking) and not drop_missing:
            raise InputError(
                f"the column {name!r} has {pluralize(len(lacking), 'missing cell')}, the first at position "
                f"{lacking[0]}: leave such rows out (drop_missing=True)"
            )
        kept = np.setdiff1d(kept, lacking)
    if not len(kept):
        raise InputError("every row has a missing cell: there is nothing to fit")
    return kept


def _find_missing(cells: Any) -> IntArray:
    """Find the places of missing cells."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iufb":
        return np.flatnonzero(np.isnan(cells))
    return np.array(list_missing(cells), dtype=int)


def _take_cells(cells: Any, kept: IntArray) -> Any:
    """Take some cells of a column: an array, or a list."""
    return [cells[place] for place in kept] if isinstance(cells, list) else cells[kept]


def _read_columns(released: Any) -> dict[str, Any]:
    """Read the columns of a frame as pandas columns, or those of a mapping as lists."""
    found = to_narwhals(released)
    if found is not None and is_frame(found):
        frame = found.to_pandas()
        return {str(name): frame[name].array for name in frame.columns}
    if isinstance(released, Mapping):
        return {
            str(name): column
            if isinstance(column, import_pandas().Categorical)
            else read_column(column, f"the column {name!r}", InputError, missing=True)
            for name, column in released.items()
        }
    raise InputError(
        f"the released columns are {type(released).__name__}: give a frame, or a mapping from names to "
        "columns"
    )


def _read_released(
    names: tuple[str, ...], known: Mechanism, columns: Mapping[str, Any]
) -> ReleasedColumns:
    """Read what columns released, and check that their mechanism reveals something."""
    what = f"the column {'+'.join(names)!r}"
    if np.linalg.matrix_rank(known.matrix) < 2:
        raise MechanismError(
            f"the mechanism of {'+'.join(names)!r} has rank 1: what it releases does not depend on "
            "the letter, and identifies no coefficient"
        )
    parts = [list(columns[name]) for name in _name_outputs(names, known)]
    outputs = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
    try:
        places = np.array(find_outputs(known, outputs))
    except InputError as error:
        raise type(error)(f"{what}: {error}") from None
    never = [place for place in np.unique(places) if not known.support[place]]
    if never:
        raise MechanismError(
            f"{what} has the output {known.outputs[never[0]]!r}, which its mechanism never emits"
        )
    return ReleasedColumns(names, match_output_labels(known, outputs), places)


def _read_formula(formula: str) -> Any:
    """Read a formula by formulaic."""
    formulaic = import_optional("formulaic", "models")
    from formulaic.errors import FormulaicError

    try:
        return formulaic.Formula(formula)
    except (FormulaicError, SyntaxError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"the formula {formula!r} cannot be read: {reason}") from None


def _parse_formula(formula: str) -> tuple[str, Any]:
    """Parse `response ~ covariates` into the name and the formula of the covariates."""
    parsed = _read_formula(formula)
    with suppress(AttributeError, TypeError):  # it has no sides, or several
        terms = [[str(factor) for factor in term.factors] for term in parsed.lhs]
        covariates = parsed.rhs
        if len(terms) == 1 and len(terms[0]) == 1 and len(list(parsed.lhs.required_variables)) == 1:
            (name,) = parsed.lhs.required_variables
            if str(name) == terms[0][0] and hasattr(covariates, "required_variables"):
                return str(name), covariates
    raise InputError(
        f"the formula {formula!r} is not of the form 'response ~ covariates' with one column as response: "
        "transform the response before"
    )


def evaluate_formula(covariates: Any, frame: Any) -> tuple[list[str], FloatArray]:
    """Evaluate the covariates of a formula: their names, and (d, n) their values.

    Raises:
        InputError: a column is missing, an expression fails, a factor has one value, or a value is no finite
            number.
    """
    formulaic = import_optional("formulaic", "models")
    from formulaic.errors import FormulaicError

    try:
        with np.errstate(all="ignore"):  # what is not finite is refused below
            found = formulaic.model_matrix(covariates, frame, na_action="ignore", context={})
            values = np.ascontiguousarray(np.asarray(found, dtype=float).T)
    except (FormulaicError, ValueError) as error:  # contrasts and text raise the other
        raise InputError(f"the formula cannot be evaluated: {str(error).splitlines()[0]}") from None
    if empty := [str(one.term) for one in found.model_spec.structure if not one.columns]:
        raise InputError(f"the covariate {empty[0]} has one value: leave it out")
    names = [str(name) for name in found.columns]
    bad = [name for name, row in zip(names, values, strict=True) if not np.isfinite(row).all()]
    if bad or not names:
        raise InputError(
            f"the covariates {join_words(bad)} have values that are no finite numbers" if bad
            else "the formula has no covariate and no intercept"
        )  # fmt: skip
    return names, values


def find_law_design(designs: FloatArray) -> FloatArray:
    """Find the (g, n) of (d, K, n) covariates that no released column changes, with an intercept.

    Examples:
        >>> find_law_design(np.array([[[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0]]])).tolist()
        [[1.0, 1.0]]
    """
    same = designs[(designs == designs[:, :1]).all(axis=(1, 2)), 0]
    ones = np.ones(designs.shape[2])
    if same.size and np.allclose(fit_least_squares(same, ones) @ same, 1.0):
        return np.asarray(same)
    return np.vstack([ones, same])


def orthogonalize_columns(
    names: Sequence[str], designs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return (d, K, n) orthogonal covariates of order one, and (d, d) what they were multiplied by.

    Raises:
        InputError: covariates are collinear.
    """
    columns = designs.reshape(len(designs), -1).T
    sizes = np.linalg.norm(columns, axis=0)
    upper = np.linalg.qr(columns / np.where(sizes > 0, sizes, 1.0), mode="r")
    flat = np.ones(len(sizes), dtype=bool)
    flat[: len(upper)] = np.abs(np.diag(upper)) < 1e-9
    if flat.any():
        raise InputError(
            f"the covariate {names[int(flat.argmax())]} is determined by those before it: leave it out"
        )
    back = np.diag(np.sqrt(len(columns)) / sizes) @ np.linalg.inv(upper)
    return (back.T @ columns.T).reshape(designs.shape), back
