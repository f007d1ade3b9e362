"""Random problems of every kind, each claim held against what is computed another way.

`python tests/fuzz.py --instances 200 --seed 1` solves so many problems of each kind and prints a
table; it exits with 1 where a claim is false, and says with which seed. An instance is known by its kind, the
seed and its number alone, so that each can be run again. Kinds that begin with `read-` change a file that
pmlopt reads, and claim that it is read or refused: `--kinds readers` takes all of them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from fuzzing import (
    mutated_files,
    own,
    random_designs,
    random_least,
    random_methods,
    random_numbers,
    random_orders,
    random_ratios,
    random_releases,
    random_sets,
)
from fuzzing.independent import UndecidedError
from fuzzing.random_designs import FalseClaimError

from pmlopt.errors import PmloptError
from pmlopt.programs.result import Result


@dataclass
class Tally:
    """What came of the instances of one kind."""

    statuses: Counter[str] = field(default_factory=Counter)
    false_claims: list[str] = field(default_factory=list)
    seconds: float = 0.0


KINDS: Mapping[str, Callable[[np.random.Generator], Result[Any]]] = {
    "linear": random_designs.linear,
    "robust": random_designs.robust,
    "local": random_designs.local,
    "information": random_designs.mutual_information,
    "least-leakage": random_designs.least,
    "least-epsilon": random_least.least_epsilon,
    "envelope": random_releases.envelope,
    "record-leakage": random_releases.record_leakage,
    "trade-off": random_releases.tradeoff,
    "worst-case": random_designs.worst_case,
    "ratios": random_ratios.ratios,
    "estimation": random_designs.estimation,
    "orbits": random_designs.symmetric,
    "envelope-design": random_releases.designed_envelope,
    "own": own.own_requirement,
    "guesses": random_designs.several_guesses,
    "finite-order": random_orders.finite_order,
    "every-prior-order": random_orders.order_of_every_prior,
    "order-at-the-ends": random_numbers.order_at_the_ends,
    "other-units": random_numbers.other_units,
    "chain-rows": random_numbers.chain_with_float_rows,
    "average-leakage": random_orders.average_leakage,
    "any-method": random_methods.any_method,
    "curved-set": random_sets.curved_set,
}

READERS = list(mutated_files.KINDS)
EVERY: Mapping[str, Callable[[np.random.Generator], Result[Any] | str]] = {
    **KINDS,
    **mutated_files.KINDS,
}


def run(kind: str, seed: int, instances: int, seconds: float = math.inf) -> Tally:
    """Solve random problems of one kind; a false claim is kept with the instance that shows it.

    Args:
        kind: one of `EVERY`.
        seed: of all of them; instance i depends on the kind, the seed and i alone.
        instances: how many.
        seconds: after which no new one is begun.

    Examples:
        >>> tally = run("linear", 0, 3)
        >>> tally.false_claims, sum(tally.statuses.values())
        ([], 3)
    """
    tally, begin = Tally(), time.perf_counter()
    for number in range(instances):
        if time.perf_counter() - begin > seconds:
            break
        rng = np.random.default_rng([seed, list(EVERY).index(kind), number])
        try:
            result = EVERY[kind](rng)
        except FalseClaimError as claim:
            tally.statuses["false"] += 1
            tally.false_claims.append(f"{kind}, seed {seed}, instance {number}: {claim}")
        except UndecidedError:
            tally.statuses["undecided"] += 1
        except PmloptError as error:
            tally.statuses[f"refused ({type(error).__name__})"] += 1
        except Exception as error:
            raise RuntimeError(f"{kind}, seed {seed}, instance {number}") from error
        else:
            tally.statuses[result if isinstance(result, str) else result.status.value] += 1
    tally.seconds = time.perf_counter() - begin
    return tally


def describe(kind: str, tally: Tally) -> str:
    """Return the lines of the table about one kind."""
    counts = ", ".join(f"{count} {name}" for name, count in tally.statuses.most_common())
    false = "".join(f"  FALSE: {claim}\n" for claim in tally.false_claims)
    return f"{kind:26} {tally.seconds:8.1f} s  {counts}\n{false}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the kinds that are asked for, print the table; 1 where a claim is false."""
    parser = argparse.ArgumentParser(prog="python tests/fuzz.py", description=__doc__)
    parser.add_argument(
        "--kinds", nargs="+", default=list(KINDS), choices=[*EVERY, "readers"], metavar="KIND"
    )
    parser.add_argument("--instances", type=int, default=100, help="Of each kind.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf, help="For all kinds together.")
    parser.add_argument(
        "--import", metavar="MODULE", help="Whose requirements of your own `own` draws from."
    )
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    asked = parser.parse_args(argv)
    if (module := getattr(asked, "import")) is not None:
        own.take(import_module(module))
    kinds = [one for kind in asked.kinds for one in (READERS if kind == "readers" else [kind])]
    share = 60 * asked.minutes / len(kinds)
    tallies = {}
    for kind in kinds:
        tallies[kind] = run(kind, asked.seed, asked.instances, share)
        if not asked.json:
            sys.stdout.write(describe(kind, tallies[kind]))
            sys.stdout.flush()
    if asked.json:
        record = {
            kind: {
                "statuses": dict(t.statuses),
                "false_claims": t.false_claims,
                "seconds": t.seconds,
            }
            for kind, t in tallies.items()
        }
        sys.stdout.write(json.dumps(record, indent=1) + "\n")
    return 1 if any(tally.false_claims for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
