"""Expected gain and expected loss, which are linear in the mechanism, and what may be given as a utility.

That is an object, a name, or a loss function of two labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pmlopt.core.descriptions import describe_value
from pmlopt.core.frames import to_narwhals
from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    FloatArray,
    Label,
    Labels,
    abbreviate,
    copy_float_array,
)
from pmlopt.core.numbers.blocks import sum_row_products
from pmlopt.core.numbers.differences import subtract_exactly
from pmlopt.core.records.fields import (
    NamedValues,
    Record,
    Shape,
    find_tagged_classes,
    get_fields,
)
from pmlopt.core.suggestions import did_you_mean
from pmlopt.data.labelled import Axes, LabelledArray, Numbers, read_labelled_table
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.symmetry.prior import PairSpace
from pmlopt.errors import PmloptError, UtilityError


class Utility(Record, ABC):
    """The interface of utilities: a value on mechanisms, to be maximised or minimised.

    A class with a `kind` has that name on the command line and in problem files.
    """

    USER_NAMES: ClassVar[tuple[str, ...]] = ("kind", "maximised", "value")

    maximised: ClassVar[bool]
    arguments: ClassVar[tuple[str, ...]] = ()
    """What may follow the name, after a colon."""

    @abstractmethod
    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """Compute the utility of a mechanism, in its own units."""


def hamming(x: Any, y: Any) -> float:
    """Return the Hamming loss: 1 where the released label differs from the secret, 0 where it is the same.

    NaN is the same label as NaN: a missing value that is released as missing is no error.

    Examples:
        >>> hamming("a", "a"), hamming("a", "b"), hamming(float("nan"), float("nan"))
        (0.0, 1.0, 0.0)
    """
    if x is y or not bool(x != y):
        return 0.0
    # NaN is the label that differs from itself
    return float(not (bool(x != x) and bool(y != y)))


def absolute(x: Any, y: Any) -> float:
    """Return the absolute loss |x - y|, on labels that are numbers.

    Examples:
        >>> absolute(3, 5)
        2.0
    """
    return abs(_subtract_labels(x, y))


def squared(x: Any, y: Any) -> float:
    """Return the squared loss (x - y)^2, on labels that are numbers.

    Examples:
        >>> squared(3, 5)
        4.0
    """
    difference = _subtract_labels(x, y)
    return difference * difference


LOSSES: Mapping[str, Callable[[Any, Any], float]] = {
    "hamming": hamming,
    "absolute": absolute,
    "squared": squared,
}
"""The losses by name."""


def match(x: Any, y: Any) -> float:
    """Return the gain 1 for a correct guess, else 0.

    Examples:
        >>> match("a", "a"), match("a", "b")
        (1.0, 0.0)
    """
    return 1.0 - hamming(x, y)


FUNCTIONS: Mapping[str, Callable[[Any, Any], float]] = {**LOSSES, "match": match}
"""The functions of two labels by name, losses and gains."""


def tabulate_plain_labels(
    function: Callable[[Any, Any], float], inputs: Sequence[Label], outputs: Sequence[Label]
) -> FloatArray | None:
    """Tabulate a function of this module on labels that are text or whole numbers; None on others."""
    if function not in (hamming, match, absolute, squared):
        return None
    kinds = {*map(type, inputs), *map(type, outputs)}
    if not kinds <= {str, int}:
        return None
    if function in (hamming, match):  # labels of these kinds are equal where they are one key
        distinct = dict.fromkeys([*inputs, *outputs])
        find = dict(zip(distinct, range(len(distinct)), strict=True)).__getitem__
        rows = np.array([*map(find, inputs)])
        columns = np.array([*map(find, outputs)])
        found = np.full((len(rows), len(columns)), 1.0 if function is hamming else 0.0)
        np.copyto(found, 1.0 - found[0, 0], where=rows[:, None] == columns)
        return found
    # differences of whole numbers below this are floats
    limit = 2**52
    if kinds != {int}:
        return None
    if any(abs(one) >= limit for labels in (inputs, outputs) for one in labels):  # type: ignore[arg-type]
        return None
    differences = np.subtract.outer(np.array(inputs, float), np.array(outputs, float))
    return np.asarray((np.abs if function is absolute else np.square)(differences, out=differences))


PairFunction: TypeAlias = Annotated[Callable[[Any, Any], float], NamedValues(FUNCTIONS)]


def _subtract_labels(x: Any, y: Any) -> float:
    """Subtract numeric labels with one rounding; raise an error for others."""
    try:
        return subtract_exactly(x, y)
    except TypeError:
        named = f"{x!r} is no number" if x == y else f"{x!r} and {y!r} are not two numbers"
        raise UtilityError(
            f"this loss subtracts labels, and {named} (in a file, all must be written as 7 or 7.5; one label "
            "such as 07, 7.50 or NA makes all of them text): for text take estimation-error, where "
            "frequencies are estimated, the Hamming loss, or a matrix"
        ) from None


@dataclass(frozen=True, eq=False)
class LinearUtility(Utility):
    """A utility E[f(X, Y)] = sum_xy p[x] f[x,y] P[x,y]; subclasses define whether it is maximised."""

    matrix: Numbers | LabelledArray | Callable[[Any, Any], float]
    axes: ClassVar[Axes] = (None, None)
    """The letters and the outputs that a matrix came with, None for a side that no one named."""

    def __post_init__(self) -> None:
        if not callable(self.matrix):
            name = f"the {self.kind_text} matrix"
            values: Any = self.matrix
            if not (type(values) is np.ndarray and values.ndim == 2):
                found = read_labelled_table(values, name, UtilityError)
                values = found.values
                vars(self).update(axes=found.axes)
            vars(self).update(matrix=copy_float_array(values, 2, name, UtilityError))

    @classmethod
    def from_fields(
        cls,
        matrix: PairFunction | Annotated[FloatArray, Shape("letters", "outputs")],
        letters: Annotated[Labels, Shape("letters")] | None = None,
        outputs: Annotated[Labels, Shape("outputs")] | None = None,
    ) -> LinearUtility:
        """Build the utility from a saved file's fields."""
        return cls(
            matrix if callable(matrix) else LabelledArray(matrix, (letters, outputs), "the matrix")
        )

    @property
    def kind_text(self) -> str:
        """Return "gain" or "loss"."""
        return "gain" if self.maximised else "loss"

    @property
    def letters(self) -> Labels | None:
        """Return the row labels of the utility matrix; None without labels."""
        return self.axes[0]

    @property
    def outputs(self) -> Labels | None:
        """Return the column labels of the utility matrix; None without labels."""
        return self.axes[1]

    @property
    def fixed_outputs(self) -> int | Labels | None:
        """Return the outputs (or their number) fixed by a utility matrix; None for a function."""
        return None if callable(self.matrix) else self.axes[1] or np.asarray(self.matrix).shape[1]

    def evaluate_table(self, inputs: Sequence[Label], outputs: Sequence[Label]) -> FloatArray:
        """Evaluate the (N, M) utility table on letters and outputs.

        Raises:
            UtilityError: the matrix has another shape or other labels, or the function fails or is not
                finite.
        """
        if not callable(self.matrix):
            matrix = np.asarray(self.matrix)
            if self.axes == (None, None):
                if matrix.shape == (len(inputs), len(outputs)):
                    return matrix
                raise UtilityError(
                    f"the {self.kind_text} matrix has shape {matrix.shape}; {len(inputs)} letters and "
                    f"{len(outputs)} outputs need ({len(inputs)}, {len(outputs)})"
                )
            found = LabelledArray(matrix, self.axes, f"the {self.kind_text} matrix")
            ordered = found.reorder_axis(0, inputs, UtilityError).reorder_axis(
                1, outputs, UtilityError
            )
            return np.asarray(ordered.values)
        known = tabulate_plain_labels(self.matrix, inputs, outputs)
        if known is not None:
            return known
        # pair by pair: a function of labels need not work on arrays
        values = [list(map(partial(self._evaluate_pair, x), outputs)) for x in inputs]
        return copy_float_array(
            values, 2, f"the table of the {self.kind_text} function", UtilityError
        )

    def _evaluate_pair(self, x: Label, y: Label) -> float:
        """Evaluate the utility function on one letter and output; raise a UtilityError where it fails."""
        assert callable(self.matrix)
        try:
            value = self.matrix(x, y)
            return float(value) if isinstance(value, bool | np.bool_) else value
        except PmloptError:
            raise
        except Exception as cause:  # a user's function may raise anything
            raise UtilityError(
                f"the {self.kind_text} function fails on the labels {x!r} and {y!r}: {cause!r}"
            ) from cause

    @property
    def shape(self) -> Any:
        """Return what the utility fixes of a symmetric prior's letters and outputs; None if nothing."""
        return None

    def evaluate_on_orbits(self, space: PairSpace) -> FloatArray:
        """Evaluate the (C,) utility on orbits of pairs; raise an error where it is not constant on one.

        Where there are at most 2^20 pairs all are looked at. Of more, one of each orbit and several random
        images of it, as `count_sampled_pairs` states: that f is constant on orbits is then what the person
        states who gives it.

        Raises:
            UtilityError: f differs by more than rounding (1e-12 of its size) within an orbit; the message
                states where.
        """
        orbits = space.orbits
        if not (sampled := LinearUtility.count_sampled_pairs(self, space)):
            xs = space.decode_labels(space.list_letters(), letters=True)
            ys = space.decode_labels(space.list_letters(outputs=True))
            values = self.evaluate_table(xs, ys).ravel()
            places = space.list_orbits().ravel()
            found = np.empty(orbits.count)
            found[places[::-1]] = values[::-1]  # the first of each orbit
            self._check_constant(
                values, found[places], lambda k: (xs[k // len(ys)], ys[k % len(ys)])
            )
            return found
        if not callable(self.matrix):
            raise UtilityError(
                f"the {self.kind_text} is a matrix, and {space.prior!r} has too many letters for one: give a "
                "function of two letters, or CoordinateLoss(...)"
            )
        # a fixed seed: the same utility is accepted or refused at every call
        rng = np.random.default_rng(0)
        found = np.empty(0)
        for probe in range(sampled // orbits.count):
            pairs = space.draw_images(rng) if probe else space.choose_representatives()
            sides = list(
                zip(
                    space.decode_labels(pairs[0], letters=True),
                    space.decode_labels(pairs[1]),
                    strict=True,
                )
            )
            values = copy_float_array(
                [self._evaluate_pair(x, y) for x, y in sides],
                1,
                f"the {self.kind_text} function",
                UtilityError,
            )
            found = found if probe else values
            self._check_constant(values, found, sides.__getitem__)
        return found

    def count_sampled_pairs(self, space: PairSpace) -> int:
        """Return on how many pairs it is looked at whether the utility is constant on orbits.

        It is 0 where that is decided for all pairs. Else it is the number of those of `evaluate_on_orbits`:
        random elements of the group, which the generators make, take one pair of each orbit to the others.
        """
        orbits = space.orbits
        # pairs that are looked at one by one
        if sum(orbits.letters) * sum(orbits.outputs) <= 2**20:
            return 0
        return orbits.count * max(4, 2**13 // orbits.count)

    def _check_constant(
        self, values: FloatArray, wanted: FloatArray, pair: Callable[[int], tuple[Label, Label]]
    ) -> None:
        # one pair is enough for the message
        """Raise an error where the utility is not constant on an orbit of pairs."""
        worst = int(np.abs(values - wanted).argmax())
        # Differences within an orbit that are put down to rounding, as a share of the largest value.
        if abs(values[worst] - wanted[worst]) > 1e-12 * np.abs(values).max():
            raise UtilityError(
                f"the {self.kind_text} is not invariant: it is {values[worst]:.9g} on the pair "
                f"{pair(worst)!r}, "
                f"and {wanted[worst]:.9g} on another one of its orbit"
            )

    def evaluate_gains(self, inputs: Sequence[Label], outputs: Sequence[Label]) -> FloatArray:
        """Return the utility table as gains (negated losses)."""
        table = self.evaluate_table(inputs, outputs)
        return table if self.maximised else -table

    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """Compute the expected gain or loss of a mechanism.

        A square mechanism without any labels releases the letters of the prior, in their order.

        Raises:
            UtilityError: a function, or a matrix with labels, needs those of the outputs, and there are none.
        """
        p, m = pair_with_prior(prior, mechanism)
        inputs = m.inputs if isinstance(p.labels, DefaultLabels) else p.labels
        outputs = m.outputs
        # labels that were given are never replaced by those of the prior
        bare = isinstance(m.inputs, DefaultLabels) and isinstance(outputs, DefaultLabels)
        if (
            bare
            and not isinstance(inputs, DefaultLabels)
            and (callable(self.matrix) or self.axes[1] is not None)
        ):
            if len(outputs) != len(inputs):
                raise UtilityError(
                    f"the mechanism has {len(outputs)} outputs without labels for the letters "
                    f"{abbreviate(inputs)}, "
                    f"and the {self.kind_text} depends on labels: give Mechanism(matrix, inputs, outputs)"
                )
            outputs = inputs
        return compute_expectation(p, self.evaluate_table(inputs, outputs), m.matrix)

    def to_cvxpy(self, prior: Prior, table: FloatArray, mechanism: cp.Variable) -> cp.Expression:
        """Return the expected utility as an affine cvxpy expression of an (N, M) variable."""
        return cp.sum(cp.multiply(prior.pmf[:, None] * table, mechanism))


class ExpectedGain(LinearUtility):
    """The expected gain E[g(X, Y)] = sum_xy p[x] g[x,y] P[x,y], to be maximised.

    Args:
        matrix: (N, M) gains, which may have labels (a pandas frame in its index and columns, or a mapping
            from letter to output to gain), or a function g(x, y) of an input's and an output's label.

    Raises:
        UtilityError: the matrix is not two-dimensional or has an entry that is not finite.

    Source: [saeidian2023pointwise] (gain functions); [song2026worstcase, Section II] (utilities of pairs).

    Examples:
        >>> ExpectedGain([[1.0, 0.0], [0.0, 2.0]]).value([0.5, 0.5], np.eye(2))
        1.5
        >>> ExpectedGain(lambda x, y: x * y).value([0.5, 0.5], np.eye(2))
        0.5
    """

    kind: ClassVar[str] = "expected-gain"
    maximised: ClassVar[bool] = True


class ExpectedLoss(LinearUtility):
    """The expected loss E[d(X, Y)] = sum_xy p[x] d[x,y] P[x,y], to be minimised.

    Args:
        matrix: (N, M) losses, which may have labels as for `ExpectedGain`, or a function d(x, y) of an
            input's and an output's label, such as `hamming`, `absolute` and `squared` of `pmlopt.utility`.

    Raises:
        UtilityError: the matrix is not two-dimensional or has an entry that is not finite.

    Examples:
        >>> ExpectedLoss([[0.0, 1.0], [1.0, 0.0]]).value([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        0.25
    """

    kind: ClassVar[str] = "expected-loss"
    maximised: ClassVar[bool] = False


def check_linear_utility(utility: object) -> LinearUtility:
    """Return an expected gain or loss, and raise an error for another utility.

    Examples:
        >>> check_linear_utility("hamming")
        Traceback (most recent call last):
        ...
        pmlopt.errors.UtilityError: the utility is 'hamming': give ExpectedGain(...) or ExpectedLoss(...)
    """
    if not isinstance(utility, LinearUtility):
        raise UtilityError(
            f"the utility is {utility!r:.80}: give ExpectedGain(...) or ExpectedLoss(...)"
        )
    return utility


def build_balanced_match(prior: Prior) -> ExpectedGain:
    """Build the match gain weighted inversely by letter probability.

    Examples:
        >>> build_balanced_match(Prior([0.25, 0.75])).value([0.25, 0.75], [[1, 0], [0, 1]])
        2.0
    """
    return ExpectedGain(np.diag(1 / prior.pmf))


def build_best_constant(p: FloatArray, gains: FloatArray) -> FloatArray:
    """Build the (N, M) matrix of the best constant output."""
    row = np.zeros(gains.shape[1])
    row[np.argmax(p @ gains)] = 1.0
    return np.broadcast_to(row, gains.shape)


def build_best_deterministic(gains: FloatArray) -> FloatArray:
    """Build the (N, M) matrix of each letter's best output."""
    found = np.zeros(gains.shape)
    found[np.arange(len(gains)), np.argmax(gains, axis=1)] = 1.0
    return found


def compute_row_offsets(table: FloatArray) -> FloatArray:
    """Compute the (N,) row minima of a utility table."""
    return np.asarray(table.min(axis=1))


def compute_expectation(prior: Prior, table: FloatArray, matrix: FloatArray) -> float:
    """Compute the expected value sum_xy p[x] table[x,y] matrix[x,y]."""
    return float(prior.pmf @ sum_row_products(table, matrix))


ABBREVIATIONS = {
    "mi": "mutual-information",
    "information": "mutual-information",
    "tv": "total-variation",
    "chi2": "chi-square",
    "chi-squared": "chi-square",
    "0-1": "hamming",
    "zero-one": "hamming",
    "l1": "absolute",
    "l2": "squared",
    "mse": "squared",
    "bayes-vulnerability": "guessing-probability",
    "accuracy": "match",
}
"""Other names of utilities, in lower case; the names of gains and losses are those of the expected one."""

UtilityName: TypeAlias = Literal[
    # losses and the gain, of which the expected value is meant
    "hamming", "absolute", "squared", "match",
    # informations
    "mutual-information", "total-variation", "chi-square", "hellinger", "guessing-probability",
    # the error of an estimate, of all frequencies or of a workload
    "estimation-error",
    "estimation-error:identity", "estimation-error:prefix", "estimation-error:range",
    "estimation-error:mean", "estimation-error:marginals",
    # other names
    "MI", "mi", "information", "tv", "chi2", "chi-squared", "0-1", "zero-one", "l1", "l2", "mse",
    "bayes-vulnerability", "accuracy",
]  # fmt: skip
"""The names of pmlopt's utilities, from which an editor completes; `as_utility` takes any text."""

UtilityLike: TypeAlias = Utility | UtilityName | Callable[[Any, Any], float]
"""A utility, the name of one, or a loss as a function of letter and output."""


def as_utility(given: UtilityLike | str) -> Utility:
    """Convert user input to a utility: an object, a name, or a loss d(x, y) of two labels.

    The names are those of losses ("hamming"), of the gain "match", of informations ("mutual-information"),
    and "estimation-error", after which a colon and a workload may follow. They are read in any case, with
    hyphens, spaces or underscores, and so are `ABBREVIATIONS` such as "MI". For a type checker `UtilityName`
    lists those of pmlopt: text that a program reads, and names of other packages, are converted here first.

    Raises:
        UtilityError: the name is not known, with the nearest that is; or a matrix or a class is given.

    Examples:
        >>> as_utility("hamming") == as_utility(LOSSES["hamming"]) == ExpectedLoss(LOSSES["hamming"])
        True
        >>> as_utility("mutual-informatoin")
        Traceback (most recent call last):
        ...
        pmlopt.errors.UtilityError: the utility 'mutual-informatoin' is not known: did you mean
        'mutual-information'?
    """
    if isinstance(given, Utility):
        return given
    if isinstance(given, str):
        return _find_named_utility(given)
    if isinstance(given, type):
        raise UtilityError(
            f"the utility is the class {given.__name__}: call it, {given.__name__}(...)"
        )
    if callable(given):
        return ExpectedLoss(given)
    if _is_table(given):
        raise UtilityError(
            f"the utility is a bare matrix, {describe_value(given)}, and it is unclear whether more is "
            "better: write ExpectedGain(...) of a matrix of gains, or ExpectedLoss(...) of a matrix of losses"
        )
    raise UtilityError(
        f"the utility is {describe_value(given)}: give ExpectedGain(...) or ExpectedLoss(...) of a matrix or "
        'a function, a sub-convex one such as MutualInformation(), or a name such as "hamming"'
    )


def _is_table(given: Any) -> bool:
    """Return whether the input is a table of numbers: array, frame, list of rows or mapping."""
    if hasattr(given, "__array__") or to_narwhals(given) is not None:
        return True
    rows = list(given.values()) if isinstance(given, dict) else given
    return isinstance(rows, list | tuple) and all(
        isinstance(row, list | tuple | dict) for row in rows
    )


def _find_named_utility(given: str) -> Utility:
    """Look up a utility by name."""
    name = "-".join(given.lower().replace("_", " ").split()) if given.isascii() else given
    name = ABBREVIATIONS.get(name, name)
    if name in LOSSES:
        return ExpectedLoss(LOSSES[name])
    if name == match.__name__:
        return ExpectedGain(match)
    kind, _, argument = name.partition(":")
    known = _list_named_kinds()
    if kind in known and (not argument or known[kind].arguments):
        found: Utility = known[kind](argument) if argument else known[kind]()
        return found
    names = [*LOSSES, match.__name__, *list_kind_names()]
    near = did_you_mean(name, names, f"use {', '.join(names)}, or a matrix")
    raise UtilityError(f"the utility {given!r:.80} is not known: {near}")


def _list_named_kinds() -> dict[str, Any]:
    """List the kinds of utilities that are meant by their name, or by that and an argument."""
    known: dict[str, Any] = {**find_tagged_classes(Utility)}
    return {name: kind for name, kind in known.items() if kind.arguments or not get_fields(kind)}


def list_kind_names() -> list[str]:
    """List the names of those kinds, and those with an argument."""
    known = _list_named_kinds()
    return [*known, *(f"{name}:{one}" for name, kind in known.items() for one in kind.arguments)]
