"""The outputs of a design as a person asks for them: their number, or their labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real

from pmlopt.arrays import Label, Positions, labels_of, whole
from pmlopt.errors import ProgramError

Outputs = int | Iterable[Label] | None


def outputs_of(
    inputs: tuple[Label, ...], columns: int | tuple[Label, ...] | None, outputs: Outputs
) -> tuple[Label, ...]:
    """The labels of the outputs that are asked for; `columns` is what a utility matrix fixes."""
    if outputs is None:
        if columns is None or columns == len(inputs):
            return inputs
        return columns if isinstance(columns, tuple) else Positions(columns)
    if isinstance(outputs, Real):
        return Positions(whole(outputs, "the number of outputs", ProgramError))
    if not isinstance(outputs, Iterable):
        raise ProgramError(f"the outputs are {outputs!r}: give their number or their labels")
    letters: Sequence[Label] = outputs if isinstance(outputs, str | Positions) else tuple(outputs)
    if not letters:
        raise ProgramError("there are no outputs: give at least one label")
    return labels_of(letters, len(letters), "the outputs", ProgramError)
