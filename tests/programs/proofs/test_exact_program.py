"""Parts of programs over the rationals, by hand: what a point breaks, ranges, powers, and sizes of laws."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pmlopt import PML, ExpectedGain, ExpectedLoss, Prior, design, solve
from pmlopt.errors import ProgramError, SolverError
from pmlopt.programs.proofs.claims import _add_target, _describe_slack, iterate_proofs
from pmlopt.programs.proofs.duals import complete_multipliers, find_least_size
from pmlopt.programs.proofs.exact_program import ONE, ZERO, ExactProgram, ProvedProgram
from pmlopt.programs.proofs.readme import round_digits

HALF = Fraction(1, 2)


def make_program(x: Fraction, y: Fraction) -> ExactProgram:
    """The program of `x + y <= 1` and `x - y = 0`, of which x is the objective."""
    program = ExactProgram(above=True)
    first, second = program.add_column("x", x), program.add_column("y", y)
    program.add_row("sum[all]", {first: ONE, second: ONE}, ONE)
    program.add_row("difference[all]", {first: ONE, second: -ONE}, equal=True)
    program.objective = {first: ONE}
    return program


@pytest.mark.parametrize(
    ("x", "y", "broken"),
    [
        (HALF, HALF, []),
        (ZERO, ZERO, []),
        (HALF, HALF + Fraction(1, 10**20), ["sum[all]", "difference[all]"]),
        (ZERO, HALF, ["difference[all]"]),
        (-HALF, -HALF, ["x", "y"]),
    ],
)
def test_a_point_breaks_signs_sums_and_equations(
    x: Fraction, y: Fraction, broken: list[str]
) -> None:
    program = make_program(x, y)
    assert program.list_broken() == broken
    if broken:
        with pytest.raises(ProgramError, match="breaks"):
            ProvedProgram("feasibility", program, "")
    else:
        assert ProvedProgram("feasibility", program, "").proved_range == (str(x), "inf")


@pytest.mark.parametrize(("sign", "ends"), [(1, ("1/3", "1/2")), (-1, ("-1/2", "1/3"))])
def test_a_range_has_the_point_and_the_bound_by_the_rows(sign: int, ends: tuple[str, str]) -> None:
    """Half of each row proves `x <= 1/2`, and so `-x >= -1/2` of what is to be least."""
    program = make_program(Fraction(1, 3), Fraction(1, 3))
    program.sign = sign
    proved = ProvedProgram("optimum", program, "", [HALF, HALF])
    assert proved.proved_range == ends
    assert ProvedProgram("infeasibility", program, "", [HALF, HALF]).bound is None


@pytest.mark.parametrize("exponent", [0.0, 1e-9, 0.7, 12.0])
def test_powers_are_on_their_side_and_near(exponent: float) -> None:
    above, below = (ExactProgram(above=side).get_power(exponent) for side in (True, False))
    assert (above == below == 1) if exponent == 0 else (1 < below < above)
    assert above - below < Fraction(1, 2**79) * math.ceil(math.exp(exponent))
    assert float(below) == pytest.approx(math.exp(exponent), rel=1e-15)


def test_the_least_size_of_a_law_is_a_fixed_point_and_the_first() -> None:
    rng = np.random.default_rng(61)
    found = []
    for _ in range(40):
        costs = np.array([Fraction(one) for one in rng.normal(-0.2, 1, size=4).tolist()])
        shares = np.array(
            [Fraction(one) for one in rng.dirichlet(np.ones(4)) * rng.uniform(0.3, 2)]
        )
        size = find_least_size(costs, shares)

        def excess(t: Any, costs: Any = costs, shares: Any = shares) -> Any:
            return (
                sum(max(cost + t * share, 0) for cost, share in zip(costs, shares, strict=True)) - t
            )

        if size is None:  # there is none at the kinks, nor beyond the last
            kinks = [-cost / share for cost, share in zip(costs, shares, strict=True)]
            assert all(excess(max(kink, ZERO)) > 0 for kink in kinks)
            assert sum(shares) >= 1
        else:
            assert excess(size) == 0
            assert (size > 0) == (max(costs) > 0)
            assert size == 0 or all(excess(size * Fraction(k, 8)) > 0 for k in range(8))
        found.append(size is None)
    assert 5 < sum(found) < 35
    assert find_least_size(np.array([-ONE, ZERO]), np.array([ONE, 2 * ONE])) == 0


def test_what_multipliers_lack_is_made_good_by_steps_of_the_grid() -> None:
    program = make_program(ZERO, ZERO)
    found = [ZERO, ZERO]
    complete_multipliers(program, {0: Fraction(1, 3)}, found, Fraction(8))
    # of what costs nothing, the equation has a negative coefficient on the later one: the sum is raised
    assert found == [Fraction(3, 8), ZERO]
    enough = [Fraction(3, 8), ZERO]
    complete_multipliers(program, {0: Fraction(3, 8)}, enough, Fraction(8))
    assert enough == [Fraction(3, 8), ZERO]
    program.add_column("z", ZERO)
    with pytest.raises(SolverError, match=r"lack 1 at the variable z"):
        complete_multipliers(program, {2: ONE}, found, Fraction(8))


@pytest.mark.parametrize(
    ("number", "digits", "ends"),
    [
        (Fraction(2, 3), 2, ("0.66", "0.67")),
        (Fraction(-2, 3), 2, ("-0.67", "-0.66")),
        (HALF, 3, ("0.5", "0.5")),
    ],
)
def test_digits_are_rounded_down_and_up(
    number: Fraction, digits: int, ends: tuple[str, str]
) -> None:
    assert tuple(str(round_digits(number, digits, up=side)) for side in (False, True)) == ends


@pytest.mark.parametrize("kind", [ExpectedGain, ExpectedLoss])
def test_sentences_state_no_more_than_is_proved(kind: Any) -> None:
    """Thirds have no digits: the value is stated a bit worse, the bound a bit better than it is."""
    prior = Prior.from_counts({"a": 1, "b": 1, "c": 1})
    sign, table = (1, np.eye(3)) if kind is ExpectedGain else (-1, 1 - np.eye(3))
    first, second = iterate_proofs(solve(design(prior, PML(5.0), kind(table[:, :2]))).certificate)
    (value,) = map(Fraction, re.findall(r"at (?:least|most) (0\.\d+)", first.sentence))
    (bound,) = map(Fraction, re.findall(r"(?:above|below) (0\.\d+)", second.sentence))
    assert second.bound is not None
    assert sign * value <= sign * first.program.value
    assert sign * bound >= sign * second.bound
    assert abs(bound - value) < Fraction(1, 10**13)
    assert ("at least" in first.sentence, "above" in second.sentence) == (sign > 0, sign > 0)


@pytest.mark.parametrize(("sign", "slack"), [(1, Fraction(1, 4)), (-1, ZERO)])
def test_a_target_is_relaxed_by_what_the_point_lacks_of_it(sign: int, slack: Fraction) -> None:
    """Of 1/2 the point has 1/4: too little of a gain, and no more than is allowed of a loss."""
    program = make_program(Fraction(1, 4), Fraction(1, 4))
    program.sign = sign
    assert _add_target(program, 0.5, relaxed=True) == slack
    row = program.rows[-1]
    assert (row.terms, row.right) == ({0: Fraction(-sign)}, Fraction(-sign, 2) + slack)
    assert (program.sign, program.objective) == (1, {})
    strict = make_program(Fraction(1, 4), Fraction(1, 4))
    assert _add_target(strict, 0.5) == 0
    assert strict.rows[-1].right == -HALF
    assert _describe_slack("slack", Fraction(2, 3)).endswith(" at most 0.667.")
    assert _describe_slack("slack", ZERO) == ""
