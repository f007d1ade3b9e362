"""Benchmarks of solved programs against closed forms."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pmlopt.data.prior import Prior
from pmlopt.errors import InputError, PmloptError
from pmlopt.library import Instance
from pmlopt.measures import information_density
from pmlopt.model import closed_forms
from pmlopt.model.privacy import LDP, PML
from pmlopt.model.uncertainty import L1Ball
from pmlopt.model.utility import ExpectedGain, ExpectedLoss, LinearUtility, hamming
from pmlopt.programs.designs import design
from pmlopt.programs.linear.formulation import find_known_optimum
from pmlopt.programs.linear.program import LinearDesign, SymmetricDesign
from pmlopt.programs.program import Program
from pmlopt.programs.solving import solve


@dataclass(frozen=True)
class ComparisonRow:
    """A comparison of solved value and closed form, with times.

    Attributes:
        linear: whether the program is one linear program; the others are convex, or a search over several.
        difference: the value that was solved for minus the closed form's.
        holds: whether the claimed relation holds for both and the certificate is exact.
        ratio: the seconds of solving over those of the closed form.
    """

    id: str
    linear: bool
    relation: str
    closed_form: str
    closed_value: float
    closed_seconds: float
    holds: bool
    solved_value: float | None = None
    difference: float | None = None
    solve_seconds: float | None = None
    ratio: float | None = None
    problem: str | None = None


def compare_instances(instances: Iterable[Instance], repeats: int = 3) -> Iterator[ComparisonRow]:
    """Solve every instance that names a closed form, without a warm start, and compare both.

    Times are medians of `repeats` runs, after one that is not counted: it loads solvers and fills caches.
    """
    return (_compare_instance(one, repeats) for one in instances if one.names_closed_form)


def list_families(sizes: Sequence[int]) -> Iterator[tuple[str, LinearDesign]]:
    """Return linear programs of given numbers of letters whose optimum is known, with their family.

    Raises:
        InputError: a size is below 3.
    """
    for size in sizes:
        if size < 3:
            raise InputError(f"the families have 3 letters or more, not {size}")
        prior = Prior.uniform(size)
        yield "uniform, PML 0.7", _require_linear_design(prior, PML(0.7), ExpectedLoss(hamming))
        ball = L1Ball(prior, 1 / size)
        yield (
            "uniform, PML 0.7 over a ball",
            _require_linear_design(prior, PML(0.7, over=ball), ExpectedLoss(hamming)),
        )
        yield "uniform, LDP 1", _require_linear_design(prior, LDP(1.0), ExpectedLoss(hamming))
    # Letters up to which a prior of Zipf counts is used: beyond, its gains are all rounding.
    for size in (size for size in sizes if size <= 50):
        prior = Prior.from_counts([int(count) for count in 1000 / np.arange(1, size + 1)])
        epsilon = -0.9 * math.log1p(-float(prior.pmf.min()))
        form = closed_forms.high_privacy(prior, epsilon)
        gain = ExpectedGain(information_density(prior, form))
        yield "Zipf counts, first region", _require_linear_design(prior, PML(epsilon), gain)


def _require_linear_design(
    prior: Prior, privacy: PML | LDP, utility: LinearUtility
) -> LinearDesign:
    """Return the design as a linear one; raise an error for others."""
    program = design(prior, privacy, utility)
    assert isinstance(program, LinearDesign)
    return program


def compare_families(sizes: Sequence[int], repeats: int = 3) -> Iterator[ComparisonRow]:
    """Solve the programs of `list_families` without a warm start, and compare each with its closed form."""
    for name, program in list_families(sizes):
        known, fast = _time_call(partial(find_known_optimum, program), repeats)
        result, slow = _time_call(partial(solve, program, warm_start=False), repeats)
        scale = program.compute_allowed_gap(program.tolerance)
        yield ComparisonRow(
            f"{name}, N = {program.prior.size}",
            True,
            "==",
            known.name,
            known.value,
            fast,
            abs(result.value - known.value) <= scale and result.certificate.verify(),
            result.value,
            result.value - known.value,
            slow,
            slow / fast,
        )


def is_linear_program(program: Program[Any]) -> bool:
    """Return whether a program is one linear program."""
    return isinstance(program, LinearDesign | SymmetricDesign) and bool(program.problem.is_lp())


def _compare_instance(instance: Instance, repeats: int) -> ComparisonRow:
    """Solve an instance, and compare its value and time with those of its closed form."""
    expected = instance.expected
    assert expected is not None
    assert expected.closed_form is not None
    closed_value, closed_seconds = _time_call(instance.closed_value, repeats)
    linear = is_linear_program(instance.program())
    start = (
        instance.id,
        linear,
        expected.relation,
        expected.closed_form,
        closed_value,
        closed_seconds,
    )
    try:
        result, seconds = _time_call(lambda: solve(instance.program(), warm_start=False), repeats)
    except PmloptError as cause:
        return ComparisonRow(*start, holds=False, problem=str(cause))
    near = abs(closed_value - expected.value) <= expected.tolerance
    agrees = near and expected.agrees_with(result.value) and result.certificate.verify()
    return ComparisonRow(
        *start, agrees, result.value, result.value - closed_value, seconds, seconds / closed_seconds
    )


def _time_call(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Return a call's result and its median time in seconds."""
    work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - start)
    return answer, statistics.median(seconds)
