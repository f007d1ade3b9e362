"""Utilities on structured letters: tables of records, circles, and several secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.arrays import FloatArray, Label, copy_float_array
from pmlopt.core.numbers.differences import subtract_arrays, to_exact_array
from pmlopt.core.records.fields import NamedValues, Shape
from pmlopt.data.labelled import LabelledArray, Numbers
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import PriorLike
from pmlopt.data.symmetry.independent import ProductPairs, TypePairs
from pmlopt.data.symmetry.invariant import CirclePairs
from pmlopt.data.symmetry.prior import PairSpace
from pmlopt.errors import UtilityError
from pmlopt.model.utility.linear import (
    ExpectedGain,
    ExpectedLoss,
    LinearUtility,
    PairFunction,
    Utility,
)


class CoordinatewiseUtility(LinearUtility):
    """The base of utilities that are sums over the records of a table: `f(x, y) = sum_i f(x_i, y_i)`."""

    one_record: type[LinearUtility]
    each: LinearUtility

    def __init__(self, matrix: Numbers | LabelledArray | Callable[[Any, Any], float]) -> None:
        object.__setattr__(self, "each", self.one_record(matrix))
        if self.each.axes != (None, None):
            raise UtilityError(
                "a matrix for one record is indexed by positions of letters: give it without labels"
            )
        super().__init__(self._sum_over_records)

    @classmethod
    def from_fields(  # type: ignore[override]
        cls, function: PairFunction | Annotated[FloatArray, Shape("letters", "outputs")]
    ) -> CoordinatewiseUtility:
        """Build the utility from a saved file's fields."""
        return cls(function)

    @property
    def function(self) -> Any:
        """Return the utility of one record: a matrix, or a function of two labels."""
        return self.each.matrix

    @property
    def shape(self) -> Any:
        """Return the alphabet sizes (A, B) of a record and its output, where a matrix fixes them."""
        return None if callable(self.each.matrix) else np.asarray(self.each.matrix).shape

    def _sum_over_records(self, x: Any, y: Any) -> float:
        """Sum the one-record utility over the records of letter and output."""
        if callable(self.each.matrix):
            return sum(self.each.matrix(a, b) for a, b in zip(x, y, strict=True))
        table = np.asarray(self.each.matrix)
        return float(sum(table[a, b] for a, b in zip(x, y, strict=True)))

    def evaluate_on_orbits(self, space: PairSpace) -> FloatArray:
        """Evaluate the (C,) utility on orbits of pairs; raise an error where it is not constant on one."""
        if not isinstance(space, TypePairs):
            return super().evaluate_on_orbits(space)
        return space.coordinate_sums(self.each.evaluate_table(*space.places))

    def count_sampled_pairs(self, space: PairSpace) -> int:
        """Return 0 for tables of records, on whose orbits a sum over records is constant."""
        return 0 if isinstance(space, TypePairs) else super().count_sampled_pairs(space)


class CoordinateLoss(CoordinatewiseUtility):
    """The expected loss `E[sum_i d(X_i, Y_i)]` that adds over the records of a table, to be minimised.

    Args:
        matrix: (A, B) the loss on one record's letters, by position, or a function d(a, b) of their labels.

    Raises:
        UtilityError: the matrix is not two-dimensional or has an entry that is not finite.

    Examples:
        >>> hamming = CoordinateLoss([[0, 1], [1, 0]])
        >>> hamming.evaluate_table([(0, 0), (0, 1)], [(1, 1), (0, 1)])
        array([[2., 1.],
               [1., 0.]])
    """

    kind: ClassVar[str] = "coordinate-loss"
    maximised: ClassVar[bool] = False
    one_record = ExpectedLoss


class CoordinateGain(CoordinatewiseUtility):
    """The expected gain `E[sum_i g(X_i, Y_i)]` that adds over the records of a table, to be maximised.

    Args:
        matrix: (A, B) the gain on one record's letters, by position, or a function g(a, b) of their labels.

    Raises:
        UtilityError: the matrix is not two-dimensional or has an entry that is not finite.

    Examples:
        >>> CoordinateGain([[1, 0], [0, 1]]).evaluate_table([(0, 0)], [(0, 1)])
        array([[1.]])
    """

    kind: ClassVar[str] = "coordinate-gain"
    maximised: ClassVar[bool] = True
    one_record = ExpectedGain


