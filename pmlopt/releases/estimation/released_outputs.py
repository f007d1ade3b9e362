"""The outputs of a mechanism among the values that were released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pmlopt.core.numbers.arrays import DefaultLabels, Label, abbreviate, indices_of, make_label_key
from pmlopt.data.labelled import read_column
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import InputError, MechanismError


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
    letters, outputs = mechanism.inputs, mechanism.outputs
    if isinstance(outputs, DefaultLabels) and not isinstance(letters, DefaultLabels):
        alike = [label for label in letters if make_label_key(label) in outputs]
        if alike:
            raise MechanismError(
                f"the outputs {abbreviate(outputs)} have no labels, and {alike[0]!r} is a letter too: "
                "nothing tells "
                "released data from data that were not; give the mechanism labels of its outputs"
            )
