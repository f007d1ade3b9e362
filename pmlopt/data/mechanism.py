"""The mechanism: the channel that turns the secret into the release."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.display import (
    draw_heat_map,
    format_matrix_html,
    format_matrix_text,
    format_probability,
    format_table_latex,
    import_pandas,
)
from pmlopt.core.frames import get_pandas_index, has_labels, to_narwhals
from pmlopt.core.near_labels import describe_difference
from pmlopt.core.numbers.argument_checks import check_one_for_each
from pmlopt.core.numbers.arrays import (
    SUM_ATOL,
    DefaultLabels,
    FloatArray,
    IntArray,
    Label,
    Labels,
    abbreviate,
    check_labels_of_size,
    copy_float_array,
    have_same_label_set,
    have_same_labels,
    indices_of,
    make_label_key,
    name_outputs,
    select_labels,
    to_label_array,
)
from pmlopt.core.suggestions import SuggestsAttributes
from pmlopt.data.explanations import explain_sizes, explain_sums
from pmlopt.data.labelled import Numbers, read_column, read_labelled_table
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.sampling.categorical import RowSampler, Seed, make_random_bits
from pmlopt.errors import FileFormatError, InputError, MechanismError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, init=False)
class Mechanism(SuggestsAttributes):
    """A privacy mechanism P_{Y|X}: a row-stochastic matrix with labelled rows and columns.

    Args:
        matrix: (N, M) non-negative numbers; row x is the law of the output Y when X = x. A pandas frame has
            its labels in its index and its columns, one of Polars or Arrow in its first column and the names
            of the others; a mapping goes from input to output to probability.
        inputs: N labels of the rows. Where none are given they are `DefaultLabels`, the numbers 0, 1, ...,
            N-1, which pair with the labels of a prior by position; labels that are given never do.
        outputs: M labels of the columns, the same.

    Raises:
        MechanismError: the matrix is not two-dimensional, has a negative, NaN or infinite entry, or
            a row that does not sum to one (within 1e-9), or the labels do not fit.

    Examples:
        >>> mechanism = Mechanism([[0.75, 0.25], [0.25, 0.75]], inputs=["no", "yes"])
        >>> mechanism.matrix.shape, mechanism.inputs, mechanism.outputs
        ((2, 2), ('no', 'yes'), (0, 1))
    """

    ATTRIBUTE_HINTS: ClassVar[Mapping[str, str]] = {
        "labels": ".inputs for its rows and .outputs for its columns",
        "apply": ".sample(values)", "release": ".sample(values)", "transform": ".sample(values)",
        "probabilities": ".matrix", "to_numpy": ".matrix", "values": ".matrix", "T": ".matrix.T",
        "to_csv": ".save('mechanism.csv')", "to_json": ".save('mechanism.json')", "to_frame": ".to_pandas()",
        "pml": "pmlopt.leakage_level(prior, mechanism)", "level": "pmlopt.leakage_level(prior, mechanism)",
        "leakage": "pmlopt.audit(prior, mechanism)", "audit": "pmlopt.audit(prior, mechanism)",
        "compose": "pmlopt.releases.compose([mechanism, other])", "prior": "the prior that you designed for",
        "estimate": "pmlopt.estimate(mechanism, counts)",
    }  # fmt: skip

    matrix: FloatArray
    inputs: Labels
    outputs: Labels

    def __init__(
        self,
        matrix: Numbers,
        inputs: Iterable[Label] | None = None,
        outputs: Iterable[Label] | None = None,
    ) -> None:
        values: Any = matrix
        if not (type(matrix) is np.ndarray and matrix.ndim == 2):
            found = read_labelled_table(matrix, "the mechanism", MechanismError)
            values = found.values
            rows_named, columns_named = found.axes
            if (rows_named is not None and inputs is not None) or (
                columns_named is not None and outputs is not None
            ):
                raise MechanismError(
                    "the matrix carries its labels already: leave out `inputs` and `outputs`"
                )
            inputs = rows_named or inputs
            outputs = columns_named or outputs
        array = copy_float_array(values, 2, "the mechanism", MechanismError)
        rows = check_labels_of_size(
            inputs, array.shape[0], "the mechanism's inputs", MechanismError
        )
        columns = check_labels_of_size(
            outputs, array.shape[1], "the mechanism's outputs", MechanismError
        )
        if array.min() < 0:
            x, y = (int(i) for i in np.argwhere(array < 0)[0])
            raise MechanismError(
                f"the probability of the output {columns[y]!r} given {rows[x]!r} is {array[x, y]}: "
                "probabilities cannot be negative"
            )
        # rows are checked and not divided: a claim is about the matrix as it was given
        sums = array.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > SUM_ATOL:
            raise MechanismError(
                f"the row of {rows[worst]!r} sums to {sums[worst]:.12g}, not to 1: {explain_sums(array)}"
            )
        vars(self).update(matrix=array, inputs=rows, outputs=columns)

    @property
    def output_names(self) -> Labels:
        """Return the outputs as files name them: y0, y1, ... where only the inputs have labels.

        Examples:
            >>> Mechanism([[0.5, 0.5]], inputs=[1]).output_names
            ('y0', 'y1')
        """
        return name_outputs(self.inputs, self.outputs)

    def with_named_outputs(self) -> Mechanism:
        """Name the outputs as files do: the numbers 0, 1, ... would pass for letters there."""
        names = self.output_names
        return self if names is self.outputs else Mechanism(self.matrix, self.inputs, names)

    def __eq__(self, other: object) -> bool:
        """Whether the other is a mechanism with the same labels, in this order, and the same matrix."""
        if type(self) is not type(other) or not isinstance(other, Mechanism):
            return NotImplemented
        return (
            np.array_equal(self.matrix, other.matrix)
            and have_same_labels(self.inputs, other.inputs)
            and have_same_labels(self.outputs, other.outputs)
        )

    def __hash__(self) -> int:
        return hash((self.inputs, self.outputs, self.matrix.tobytes()))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the matrix, for numpy."""
        return np.array(self.matrix, dtype=dtype, copy=copy)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape (N, M): numbers of inputs and outputs.

        Examples:
            >>> Mechanism([[0.75, 0.25, 0.0]]).shape
            (1, 3)
        """
        return len(self.inputs), len(self.outputs)

    def __repr__(self) -> str:
        """Return the size and the labels: the numbers are in `matrix`."""
        return f"<Mechanism of {abbreviate(self.inputs)} to {abbreviate(self.outputs)}>"

    def __str__(self) -> str:
        """Return the matrix as aligned text, with four decimals."""
        return format_matrix_text(self.matrix, self.inputs, self.outputs)

    def _repr_html_(self) -> str:
        """Return the matrix as a notebook shows it."""
        n, m = self.matrix.shape
        return format_matrix_html(
            f"Mechanism, {n} inputs and {m} outputs", self.matrix, self.inputs, self.outputs
        )

    def posterior(self, prior: PriorLike) -> FloatArray:
        """Compute the (N, M) posterior of the inputs given each output, `p[x] P[x,y] / q[y]`; NaN where q[y]
        is 0.

        Examples:
            >>> Mechanism([[0.75, 0.25], [0.25, 0.75]]).posterior([0.5, 0.5]).tolist()
            [[0.75, 0.25], [0.25, 0.75]]
        """
        p, m = pair_with_prior(prior, self)
        with np.errstate(invalid="ignore"):
            # q may be below the floats
            scaled = m.matrix / np.where(m.support, m.matrix.max(axis=0), np.nan)
            joint = p.pmf[:, None] * scaled
            return np.asarray(joint / joint.sum(axis=0))

    def to_pandas(self) -> Any:
        """Return the matrix as a pandas data frame, inputs down and outputs across.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        pandas = import_pandas()
        index = pandas.Index(list(self.inputs), tupleize_cols=False)
        columns = pandas.Index(list(self.outputs), tupleize_cols=False)
        return pandas.DataFrame(self.matrix, index=index, columns=columns)

    def to_latex(self, digits: int = 4) -> str:
        r"""Return the matrix as a LaTeX table, for the package booktabs.

        Examples:
            >>> print(Mechanism([[0.75, 0.25]], ["yes"], ["a", "b"]).to_latex().splitlines()[4])
            yes & 0.75 & 0.25 \\
        """
        rows = zip(self.inputs, self.matrix, strict=True)
        return format_table_latex(
            ["", *map(str, self.outputs)],
            [
                [str(label), *(format_probability(entry, digits) for entry in row)]
                for label, row in rows
            ],
        )

    def plot(self) -> Figure:
        """Plot the matrix as a heat map; `plots.draw_mechanism` adds the leakage under a prior.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        return draw_heat_map(self.matrix, self.inputs, self.outputs)

    @property
    def record(self) -> dict[str, Any]:
        """Serialize the mechanism to plain data: labels and matrix."""
        return {
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "matrix": self.matrix.tolist(),
        }

    @property
    def support(self) -> NDArray[np.bool_]:
        """Return the (M,) mask of outputs with positive probability.

        Examples:
            >>> Mechanism([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]).support
            array([ True,  True, False])
        """
        return np.asarray(self.matrix.max(axis=0) > 0)

    def post_process(self, channel: MechanismLike) -> Mechanism:
        """Return the mechanism followed by a channel from its outputs: the matrix product P W.

        Args:
            channel: (M, K) row-stochastic; its rows are this mechanism's outputs.

        Examples:
            >>> Mechanism(np.eye(2)).post_process([[0.5, 0.5], [0.0, 1.0]]).matrix
            array([[0.5, 0.5],
                   [0. , 1. ]])
        """
        after = as_mechanism(channel)
        sizes = len(after.inputs), "inputs", len(self.outputs), "outputs"
        check_one_for_each("the channel has", *sizes, MechanismError)
        check_labels_match(
            after.inputs, self.outputs, "the channel's inputs", "the mechanism's outputs"
        )
        return Mechanism(self.matrix @ after.matrix, self.inputs, after.outputs)

    def reduced(self, rtol: float = 1e-12) -> Mechanism:
        """Remove impossible outputs, and merge outputs with proportional columns.

        Two outputs are similar when their columns are proportional [saeidian2026envelopes]: they reveal an
        adversary the same. Merging keeps the first one's label and leaves every leakage unchanged.

        Examples:
            >>> Mechanism([[0.2, 0.3, 0.5, 0.0], [0.4, 0.6, 0.0, 0.0]]).reduced().matrix
            array([[0.5, 0.5],
                   [1. , 0. ]])
        """
        groups = self.similar_outputs(rtol)
        # the sum of proportional columns is proportional to each: every leakage stays
        merged = np.column_stack([self.matrix[:, group].sum(axis=1) for group in groups])
        return Mechanism(
            merged, self.inputs, select_labels(self.outputs, [group[0] for group in groups])
        )

    def similar_outputs(self, rtol: float = 1e-12) -> list[list[int]]:
        """Group output indices by proportional columns, up to `rtol`.

        Examples:
            >>> Mechanism([[0.2, 0.3, 0.5, 0.0], [0.4, 0.6, 0.0, 0.0]]).similar_outputs()
            [[0, 1], [2]]
        """
        occurring = np.flatnonzero(self.support)
        # each column over its peak: what is left does not depend on how likely the output is
        shapes = self.matrix[:, occurring] / self.matrix[:, occurring].max(axis=0)
        sums = shapes.sum(axis=0)
        # proportional columns over their peaks are equal, so their sums are too
        order = np.argsort(sums, kind="stable")
        # those of similar columns differ by little: only neighbours in their order need be compared
        steps = np.diff(sums[order]) > (2 * rtol + 1e-15 * len(shapes)) * sums[order][1:]
        blocks = np.split(order, np.flatnonzero(steps) + 1)
        groups = [
            group for block in blocks for group in _group_columns(shapes, np.sort(block), rtol)
        ]
        return sorted([int(occurring[y]) for y in group] for group in groups)

    def sample(self, values: Iterable[Label], seed: Seed = None) -> Any:
        """Draw one random output for each value, independently and exactly.

        Bits are compared with the sums of the matrix as whole numbers (`pmlopt.data.sampling.categorical`),
        so that each output has its probability in the row, over the row's sum, and not nearly.

        Args:
            values: labels of inputs: an array, a series of pandas or Polars, or any iterable.
            seed: for a result that can be repeated, a seed or a numpy Generator; None draws from the
                operating system, as a release must.

        Returns:
            (n,) the labels of the outputs: an array of numbers or truth values where all of them are of one
            such kind, else of Python objects; for a series of pandas, one with its index and its name.

        Raises:
            MechanismError: a value is not an input.

        Examples:
            >>> Mechanism(np.eye(2), ["a", "b"], ["A", "B"]).sample(["b", "a"], seed=1)
            array(['B', 'A'], dtype=object)
            >>> Mechanism(np.eye(2), ["a", "b"]).sample(["b", "a", "b"])
            array([1, 0, 1])
        """
        # tables are built for the rows that occur, which may be few of many
        used, rows = np.unique(find_rows(self.inputs, values), return_inverse=True)
        drawn = rows
        if len(rows):
            drawn = RowSampler(self.matrix[used]).draw_outputs(rows, make_random_bits(seed))
        labels = to_label_array(self.outputs)[drawn]
        found = to_narwhals(values)
        index = None if found is None else get_pandas_index(found)
        if index is None:
            return labels
        return import_pandas().Series(labels, index, name=getattr(values, "name", None))

    def save(self, path: str | os.PathLike[str], metadata: Mapping[str, Any] | None = None) -> None:
        """Save the mechanism atomically, in the file format of the suffix.

        `.csv`, `.tsv`: the header is the outputs, the first column the inputs. `.xlsx`: the same in a sheet
        of Excel. `.parquet`: a column for each output after one of the inputs. `.json`: labels, matrix and
        metadata. `.npz`: the same as numpy arrays. `.npy`: the matrix, and its labels after it. `.mat`: the
        variables `P`, `inputs` and `outputs` for MATLAB and Octave. Floats are written so that reading gives
        back the same doubles. Labels are text, numbers, or tuples of these: a tuple is a list in JSON, and in
        CSV what Python writes for it, `('no', 1)`. Labels that a format would not give back are refused.
        Metadata, such as the certificate of a result, is kept by JSON and NPZ only. CSV, TSV, XLSX and
        Parquet have no room for the absence of labels: the numbers 0, 1, ... come back as labels that were
        given, the outputs of inputs with labels as y0, y1, ... The other formats keep it.

        Raises:
            FileFormatError: the file cannot be written, or its format cannot hold the labels.
            MissingExtraError: the file is .xlsx, and openpyxl is not installed.
        """
        from pmlopt.core.matrices.formats import write_matrix
        from pmlopt.core.matrices.matrix_file import MatrixFile

        write_matrix(path, MatrixFile(self.matrix, self.inputs, self.outputs, metadata or {}))

    def export(
        self,
        path: str | os.PathLike[str],
        language: str | None = None,
        *,
        bits: int | None = None,
        name: str = "",
        statement: Sequence[str] = (),
    ) -> None:
        """Write the mechanism as source code that draws its outputs in another language, with the same law.

        The file needs no library. It compares random bits of the platform's generator for cryptography with
        whole numbers, so that the output of a letter has its probability in the matrix exactly.

        Args:
            path: of the file.
            language: js, mjs, ts, c, rust, kotlin, swift, r, sql (PostgreSQL) or python; left out, by the
                ending .js, .mjs, .ts, .c, .rs, .kt, .swift, .R, .sql or .py. Or xlsform or spreadsheet, whose
                generators are unfit for secrets: workbooks (.xlsx) of a matrix that is rounded to at most 31
                or 48 bits.
            bits: of a draw, to which the sums of each row are rounded, which changes the leakage level; left
                out, 53, and nothing is rounded.
            name: what tells its functions from those of another mechanism in one program.
            statement: sentences for the comment on top; `Result.export` states requirement and level.

        Raises:
            MechanismError: the entries are no multiples of 2^-53 whose rows sum to one, and no bits are
                given; or a label is no text in every language, or not in this one.
            InputError: the language is not known, or has no generator for cryptography.
            MissingExtraError: openpyxl is not installed, which workbooks need.
            FileFormatError: the file cannot be written.

        Examples:
            >>> import pathlib, tempfile
            >>> folder = tempfile.TemporaryDirectory()
            >>> path = pathlib.Path(folder.name) / "response.js"
            >>> Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"]).export(path)
            >>> [line for line in path.read_text().splitlines() if "[675" in line]
            ['  [6755399441055744, 9007199254740992],']
            >>> folder.cleanup()
        """
        from pmlopt.data.samplers.export import export_sampler

        export_sampler(self, path, language, bits=bits, name=name, statement=statement)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, name: str | None = None) -> Mechanism:
        """Load a mechanism from any supported file format.

        The labels in a file are labels that were given, unless a JSON or NPZ file states under "unnamed" that
        no one gave them. Files of numpy and MATLAB without labels are matrices that no one gave labels. No
        entry is rounded or divided by its row's sum.

        Args:
            path: of the file.
            name: of the variable in a .mat file, or the sheet in an .xlsx file, where it holds several
                matrices. Where it is left out, the variable `P` is read, or the only matrix of numbers; of a
                workbook the only sheet that is not hidden.

        Raises:
            FileFormatError: the file is not there, cut short, holds no mechanism, or holds several.
            MissingExtraError: the file is .xlsx, and openpyxl is not installed.
        """
        return read_saved_mechanism(path, name)[0]


def read_saved_mechanism(
    path: str | os.PathLike[str], name: str | None = None
) -> tuple[Mechanism, Mapping[str, Any]]:
    """Read mechanism and metadata of a matrix file; see `Mechanism.load`."""
    from pmlopt.core.matrices.formats import read_matrix

    stored = read_matrix(path, name=name)
    try:
        return Mechanism(stored.matrix, stored.inputs, stored.outputs), stored.metadata
    except MechanismError as error:
        raise FileFormatError(f"{path}: {error} (or the file is cut short)") from None


def find_rows(inputs: Sequence[Label], values: Iterable[object]) -> IntArray:
    """Find the row index of each input value; raise an error for unknown ones."""
    given = read_column(values, "the values", MechanismError, missing=True)
    try:
        return np.array(indices_of(given, inputs, "the values", MechanismError), dtype=np.int64)
    except MechanismError:
        known = set(map(make_label_key, inputs))
        strange = next(
            v for v in given if not isinstance(v, Hashable) or make_label_key(v) not in known
        )
        near = describe_difference([strange], inputs) if isinstance(strange, Hashable) else ""
        raise MechanismError(
            f"the value {strange!r} is not an input of the mechanism, whose inputs are "
            f"{abbreviate(inputs)}{near}"
        ) from None


def wrap_checked_matrix(
    matrix: FloatArray, inputs: Labels, outputs: Labels | None = None
) -> Mechanism:
    """Wrap a computed, already validated matrix and labels without copies.

    Args:
        matrix: (N, M) row-stochastic, which no other code changes.
        inputs: N labels.
        outputs: M labels; left out, `DefaultLabels`.
    """
    found = Mechanism.__new__(Mechanism)
    vars(found).update(
        matrix=matrix,
        inputs=inputs,
        outputs=DefaultLabels(matrix.shape[1]) if outputs is None else outputs,
    )
    return found


MechanismLike: TypeAlias = Mechanism | Numbers


def as_mechanism(mechanism: MechanismLike) -> Mechanism:
    """Convert a row-stochastic array to a `Mechanism`; return a `Mechanism` unchanged.

    Raises:
        MechanismError: it is no mechanism with a matrix; noise with a continuum of outcomes states why not.
    """
    if isinstance(mechanism, Mechanism):
        return mechanism
    reason = getattr(mechanism, "no_matrix", None)
    if isinstance(reason, str):
        raise MechanismError(f"{mechanism!r} is no mechanism with a matrix: {reason}")
    return Mechanism(mechanism)


def pair_with_prior(prior: PriorLike, mechanism: MechanismLike) -> tuple[Prior, Mechanism]:
    """Align a prior with a mechanism on the same letters; raise an error for different ones.

    A mapping, a series or a frame is put into the order of the other side; a `Prior` and a `Mechanism`, which
    have an order, must have the same.
    """
    if (
        isinstance(prior, Prior)
        and isinstance(mechanism, Mechanism)
        and prior.labels is mechanism.inputs
    ):
        return prior, mechanism
    if isinstance(prior, Mechanism) or isinstance(mechanism, Prior):
        raise MechanismError("the prior comes first, and then the mechanism")
    # sizes before labels: labels of another number can never be brought into one order
    p = as_prior(prior)
    m = as_mechanism(mechanism)
    if p.size != len(m.inputs):
        raise MechanismError(
            f"the prior has {p.size} letters and the mechanism {len(m.inputs)} inputs"
            + explain_sizes(p.labels, m.inputs)
        )
    if (
        has_labels(prior)
        and not isinstance(m.inputs, DefaultLabels)
        and have_same_label_set(p.labels, m.inputs)
    ):
        p = p.reordered(m.inputs)
    elif (
        has_labels(mechanism)
        and not isinstance(p.labels, DefaultLabels)
        and have_same_label_set(p.labels, m.inputs)
    ):
        order = indices_of(p.labels, m.inputs, "the prior's letters", MechanismError)
        m = Mechanism(m.matrix[order], p.labels, m.outputs)
    check_labels_match(m.inputs, p.labels, "the mechanism's inputs", "the prior's labels")
    return p, m


def pair_with_names(prior: PriorLike, mechanism: MechanismLike) -> tuple[Prior, Mechanism]:
    """Pair a prior with a mechanism as `pair_with_prior`, and give both the names of the side that has some.

    What is saved has one list of letters, so that the letters of both sides must be the same.

    Examples:
        >>> p, m = pair_with_names(Prior([0.5, 0.5], ["a", "b"]), [[0.6, 0.4], [0.4, 0.6]])
        >>> m.inputs
        ('a', 'b')
    """
    p, m = pair_with_prior(prior, mechanism)
    if isinstance(m.inputs, DefaultLabels):
        return p, Mechanism(m.matrix, p.labels, m.outputs)
    return p.with_labels(m.inputs), m


def check_labels_match(
    left: Labels,
    right: Labels,
    left_name: str,
    right_name: str,
    error: type[InputError] = MechanismError,
) -> None:
    """Raise an error where labels of two sides differ, also in order; default labels match any."""
    if (
        isinstance(left, DefaultLabels)
        or isinstance(right, DefaultLabels)
        or have_same_labels(left, right)
    ):
        return
    both = f"{left_name} {abbreviate(left)} and {right_name} {abbreviate(right)}"
    if have_same_label_set(left, right):
        raise error(f"{both} are the same in another order: reorder one of them (Prior.reordered)")
    if sorted(map(str, left)) == sorted(map(str, right)) or set(left) == set(right):
        raise error(
            f"{both} look alike and differ: text or a truth value on one "
            "side is a number on the other; give both the same"
        )
    raise error(f"{both} differ{describe_difference(left, right)}; give both the same names")


def _group_columns(shapes: FloatArray, left: IntArray, rtol: float) -> list[list[int]]:
    """Group columns that agree up to `rtol` with the first of their group."""
    groups: list[list[int]] = []
    while len(left):
        first = shapes[:, left[:1]]
        # relative in each entry: an absolute tolerance would merge a small entry with a 0
        near = np.abs(first - shapes[:, left]) <= rtol * np.maximum(first, shapes[:, left])
        close = near.all(axis=0)
        groups.append(left[close].tolist())
        left = left[~close]
    return groups