class DisplacementUtility(LinearUtility):
    """The base of utilities on a circle of N letters that depend on `(y - x) mod N` only."""

    def __init__(self, values: ArrayLike | Callable[[int], float]) -> None:
        if not callable(values):
            values = copy_float_array(
                values, 1, f"the {self.kind_text} by displacement", UtilityError
            )
        vars(self).update(values=values, matrix=None)

    values: FloatArray | Callable[[int], float]

    @classmethod
    def from_fields(cls, values: Annotated[FloatArray, Shape("letters")]) -> DisplacementUtility:  # type: ignore[override]
        """Build the utility from a saved file's fields."""
        return cls(values)

    @property
    def fixed_outputs(self) -> int | None:
        """Return the outputs (or their number) fixed by a utility matrix; None for a function."""
        return None if callable(self.values) else len(self.values)

    @property
    def shape(self) -> Any:
        """Return (N, N) where a list of values fixes it; else None."""
        return None if callable(self.values) else (len(self.values), len(self.values))

    def _list_values(self, size: int) -> FloatArray:
        """Return the (N,) values by displacement."""
        listed = [self.values(d) for d in range(size)] if callable(self.values) else self.values
        found = copy_float_array(listed, 1, f"the {self.kind_text} by displacement", UtilityError)
        if len(found) != size:
            raise UtilityError(f"there are {len(found)} values by displacement for {size} letters")
        return found

    def evaluate_table(self, inputs: Sequence[Label], outputs: Sequence[Label]) -> FloatArray:
        """Evaluate the (N, M) utility table on letters and outputs."""
        n = len(inputs)
        if len(outputs) != n:
            raise UtilityError(f"a circle has {n} letters and as many outputs, not {len(outputs)}")
        places = np.arange(n)
        return np.asarray(self._list_values(n)[(places - places[:, None]) % n])

    def evaluate_on_orbits(self, space: PairSpace) -> FloatArray:
        """Evaluate the (C,) utility on orbits of pairs; raise an error where it is not constant on one."""
        if not isinstance(space, CirclePairs):
            return super().evaluate_on_orbits(space)
        values = self._list_values(space.prior.size)
        back = values[-np.arange(len(values))]
        if space.prior.reflections and (off := np.flatnonzero(values != back)).size:
            d = int(off[0])
            raise UtilityError(
                f"the {self.kind_text} is {values[d]:.9g} at displacement {d} and {back[d]:.9g} at "
                f"{len(values) - d}, the other way round: take Circle(..., reflections=False)"
            )
        return values[space.displacements]

    def count_sampled_pairs(self, space: PairSpace) -> int:
        """Return 0 for letters on a circle, on whose orbits a function of the displacement is constant."""
        return 0 if isinstance(space, CirclePairs) else super().count_sampled_pairs(space)


def evaluate_on_circle(loss: Callable[[int, int], float], size: int) -> FloatArray:
    """Compute the (N,) values of a loss on the circular distances of N letters.

    Examples:
        >>> from pmlopt.model.utility import squared
        >>> evaluate_on_circle(squared, 5)
        array([0., 1., 4., 4., 1.])
    """
    return np.array([float(loss(0, min(d, size - d))) for d in range(size)])


class DisplacementLoss(DisplacementUtility):
    """The expected loss `E[d((Y - X) mod N)]` on a circle, to be minimised.

    Args:
        values: (N,) the loss at each displacement, or a function of it.

    Raises:
        UtilityError: a value is not a finite number.

    Examples:
        >>> DisplacementLoss([0, 1, 2, 1]).evaluate_table(range(4), range(4))[1]
        array([1., 0., 1., 2.])
    """

    kind: ClassVar[str] = "displacement-loss"
    maximised: ClassVar[bool] = False


class DisplacementGain(DisplacementUtility):
    """The expected gain `E[g((Y - X) mod N)]` on a circle, to be maximised.

    Args:
        values: (N,) the gain at each displacement, or a function of it.

    Raises:
        UtilityError: a value is not a finite number.

    Examples:
        >>> DisplacementGain([1, 0, 0]).evaluate_table(range(3), range(3))[2]
        array([0., 0., 1.])
    """

    kind: ClassVar[str] = "displacement-gain"
    maximised: ClassVar[bool] = True


