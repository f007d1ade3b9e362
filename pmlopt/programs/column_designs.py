"""Designs for several columns of a person together: one mechanism on the tuples that occur."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from typing import Any, overload

import numpy as np

from pmlopt.core.descriptions import describe_value
from pmlopt.core.numbers.arrays import FloatArray, Label, Labels, check_positive
from pmlopt.core.suggestions import did_you_mean
from pmlopt.data.labelled import LabelledArray
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.secret import Secret
from pmlopt.errors import PriorError, PrivacyError, ProgramError, UtilityError
from pmlopt.model.constraints import Constraint
from pmlopt.model.privacy import PML, Requirement
from pmlopt.model.utility import EstimationError, ExpectedLoss, LinearUtility, as_utility
from pmlopt.model.utility.estimation_error import build_margins
from pmlopt.model.utility.linear import build_balanced_match
from pmlopt.model.utility.symmetric import SumOfParts
from pmlopt.programs.designs import design
from pmlopt.programs.estimation.program import EstimationDesign
from pmlopt.programs.linear.program import LinearDesign

MAX_TUPLES = 4_000
"""Distinct tuples of a design on tuples: at this size it takes up to a minute and a gigabyte."""

JointLaw = PriorLike | Mapping[Labels, int]
About = Mapping[str, tuple[Callable[[Any], Label], float]]


@dataclass(frozen=True)
class WeightedColumn:
    """What a column of the tuples loses by each output, in its own units, and what a unit of it counts.

    Attributes:
        name: of the column.
        prior: the law of the column.
        losses: (n, m) by its values and outputs; of a gain, what is missing to the best output.
        outputs: of the column, its values if nothing else is known.
        weight: of the loss in the sum over the columns.
    """

    name: str
    prior: Prior
    losses: FloatArray
    outputs: Labels
    weight: float

    @property
    def nothing(self) -> float:
        """Return the least loss of a constant output: that of releasing nothing."""
        return float((self.prior.pmf @ self.losses).min())

    @property
    def part(self) -> ExpectedLoss:
        """Return the weighted losses by labels."""
        axes = (self.prior.labels, self.outputs)
        return ExpectedLoss(
            LabelledArray(self.weight * self.losses, axes, f"the loss of {self.name}")
        )


@dataclass(frozen=True)
class ColumnLoss:
    """The expected loss of one column under a mechanism, in its own units.

    Attributes:
        column: its name.
        weight: of its loss in the sum over the columns.
        loss: under the mechanism; of a gain, what is missing to the best.
        nothing: of the best constant.
    """

    column: str
    weight: float
    loss: float
    nothing: float


@overload
def joint_design(
    joint_law: JointLaw,
    total: float | Requirement,
    utilities: Mapping[str, Any],
    *,
    weights: Mapping[str, float] | None = None,
    limits: Mapping[str, float] | None = None,
    about: About | None = None,
    margins: None = None,
    constraints: Iterable[Constraint] = (),
) -> LinearDesign: ...
@overload
def joint_design(
    joint_law: JointLaw,
    total: float | Requirement,
    utilities: Mapping[str, Any] | Sequence[str],
    *,
    weights: Mapping[str, float] | None = None,
    limits: Mapping[str, float] | None = None,
    about: About | None = None,
    margins: Sequence[Sequence[str]] | None = None,
    constraints: Iterable[Constraint] = (),
) -> LinearDesign | EstimationDesign: ...
def joint_design(
    joint_law: JointLaw,
    total: float | Requirement,
    utilities: Mapping[str, Any] | Sequence[str],
    *,
    weights: Mapping[str, float] | None = None,
    limits: Mapping[str, float] | None = None,
    about: About | None = None,
    margins: Sequence[Sequence[str]] | None = None,
    constraints: Iterable[Constraint] = (),
) -> LinearDesign | EstimationDesign:
    """Build the design of one mechanism for several columns of a person, under one total about the row.

    The letters are the tuples that occur, and the loss is a sum over the columns,
    `L(x, y) = sum_k w_k d_k(x_k, y_k)`. A mechanism on tuples contains every other way, such as a mechanism
    for each column: its optimum is the best there is, and its bound bounds all of them. Outputs are all
    combinations of the values of the columns, or where these are over 1,000 those that occur. A combination
    that the law does not list has no row: who has one cannot be released by the mechanism.

    Args:
        joint_law: N tuples with a probability or a count each: a prior whose labels are the tuples, or a
            mapping.
        total: the PML of the whole row, in nats, or another requirement about it.
        utilities: by column, in the order of the tuples: the name of a loss or gain ("absolute", "hamming",
            "balanced-match", which weights a match by one over the share of its value), a loss as a function
            of two values, or a gain or loss. With `margins` the names of the columns are enough.
        weights: what a unit of a column's loss counts; left out, one over the loss of releasing nothing, so
            that columns count alike.
        limits: the PML about a single column, in nats, by its name.
        about: the PML about a function of the row, by a name: the function of the tuple, and nats.
        margins: the groups of columns whose cross tables are to be estimated; in place of losses, the program
            minimises the error of these estimates (`EstimationError`).
        constraints: as for `design`.

    Raises:
        PriorError: the law is on no tuples with an entry for each column.
        UtilityError, PrivacyError, ProgramError: an argument cannot be meant, or there are more than 4,000
            tuples.

    Examples:
        >>> import math
        >>> from pmlopt import solve
        >>> people = {("young", "single"): 1, ("old", "married"): 1}  # each reveals the other
        >>> utilities = {"age": "hamming", "status": "hamming"}
        >>> result = solve(joint_design(people, math.log(1.5), utilities))
        >>> round(result.value, 9)  # both are right with probability 1.5 / 2, and nothing loses 1/2 each
        1.0
        >>> [round(one.loss, 9) for one in measure_columns(people, result.mechanism, utilities)]
        [0.25, 0.25]
    """
    names = check_columns(utilities)
    prior = read_joint_law(joint_law, names)
    if prior.size > MAX_TUPLES:
        raise ProgramError(
            f"{prior.size:,} tuples are more than {MAX_TUPLES:,}, the most of one mechanism: group rare "
            "values, take fewer columns, or design groups of columns (releases.column_groups.group_design)"
        )
    privacy = total
    if not isinstance(privacy, Requirement):
        privacy = PML(check_positive(privacy, "the total", PrivacyError))
    for name, nats in (limits or {}).items():
        place = find_column(name, names, "limits")
        privacy &= PML(nats, about=build_row_secret(prior, itemgetter(place), name))
    for name, (function, nats) in (about or {}).items():
        if name in names:
            raise ProgramError(f"about has {name!r}, the name of a column: give limits for it")
        privacy &= PML(nats, about=build_row_secret(prior, function, name))
    if margins is not None:
        if weights is not None or isinstance(utilities, Mapping):
            raise UtilityError(
                "margins are estimated, or losses are minimised: give the names of the columns with margins"
            )
        places = [[find_column(name, names, "margins") for name in one] for one in margins]
        found = design(prior, privacy, EstimationError(build_margins(prior.labels, names, places)))
        assert isinstance(found, EstimationDesign)
        return found
    columns = read_column_utilities(prior, utilities, weights)
    utility = SumOfParts(*(one.part for one in columns))
    outputs = list_outputs(columns) or prior.labels
    linear = design(prior, privacy, utility, outputs, constraints)
    assert isinstance(linear, LinearDesign)
    return linear


def list_outputs(columns: Sequence[WeightedColumn]) -> list[Labels] | None:
    """List all combinations of the outputs of columns; None where those that occur have to do."""
    if math.prod(len(one.outputs) for one in columns) > 1_000:
        return None
    return list(product(*(one.outputs for one in columns)))


def check_columns(utilities: Mapping[str, Any] | Sequence[str]) -> tuple[str, ...]:
    """Check the names of columns, and return them in their order.

    Raises:
        UtilityError: there is none, one is no text, or a name is there twice.
    """
    if isinstance(utilities, str) or not isinstance(utilities, Mapping | Sequence) or not utilities:
        raise UtilityError(
            f"the utilities are {describe_value(utilities)}: give one for each column, by its name"
        )
    names = tuple(utilities)
    odd = [name for name in names if not isinstance(name, str)]
    if odd or len(set(names)) < len(names):
        raise UtilityError(f"the columns are {names!r:.80}: give each name once, as text")
    return names


def find_column(name: str, names: Sequence[str], what: str) -> int:
    """Return the place of a column; raise a ProgramError for a name that is none of them."""
    if name not in names:
        near = did_you_mean(str(name), names, f"the columns are {', '.join(names)}")
        raise ProgramError(f"{what} has {name!r:.80}, which is none of the columns: {near}")
    return names.index(name)


def read_joint_law(joint_law: JointLaw, names: Sequence[str]) -> Prior:
    """Convert a joint law to a prior on tuples with an entry for each column.

    Raises:
        PriorError: it is none, or is on other letters.
    """
    given: Any = joint_law
    if isinstance(given, Mapping) and all(type(count) is int for count in given.values()):
        prior = Prior.from_counts({row: count for row, count in given.items() if count})
    else:
        prior = as_prior(given)
    for row in prior.labels:
        if not isinstance(row, tuple) or len(row) != len(names):
            raise PriorError(
                f"the letter {row!r:.80} is no tuple of {len(names)} values, one for each column: "
                f"{', '.join(names)}"
            )
    return prior


def build_row_secret(prior: Prior, function: Callable[[Any], Label], name: str) -> Secret:
    """Build the secret that is a function of the row, with its joint law."""
    values = [function(row) for row in prior.labels]
    known = list(dict.fromkeys(values))
    joint = np.zeros((len(known), prior.size))
    joint[[known.index(value) for value in values], np.arange(prior.size)] = prior.pmf
    return Secret(joint, prior.labels, known, name)


def marginalize(prior: Prior, places: Sequence[int]) -> Prior:
    """Compute the law of some parts of the tuples, exactly, on tuples of these parts.

    Examples:
        >>> pairs = Prior.from_weights([1, 2, 3], [("a", 0), ("b", 0), ("b", 1)])
        >>> marginalize(pairs, [0]).labels, marginalize(pairs, [0]).weights
        ((('a',), ('b',)), (1, 5))
    """
    masses: dict[Label, int] = {}
    for row, weight in zip(prior.labels, prior.integer_weights, strict=True):
        key = tuple(row[place] for place in places)  # type: ignore[index]
        masses[key] = masses.get(key, 0) + int(weight)
    return Prior.from_weights(list(masses.values()), list(masses))


def compute_column_law(prior: Prior, place: int) -> Prior:
    """Compute the law of one column of the tuples, exactly, on its values."""
    found = marginalize(prior, [place])
    return Prior.from_weights(found.weights, [row[0] for row in found.labels])  # type: ignore[index]


def read_column_utilities(
    prior: Prior, utilities: Mapping[str, Any] | Sequence[str], weights: Mapping[str, float] | None
) -> tuple[WeightedColumn, ...]:
    """Convert the utilities of columns to weighted losses.

    Raises:
        UtilityError: one is no gain or loss on the values of its column, or a weight is not positive.
    """
    if not isinstance(utilities, Mapping):
        raise UtilityError('give a utility for each column, such as {"age": "absolute"}')
    names = check_columns(utilities)
    given = {} if weights is None else dict(weights)
    for name in given:
        find_column(name, names, "weights")
    found = []
    for place, name in enumerate(names):
        law = compute_column_law(prior, place)
        losses, outputs = _tabulate_losses(law, utilities[name], name)
        one = WeightedColumn(name, law, losses, outputs, 1.0)
        weight = given.get(name)
        if weight is not None:
            weight = check_positive(weight, f"the weight of {name}", UtilityError)
        else:
            weight = 1 / one.nothing if one.nothing > 0 else 1.0
        found.append(WeightedColumn(name, law, losses, outputs, weight))
    return tuple(found)


def _tabulate_losses(law: Prior, given: Any, name: str) -> tuple[FloatArray, Labels]:
    """Tabulate a column's utility as losses, with the outputs of the column."""
    is_balanced = isinstance(given, str) and given.lower() == "balanced-match"
    utility = build_balanced_match(law) if is_balanced else as_utility(given)
    if not isinstance(utility, LinearUtility):
        raise UtilityError(
            f"the utility of {name} is {given if isinstance(given, str) else type(utility).__name__}: "
            "columns together take gains and losses, such as hamming and absolute; to estimate shares write "
            f'margins = [["{name}"]], with each column or cross table, and no utility for any column'
        )
    if not callable(utility.matrix) and utility.letters is None and not is_balanced:
        raise UtilityError(
            f"the matrix of {name} has no labels: name its letters and outputs, for example by a data frame"
        )
    outputs = tuple(utility.outputs or law.labels)
    table = utility.evaluate_table(law.labels, outputs)
    return (table.max(axis=1, keepdims=True) - table if utility.maximised else table), outputs


