"""The independent checker of certificates, on the example of the specification and on changes of it."""

from __future__ import annotations

import pytest
from oracles.exact_simplex import solve_mps
from oracles.vipr import Certificate, RefusalError

# min x + y, 4x + y >= 1, 4x - y <= 2: the optimum is -1/8 at x = 3/8, y = -1/2, by 5/8 and -3/8 of the rows
TEXT = """% an example
VER 1.0
VAR 2
x y
INT 0
OBJ min
2 0 1 1 1
CON 2 0
C1 G 1 2 0 4 1 1
C2 L 2 2 0 4 1 -1
RTP range -1/8 -0.125
SOL 1
best 2 0 3/8 1 -1/2
DER 1
bound G -1/8 OBJ { lin 2 0 5/8 1 -3/8 } -1
"""


def test_the_example_is_proved() -> None:
    assert Certificate(TEXT).statement == "the optimum is from -1/8 to -1/8"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("RTP range -1/8", "RTP range -1/9"),
        ("-0.125", "-0.126"),
        ("5/8", "6/8"),
        ("1 -3/8", "1 3/8"),
        ("best 2 0 3/8", "best 2 0 2/8"),
        ("C1 G 1 2 0 4", "C1 G 1 2 0 5"),
        ("C1 G", "C1 L"),
        ("OBJ min\n2 0 1", "OBJ min\n2 0 2"),
        ("OBJ min", "OBJ max"),
        ("SOL 1\nbest 2 0 3/8 1 -1/2", "SOL 0"),
        ("DER 1\nbound G -1/8 OBJ { lin 2 0 5/8 1 -3/8 } -1\n", "DER 0\n"),
        ("bound G -1/8", "bound E -1/8"),
        ("{ lin", "{ asm"),
        ("RTP range -1/8 -0.125", "RTP infeas"),
        ("VER 1.0", "VER 2.0"),
        ("0 3/8", "0 3/0"),
        ("2 0 5/8 1 -3/8", "2 0 5/8 0 -3/8"),
        ("2 0 5/8 1 -3/8", "2 0 5/8 7 -3/8"),
        ("INT 0", "INT 1 0"),
        ("} -1\n", "} -1\nmore"),
        ("VAR 2", "VAR 3"),
    ],
)
def test_what_is_changed_is_refused(before: str, after: str) -> None:
    assert before in TEXT
    with pytest.raises(RefusalError):
        Certificate(TEXT.replace(before, after))


def test_a_weaker_claim_is_proved_too() -> None:
    assert Certificate(TEXT.replace("RTP range -1/8", "RTP range -1/7")).statement
    assert Certificate(TEXT.replace("-0.125", "inf")).statement


def test_the_simplex_solves_the_same_program_and_finds_that_nothing_meets_another() -> None:
    # y is moved by one, so that variables are at least 0: min x + z, 4x + z >= 2, 4x - z <= 1
    text = (
        "NAME example\nROWS\n N cost\n L C1\n L C2\nCOLUMNS\n"
        " x cost 1\n x C1 -4\n x C2 4\n z cost 1\n z C1 -1\n z C2 -1\nRHS\n RHS C1 -2\n RHS C2 1\nENDATA\n"
    )
    assert str(solve_mps(text)) == "7/8"
    assert (
        solve_mps(
            text.replace("C1 -2", "C1 2").replace("C2 1\n", "C2 -1\n").replace("z C2 -1", "z C2 1")
        )
        is None
    )
    turned = text.replace(" cost 1", " cost -1").replace("z C2 -1", "z C2 1")
    assert solve_mps(turned.replace("C1 -2", "C1 0")) == -1
