"""The outputs of a mechanism among the values that were released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    FloatArray,
    Label,
    abbreviate,
    copy_float_array,
    indices_of,
    make_label_key,
)
from pmlopt.data.labelled import read_column
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import InputError, MechanismError, PriorError


def match_output_labels(mechanism: Mechanism, seen: Sequence[Label]) -> Mechanism:
    """Give unnamed outputs the labels y0, y1, ..., or keep the numbers where these were seen.

    Their numbers were released before outputs without labels had these names, and are what `sample` draws.

    Examples:
        >>> response = Mechanism([[0.75, 0.25], [0.25, 0.75]], inputs=["no", "yes"])
        >>> match_output_labels(response, ["y1"]).outputs, list(match_output_labels(response, [1]).outputs)
        (('y0', 'y1'), [0, 1])
    """
    numbers = set(range(len(mechanism.outputs)))
    return mechanism if seen and set(seen) <= numbers else mechanism.with_named_outputs()


def find_outputs(mechanism: Mechanism, released: Iterable[Label]) -> list[int]:
    """Map released values to output indices of a mechanism.

    Raises:
        MechanismError: a value is no output, or nothing tells outputs from letters.
    """
    people = read_column(released, "the released values", InputError)
    named = match_output_labels(mechanism, people)
    check_distinguishable(named)
    return indices_of(people, named.outputs, "the released values", MechanismError)


def check_distinguishable(mechanism: Mechanism) -> None:
    """Raise an error where unnamed outputs 0, 1, ... collide with letters.

    Data that were never released would then pass for what was.
    """
    letters = mechanism.inputs
    outputs = mechanism.outputs
    if isinstance(outputs, DefaultLabels) and not isinstance(letters, DefaultLabels):
        alike = [label for label in letters if make_label_key(label) in outputs]
        if alike:
            raise MechanismError(
                f"the outputs {abbreviate(outputs)} have no labels, and {alike[0]!r} is a letter too: "
                "nothing tells "
                "released data from data that were not; give the mechanism labels of its outputs"
            )


def read_weights(weights: Iterable[float], people: int) -> FloatArray:
    """Read the (n,) weights of n people.

    Raises:
        PriorError: there are not as many, one is negative, or all are 0.

    Examples:
        >>> read_weights([2, 0.5], 2).tolist()
        [2.0, 0.5]
    """
    each = copy_float_array(weights, 1, "the weights", PriorError)
    if len(each) != people:
        raise PriorError(f"there are {len(each)} weights for {people} people: give one for each")
    if (each < 0).any() or not each.any():
        raise PriorError(
            f"the weights have the least entry {each.min():g}: they are at least 0, not all 0"
        )
    return each
