"""Names that people try: each error says what to write, and what it says is there."""

from typing import Any

import pytest

import pmlopt
from pmlopt import PML, Mechanism, Prior, Program, Result, audit, design, solve
from pmlopt.errors import MechanismError

PRIOR = Prior([0.4, 0.35, 0.25], ["a", "b", "c"])
PROGRAM = design(PRIOR, PML(0.5), "hamming")


@pytest.mark.parametrize("kind", [Mechanism, Prior, Program, Result])
def test_no_guess_is_a_name_of_the_class_and_each_answer_is(kind: Any) -> None:
    result = solve(PROGRAM)
    thing = {Mechanism: result.mechanism, Prior: PRIOR, Program: PROGRAM, Result: result}[kind]
    for guess, write in kind.ATTRIBUTE_HINTS.items():
        assert not hasattr(kind, guess)
        with pytest.raises(AttributeError) as raised:
            getattr(thing, guess)
        assert write in str(raised.value)
        if write.startswith("."):
            name = write[1:].split("(")[0].split(" ")[0].split(".")[0]
            assert hasattr(thing, name), write
        elif write.startswith("pmlopt."):
            found: Any = pmlopt
            for name in write.split("(")[0].split(".")[1:]:
                found = getattr(found, name)


def test_the_nearest_name_is_told() -> None:
    with pytest.raises(AttributeError, match=r"did you mean \.matrix"):
        _ = Mechanism([[1.0]]).matrx  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"it is pmlopt\.measures\.epsilon_for"):
        _ = pmlopt.epsilon_for  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"did you mean pmlopt\.design"):
        _ = pmlopt.desing  # type: ignore[attr-defined]


def test_a_prior_has_a_length_and_comes_first() -> None:
    assert len(PRIOR) == 3
    with pytest.raises(MechanismError, match="the prior comes first"):
        audit(solve(PROGRAM).mechanism, PRIOR)  # type: ignore[arg-type]
