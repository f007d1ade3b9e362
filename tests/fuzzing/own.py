"""A requirement as a user's module has it, and random designs under those of such a module."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from fuzzing.independent import Pair, largest_gain_ratios, meets_pairs, rows_sum_to_one, weights_of
from fuzzing.random_designs import check_gain, demand, random_gains, random_prior

from pmlopt import design, solve, verify_file
from pmlopt.model.privacy import LIP, Requirement
from pmlopt.model.utility import ExpectedGain
from pmlopt.programs.result import Result
from pmlopt.testing import check_requirement


class SurveyPrivacy(LIP):
    """LIP with a name of its own and nothing else: what the least a user may write has to be."""

    name: ClassVar[str] = "survey-privacy"


KINDS: list[Any] = [SurveyPrivacy]
"""What `own_requirement` draws from."""


def take(module: ModuleType) -> None:
    """Draw from the requirements that a module defines, whose fields must be levels."""
    KINDS[:] = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Requirement) and kind.__module__ == module.__name__
    ]


def own_requirement(rng: np.random.Generator) -> Result[Any]:
    """A design under a requirement of one's own, saved, loaded and verified.

    What is a LIP is held against its pairs in fractions, and what is not against its own other forms.
    """
    kind, prior = KINDS[int(rng.integers(len(KINDS)))], random_prior(rng)
    levels = [float(rng.choice([0.1, rng.uniform(0.05, 1), rng.uniform(0.05, 3)])) for _ in fields(kind)]
    requirement = kind(*levels)
    gains = random_gains(rng, prior.size)
    result: Result[Any] = solve(design(prior, requirement, ExpectedGain(gains), gains.shape[1]))
    matrix = result.mechanism.matrix
    demand(rows_sum_to_one(matrix), "a row does not sum to exactly one")
    if isinstance(requirement, LIP):
        pairs = _pairs(weights_of(prior), requirement)
        demand(meets_pairs(pairs, matrix), "a pair is exceeded in fractions")
        check_gain(result, largest_gain_ratios(prior.pmf, pairs, gains), gains, prior)
    else:
        check_requirement(requirement, prior, instances=2, seed=int(rng.integers(2**31)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        result.save(path)
        demand(bool(verify_file(path).holds), "what was saved is not verified")
    return result


def _pairs(means: list[Fraction], requirement: LIP) -> list[Pair]:
    """Each letter beside the mean, and the mean beside each letter."""
    found: list[Pair] = []
    for x in range(len(means)):
        letter = [Fraction(int(x == z)) for z in range(len(means))]
        found += [(letter, means, Fraction(requirement.upper)), (means, letter, Fraction(requirement.lower))]
    return found