def measure_columns(
    joint_law: JointLaw,
    mechanism: MechanismLike,
    utilities: Mapping[str, Any],
    weights: Mapping[str, float] | None = None,
) -> tuple[ColumnLoss, ...]:
    """Measure what a mechanism on tuples loses of each column, and what releasing nothing loses.

    Args:
        joint_law: as for `joint_design`.
        mechanism: from tuples to tuples.
        utilities: by column.
        weights: of their losses.

    Raises:
        MechanismError: it is on other letters.
        UtilityError: an output is no tuple of outputs of the columns.
    """
    names = check_columns(utilities)
    p, m = pair_with_prior(read_joint_law(joint_law, names), mechanism)
    found = []
    for place, one in enumerate(read_column_utilities(p, utilities, weights)):
        rows = [one.prior.labels.index(row[place]) for row in p.labels]  # type: ignore[index]
        own = [
            row[place] if isinstance(row, tuple) and len(row) == len(names) else row
            for row in m.outputs
        ]
        strange = [label for label in own if label not in one.outputs]
        if strange:
            raise UtilityError(f"the output {strange[0]!r:.80} is none of the column {one.name}")
        columns = list(map(one.outputs.index, own))
        loss = float(p.pmf @ (one.losses[np.ix_(rows, columns)] * m.matrix).sum(axis=1))
        found.append(ColumnLoss(one.name, one.weight, loss, one.nothing))
    return tuple(found)
