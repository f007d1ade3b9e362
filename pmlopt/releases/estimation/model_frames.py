"""The covariates of a regression formula, at each true value of the released columns."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmlopt.core.display import import_pandas, pluralize
from pmlopt.core.frames import is_frame, is_missing, to_narwhals
from pmlopt.core.lazy_imports import import_optional
from pmlopt.core.numbers.arrays import FloatArray, IntArray, join_words, make_label_key
from pmlopt.data.labelled import read_column
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.errors import InputError, MechanismError
from pmlopt.releases.estimation.released_outputs import find_outputs, match_output_labels
from pmlopt.releases.estimation.tables import format_label

MAX_CELLS = 100
"""The joint true values of released covariates up to which models are fitted."""


@dataclass(frozen=True)
class ReleasedColumn:
    """A released column of a regression.

    Attributes:
        mechanism: (N, M) that released it.
        places: (n,) the outputs of the people.
    """

    mechanism: Mechanism
    places: IntArray

    @property
    def likelihoods(self) -> FloatArray:
        """Return (n, N) the probability of what a person released, by the true letter."""
        return self.mechanism.matrix[:, self.places].T

    def find_letters(self) -> IntArray | None:
        """Return (n,) the letters that an analyst takes the outputs for; None where one is for none.

        They are those of the same names, or where outputs have other names, the letters that make them
        likeliest.
        """
        known = {make_label_key(one): place for place, one in enumerate(self.mechanism.inputs)}
        named = np.array([known.get(make_label_key(one), -1) for one in self.mechanism.outputs])
        if (named < 0).all():
            chances = self.mechanism.matrix
            is_only = (chances == chances.max(axis=0)).sum(axis=0) == 1
            named = np.where(is_only, chances.argmax(axis=0), -1)
        found: IntArray = named[self.places]
        return None if (found < 0).any() else found

    def make_cells(self, letters: IntArray) -> Any:
        """Build the column of a frame with these letters: numbers, or categories in their order."""
        known = self.mechanism.inputs
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
        clear: a pandas frame of the columns that the formula names.
        released: those of them that were released, by name.
        kept: (n,) the places of its rows among all.
        row_count: how many there are.
    """

    response: str
    covariates: Any
    clear: Any
    released: Mapping[str, ReleasedColumn]
    kept: IntArray
    row_count: int

    @property
    def released_covariates(self) -> dict[str, ReleasedColumn]:
        """Return the released covariates by name."""
        return {name: column for name, column in self.released.items() if name != self.response}

    @property
    def cell_likelihoods(self) -> FloatArray:
        """Return (n, K) the probability of a person's released covariates, by their true values."""
        found = np.ones((len(self.clear), 1))
        for column in self.released_covariates.values():
            found = (found[:, :, None] * column.likelihoods[:, None, :]).reshape(len(found), -1)
        return found

    def build_designs(self) -> tuple[list[str], FloatArray]:
        """Build the names and the (K, n, d) covariates, by the true values of the released ones.

        Raises:
            InputError: the formula cannot be evaluated, or the true values are too many.
        """
        columns = self.released_covariates
        sizes = [len(column.mechanism.inputs) for column in columns.values()]
        if (cells := int(np.prod(sizes))) > MAX_CELLS:
            raise InputError(
                f"the released covariates {join_words(columns)} have {cells} joint values: a model has at "
                f"most {MAX_CELLS}"
            )
        people = len(self.clear)
        stacked = [
            self.clear.assign(**{
                name: column.make_cells(np.full(people, letter))
                for (name, column), letter in zip(columns.items(), letters, strict=True)
            })
            for letters in itertools.product(*map(range, sizes))
        ]  # fmt: skip
        whole = import_pandas().concat(stacked, ignore_index=True)
        names, design = evaluate_formula(self.covariates, whole)
        return names, design.reshape(cells, people, -1)

    def build_noisy_design(self) -> FloatArray | None:
        """Build the (1, n, d) covariates as if what was released were true; None where it is no letter."""
        cells = {}
        for name, column in self.released_covariates.items():
            letters = column.find_letters()
            if letters is None:
                return None
            cells[name] = column.make_cells(letters)
        return evaluate_formula(self.covariates, self.clear.assign(**cells))[1][None]


def read_model_frame(
    released: Any, formula: str, mechanisms: Mapping[str, MechanismLike], drop_missing: bool = False
) -> ModelFrame:
    """Read the columns that a formula names, from a frame of any library or a mapping.

    Args:
        released: the frame.
        formula: of the regression.
        mechanisms: by name, of the columns that were released.
        drop_missing: whether rows with missing cells in these columns are left out, or refused.

    Raises:
        InputError: the formula is none, a column is missing or has missing cells, or a mechanism is of no
            column.
        MechanismError: a released value is no output of its mechanism.
    """
    columns = _read_columns(released)
    response, covariates = _parse_formula(formula)
    used = _choose_columns(columns, response, covariates, mechanisms)
    rows = len(columns[response])
    kept = _find_complete_rows({name: columns[name] for name in used}, drop_missing)
    if len(kept) < rows:
        columns = {name: _take_cells(columns[name], kept) for name in used}
    hidden = {
        name: _read_released(name, columns[name], mechanisms[name])
        for name in used
        if name in mechanisms
    }
    frame = import_pandas().DataFrame(
        {name: columns[name] for name in used if name not in hidden},
        index=range(len(kept)),
    )
    return ModelFrame(response, covariates, frame, hidden, kept, rows)


