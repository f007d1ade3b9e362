"""Whether random small problems have the values, bounds and levels that another checkout finds.

    python benchmarks/equal_to.py BUILD [--kinds NAME ...] [--instances NUMBER] [--seed NUMBER] [--out FOLDER]

BUILD is the folder of the other checkout. Each has its package in `.venv`, and solves all problems in a
process of its own: designs of the kinds of `design_times.py` on 1 to 8 letters, with probabilities down to
1e-299 and levels from 0 to past the largest; those of `fuzzing/random_least.py`, with utilities of all kinds;
and the kinds of the fuzzer, whose claims are compared with other computations.

Numbers are equal within 1e-9 of the larger one. Two optimal values may differ by more where each is within
the bound that the other checkout proves. Other differences are outside, and the exit code is 1, but where
only this checkout has a result, or has the better value and bound. All differences are printed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from design_times import KINDS, run_in_checkout

import pmlopt
from pmlopt.errors import PmloptError

EQUALITY_RTOL = 1e-9

EQUALITY_ATOL = 1e-12
"""A billionth of the smallest unit of gains that is drawn."""

Draw = Callable[[np.random.Generator], Any]
"""Solves a random problem."""


@dataclass(frozen=True)
class Found:
    """What came of a problem; numbers are NaN where there is no result.

    Attributes:
        status: of the result, or the error.
        value, bound, level: of the result.
        how: the method, or what the error says.
    """

    status: str
    value: float = math.nan
    bound: float = math.nan
    level: float = math.nan
    how: str = ""


def list_kinds() -> Mapping[str, Draw]:
    """Return what draws and solves a problem of each kind, with the fuzzer of the checkout that runs."""
    import fuzz

    # the methods that may be named are not the same in both checkouts
    others = {name: draw for name, draw in fuzz.KINDS.items() if name != "any-method"}
    own = {f"design {name}": partial(solve_kind, name) for name in KINDS}
    return {**own, "family": solve_family, **others}


def solve_kind(name: str, rng: np.random.Generator) -> Any:
    """Solve a problem of a kind of `design_times.py` with 1 to 8 letters."""
    from fuzzing.random_designs import random_epsilon, random_prior

    prior = random_prior(rng, int(rng.integers(1, 9)))
    size = prior.size
    gains = 10.0 ** rng.integers(-3, 4) * rng.normal(size=(size, size))
    steps = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / size
    build = KINDS[name][2]
    return pmlopt.solve(build(prior, pmlopt.ExpectedGain(gains), steps, random_epsilon(rng, prior)))


def solve_family(rng: np.random.Generator) -> Any:
    """Solve a design of a random family of requirements for a random utility."""
    from fuzzing.random_designs import random_epsilon
    from fuzzing.random_least import random_problem

    drawn = random_problem(rng)
    privacy = drawn.family(random_epsilon(rng, drawn.prior))
    return pmlopt.solve(pmlopt.design(drawn.prior, privacy, drawn.utility))


def find(kind: str, draw: Draw, seed: int, number: int) -> Found:
    """Solve one problem."""
    rng = np.random.default_rng([seed, crc32(kind.encode()), number])
    try:
        result = draw(rng)
    except (AssertionError, ArithmeticError, PmloptError) as error:
        return Found(type(error).__name__, how=str(error))
    return Found(result.status.value, result.value, result.bound, result.level, result.method)


def find_all(kinds: Sequence[str], seed: int, instances: int) -> dict[str, list[Found]]:
    """Solve all problems of the kinds with the package of this process."""
    known = list_kinds()
    return {
        kind: [find(kind, known[kind], seed, number) for number in range(instances)]
        for kind in kinds or known
    }


def find_in_checkout(checkout: Path, words: Sequence[str]) -> dict[str, list[Found]]:
    """Return what `find_all` does with the package and the fuzzer of a checkout."""
    printed = run_in_checkout(checkout, __file__, "--solve", *words)
    return {kind: [Found(**one) for one in found] for kind, found in json.loads(printed).items()}


NUMBERS = ("value", "bound", "level")

HEAD = ("kind", "problems", "equal", "another level", "within gaps", "better", "outside", "largest")


def are_equal(one: float, other: float) -> bool:
    """Return whether two numbers are equal within the tolerances; NaN equals NaN."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=EQUALITY_RTOL, abs_tol=EQUALITY_ATOL)


def is_at_most(one: float, other: float) -> bool:
    """Return whether a number is at most another one, or equal within the tolerances."""
    return one <= other or are_equal(one, other)


def compare(theirs: Found, ours: Found) -> str:
    """Return the column of the table in which a problem counts."""
    different = [
        name for name in NUMBERS if not are_equal(getattr(theirs, name), getattr(ours, name))
    ]
    if theirs.status != ours.status:
        return "better" if ours.status == "optimal" else "outside"
    if not different:
        return "equal"
    sign = 1.0 if theirs.value + ours.value <= theirs.bound + ours.bound else -1.0
    if different == ["level"]:
        return "another level"
    if is_at_most(sign * theirs.value, sign * ours.value) and is_at_most(
        sign * ours.bound, sign * theirs.bound
    ):
        return "better"
    are_within = is_at_most(sign * ours.value, sign * theirs.bound) and is_at_most(
        sign * theirs.value, sign * ours.bound
    )
    return "within gaps" if are_within and ours.status == "optimal" else "outside"


def describe(theirs: Found, ours: Found) -> str:
    """Return what differs."""
    words = [f"{theirs.status} ({theirs.how:.60}), {ours.status} ({ours.how:.60})"]
    for name in NUMBERS:
        one, other = getattr(theirs, name), getattr(ours, name)
        if not are_equal(one, other):
            words.append(f"{name} {one!r}, {other!r}")
    return "; ".join(words)


def compare_kind(kind: str, theirs: Sequence[Found], ours: Sequence[Found]) -> Sequence[object]:
    """Print the differences of a kind; return its row."""
    counts, largest = Counter[str](), 0.0
    for number, (one, other) in enumerate(zip(theirs, ours, strict=True)):
        column = compare(one, other)
        counts[column] += 1
        if column != "equal":
            print(f"{kind} {number}: {column}: {describe(one, other)}", flush=True)
        size = max(abs(one.value), abs(other.value))
        if one.status == other.status and size > EQUALITY_ATOL and column != "equal":
            largest = max(largest, abs(one.value - other.value) / size)
    return kind, len(ours), *(counts[column] for column in HEAD[2:-1]), f"{largest:.1e}"


def main(argv: Sequence[str] | None = None) -> int:
    """Compare the kinds, and print a row for each; 1 where a difference is not explained."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path, nargs="?", metavar="BUILD")
    parser.add_argument("--kinds", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--instances", type=int, default=84, help="Of each kind.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--solve", action="store_true", help="Print what this package finds only.")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(argv)
    if given.solve:
        found = find_all(given.kinds, given.seed, given.instances)
        print(json.dumps({kind: [asdict(one) for one in own] for kind, own in found.items()}))
        return 0
    if given.build is None:
        parser.error("give the folder of the other checkout")
    from common import report  # what it imports the other checkout need not have

    words = [
        "--instances",
        str(given.instances),
        "--seed",
        str(given.seed),
        "--kinds",
        *given.kinds,
    ]
    theirs, ours = (
        find_in_checkout(checkout, words if given.kinds else words[:-1])
        for checkout in (given.build.resolve(), Path(__file__).resolve().parents[1])
    )
    rows = [compare_kind(kind, theirs[kind], found) for kind, found in ours.items()]
    report(given.out, "equal_to", HEAD, rows)
    return int(any(row[HEAD.index("outside")] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