class SumOfParts(LinearUtility):
    """The sum `f(x, y) = sum_i f_i(x_i, y_i)` of utilities of several independent secrets.

    Args:
        parts: a utility for each secret of a `ProductPrior`, all gains or all losses.

    Raises:
        UtilityError: there are none, or some are gains and others losses.

    Examples:
        >>> both = SumOfParts(CoordinateLoss([[0, 1], [1, 0]]), DisplacementLoss([0, 1]))
        >>> both.evaluate_table([((0, 1), 0), ((0, 1), 1)], [((1, 1), 0), ((1, 1), 1)])
        array([[1., 2.],
               [2., 1.]])
    """

    def __init__(self, *parts: LinearUtility) -> None:
        if not parts or not all(isinstance(part, LinearUtility) for part in parts):
            raise UtilityError(f"a sum over parts needs gains or losses, not {parts!r:.60}")
        if len({part.maximised for part in parts}) > 1:
            raise UtilityError(
                "some parts are gains and others losses: give the negative of one kind"
            )
        vars(self).update(parts=parts, matrix=None)

    kind: ClassVar[str] = "sum-of-parts"
    parts: tuple[LinearUtility, ...]

    @property
    def maximised(self) -> bool:  # type: ignore[override]
        """Return whether the summed utilities are gains."""
        return self.parts[0].maximised

    @property
    def fixed_outputs(self) -> int | None:
        """Return the outputs (or their number) fixed by a utility matrix; None for a function."""
        return None

    @property
    def shape(self) -> Any:
        """Return what each utility determines of letters and outputs."""
        return tuple(part.shape for part in self.parts)

    def evaluate_table(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> FloatArray:
        """Evaluate the (N, M) utility table on letters and outputs."""
        found = np.zeros((len(inputs), len(outputs)))
        for place, part in enumerate(self.parts):
            own = [[label[place] for label in side] for side in (inputs, outputs)]
            rows, columns = (list(dict.fromkeys(labels)) for labels in own)
            x, y = (
                list(map(kinds.index, labels))
                for kinds, labels in zip((rows, columns), own, strict=True)
            )
            found += part.evaluate_table(rows, columns)[np.ix_(x, y)]
        return found

    def evaluate_on_orbits(self, space: PairSpace) -> FloatArray:
        """Evaluate the (C,) utility on orbits of pairs; raise an error where it is not constant on one."""
        if not isinstance(space, ProductPairs):
            return super().evaluate_on_orbits(space)
        own = zip(self.parts, space.spaces, space.places, strict=True)
        return np.asarray(sum(part.evaluate_on_orbits(one)[places] for part, one, places in own))

    def count_sampled_pairs(self, space: PairSpace) -> int:
        """Return on how many pairs it is looked at whether each part is constant on its orbits; 0 for all."""
        if not isinstance(space, ProductPairs):
            return super().count_sampled_pairs(space)
        own = zip(self.parts, space.spaces, strict=True)
        return sum(part.count_sampled_pairs(one) for part, one in own)


GROWTHS: Mapping[str, Callable[[FloatArray], FloatArray]] = {"squared": np.square}
"""The growths of a loss of distance that have a name."""


@dataclass(frozen=True, eq=False)
class DistanceLoss(Utility):
    """The expected loss `E growth(d(X, Y))` of a `Continuous` secret X, d Euclidean, to be minimised.

    Args:
        growth: a function of an array of distances, such as `numpy.square`, that nowhere falls (1,001 steps
            are looked at); left out, the distance itself.

    Examples:
        >>> DistanceLoss().value([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])  # letters 0 and 1
        0.25
        >>> DistanceLoss(np.square).evaluate_distances(np.array([0.0, 2.0])).tolist()
        [0.0, 4.0]
    """

    kind: ClassVar[str] = "distance-loss"
    growth: Annotated[Callable[[FloatArray], FloatArray], NamedValues(GROWTHS)] | None = None
    maximised: ClassVar[bool] = False

    def evaluate_distances(self, distances: FloatArray) -> FloatArray:
        """Evaluate the loss at given distances.

        Raises:
            UtilityError: it is not finite, or falls where the distance grows.
        """
        if self.growth is None:
            return distances
        steps = np.linspace(0.0, float(distances.max(initial=0.0)), 1001)
        losses = np.asarray(self.growth(distances), dtype=float)
        rising = np.asarray(self.growth(steps), dtype=float)
        if losses.shape != distances.shape or not (
            np.isfinite(losses).all() and np.isfinite(rising).all()
        ):
            raise UtilityError(
                f"the growth {self.growth!r:.60} is not finite, or not a number for each distance"
            )
        if (np.diff(rising) < 0).any():
            raise UtilityError(
                f"the growth {self.growth!r:.60} falls where the distance grows: that is no loss"
            )
        return losses

    @property
    def min_loss(self) -> float:
        """Return the loss at distance 0, the minimum."""
        return float(self.evaluate_distances(np.zeros(1))[0])

    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """Compute the expected loss of a mechanism between numeric labels or points."""
        p, m = pair_with_prior(prior, mechanism)
        here = to_exact_array(m.inputs).reshape(len(m.inputs), -1)
        there = to_exact_array(m.outputs).reshape(len(m.outputs), -1)
        apart = np.sqrt((subtract_arrays(here[:, None, :], there[None, :, :]) ** 2).sum(axis=2))
        return float(p.pmf @ (self.evaluate_distances(apart) * m.matrix).sum(axis=1))
