"""The library's instances solved beside their closed forms."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pmlopt.errors import PmloptError
from pmlopt.library import Instance
from pmlopt.programs.solving import solve


@dataclass(frozen=True)
class Row:
    """One instance: both values, what is claimed of them, and the time of each.

    Attributes:
        difference: the LP's value minus the closed form's.
        agrees: whether the claimed relation holds for both and the certificate is exact.
        ratio: the LP's seconds over the closed form's.
    """

    id: str
    relation: str
    closed_form: str
    closed_value: float
    closed_seconds: float
    agrees: bool
    lp_value: float | None = None
    difference: float | None = None
    lp_seconds: float | None = None
    ratio: float | None = None
    problem: str | None = None


def compare(instances: Iterable[Instance], repeats: int = 3) -> Iterator[Row]:
    """Solve every instance that names a closed form, cold, and compare; medians of `repeats` runs."""
    return (_row(one, repeats) for one in instances if one.names_closed_form)


def _row(instance: Instance, repeats: int) -> Row:
    expected = instance.expected
    assert expected is not None
    assert expected.closed_form is not None
    closed_value, closed_seconds = _timed(instance.closed_value, repeats)
    start = (instance.id, expected.relation, expected.closed_form, closed_value, closed_seconds)
    try:
        result, seconds = _timed(lambda: solve(instance.program(), warm_start=False), repeats)
    except PmloptError as cause:
        return Row(*start, agrees=False, problem=str(cause))
    near = abs(closed_value - expected.value) <= expected.slack
    agrees = near and expected.agrees(result.value) and result.certificate.verify()
    return Row(*start, agrees, result.value, result.value - closed_value, seconds, seconds / closed_seconds)


def _timed(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - start)
    return answer, statistics.median(seconds)