def _choose_columns(
    columns: Mapping[str, Any],
    response: str,
    covariates: Any,
    mechanisms: Mapping[str, MechanismLike],
) -> list[str]:
    """Choose the columns that a formula names, and check that they and those of mechanisms are there."""
    for name in mechanisms:
        if isinstance(name, tuple):
            raise InputError(
                f"the columns {join_words(name)} were released together, and a formula takes columns that "
                "were released alone: make them one column of tuples and use that as a whole, or estimate "
                'their table by `estimate(..., workload="marginals:1,2")`'
            )
        if name not in columns:
            raise InputError(
                f"the mechanism of {name!r} is of no column: there are {join_words(columns, 9)}"
            )
    factors = {str(factor) for term in covariates for factor in term.factors}
    for name in (response, *sorted(factors & set(covariates.required_variables))):
        if name not in columns:
            raise InputError(f"there is no column {name!r}: there are {join_words(columns, 9)}")
    variables = {*map(str, covariates.required_variables)}.union(*map(_find_names, factors))
    if response in variables:
        raise InputError(f"{response!r} is the response and a covariate: leave it out of one side")
    return [name for name in columns if name in {response, *variables}]


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
    return np.array([place for place, cell in enumerate(cells) if is_missing(cell)], dtype=int)


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


def _read_released(name: str, cells: Any, mechanism: MechanismLike) -> ReleasedColumn:
    """Read what a column released, and check that its mechanism reveals something."""
    known = as_mechanism(mechanism)
    if np.linalg.matrix_rank(known.matrix) < 2:
        raise MechanismError(
            f"the mechanism of {name!r} has rank 1: what it releases does not depend on the letter, and "
            "identifies no coefficient"
        )
    outputs = list(cells)
    try:
        places = np.array(find_outputs(known, outputs))
    except InputError as error:
        raise type(error)(f"the column {name!r}: {error}") from None
    never = [place for place in np.unique(places) if not known.support[place]]
    if never:
        raise MechanismError(
            f"the column {name!r} has the output {known.outputs[never[0]]!r}, which its mechanism never emits"
        )
    return ReleasedColumn(match_output_labels(known, outputs), places)


def _parse_formula(formula: str) -> tuple[str, Any]:
    """Parse `response ~ covariates` into the name and the formula of the covariates."""
    formulaic = import_optional("formulaic", "models")
    from formulaic.errors import FormulaicError

    try:
        parsed = formulaic.Formula(formula)
        terms = [[str(factor) for factor in term.factors] for term in parsed.lhs]
        covariates = parsed.rhs
        if len(terms) == 1 and len(terms[0]) == 1 and len(list(parsed.lhs.required_variables)) == 1:
            (name,) = parsed.lhs.required_variables
            if str(name) == terms[0][0] and hasattr(covariates, "required_variables"):
                return str(name), covariates
    except (FormulaicError, AttributeError, TypeError) as error:
        if isinstance(error, FormulaicError):
            reason = str(error).splitlines()[0]
            raise InputError(f"the formula {formula!r} cannot be read: {reason}") from None
    raise InputError(
        f"the formula {formula!r} is not of the form 'response ~ covariates' with one column as response: "
        "transform the response before"
    )


def evaluate_formula(covariates: Any, frame: Any) -> tuple[list[str], FloatArray]:
    """Evaluate the covariates of a formula: their names, and (n, d) their values.

    Raises:
        InputError: a column is missing, an expression fails, or a value is no finite number.
    """
    formulaic = import_optional("formulaic", "models")
    from formulaic.errors import FormulaicError

    try:
        with np.errstate(all="ignore"):  # what is not finite is refused below
            found = formulaic.model_matrix(covariates, frame, na_action="ignore", context={})
    except FormulaicError as error:
        raise InputError(f"the formula cannot be evaluated: {str(error).splitlines()[0]}") from None
    values = np.asarray(found, dtype=float)
    names = [str(name) for name in found.columns]
    bad = [
        name for name, column in zip(names, values.T, strict=True) if not np.isfinite(column).all()
    ]
    if bad or not names:
        raise InputError(
            f"the covariates {join_words(bad)} have values that are no finite numbers" if bad
            else "the formula has no covariate and no intercept"
        )  # fmt: skip
    return names, values


def find_law_design(designs: FloatArray) -> FloatArray:
    """Find the (n, g) covariates that no released column changes, with an intercept.

    Examples:
        >>> find_law_design(np.array([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]])).tolist()
        [[1.0], [1.0]]
    """
    same = designs[0][:, (designs == designs[:1]).all(axis=(0, 1))]
    ones = np.ones((designs.shape[1], 1))
    if same.size and np.allclose(same @ np.linalg.lstsq(same, ones, rcond=None)[0], ones):
        return np.asarray(same)
    return np.hstack([ones, same])


def orthogonalize_columns(
    names: Sequence[str], designs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return (K, n, d) orthogonal covariates of order one, and (d, d) what they were multiplied by.

    Raises:
        InputError: covariates are collinear.
    """
    rows = designs.reshape(-1, designs.shape[2])
    sizes = np.linalg.norm(rows, axis=0)
    zero = sizes == 0
    upper = np.linalg.qr(rows / np.where(zero, 1.0, sizes), mode="r")
    flat = np.ones(len(sizes), dtype=bool)
    flat[: len(upper)] = np.abs(np.diag(upper)) < 1e-9
    if flat.any():
        raise InputError(
            f"the covariate {names[int(flat.argmax())]} is determined by those before it: leave it out"
        )
    back = np.diag(np.sqrt(len(rows)) / sizes) @ np.linalg.inv(upper)
    return np.asarray(designs @ back), back
