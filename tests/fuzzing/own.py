"""A requirement as a user's module has it, and random designs under those of such a module."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from fuzzing.independent import to_means
from fuzzing.random_designs import check_gain, check_pairs, demand, random_gains, random_prior
from oracles.designs import exact_prior, is_stochastic

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
        if isinstance(kind, type)
        and issubclass(kind, Requirement)
        and kind.__module__ == module.__name__
    ]


def own_requirement(rng: np.random.Generator) -> Result[Any]:
    """A design under a requirement of one's own, saved, loaded and verified.

    What is a LIP is held against its pairs in fractions, and what is not against its own other forms.
    """
    kind, prior = KINDS[int(rng.integers(len(KINDS)))], random_prior(rng)
    levels = [
        float(rng.choice([0.1, rng.uniform(0.05, 1), rng.uniform(0.05, 3)])) for _ in fields(kind)
    ]
    requirement = kind(*levels)
    gains = random_gains(rng, prior.size)
    result: Result[Any] = solve(design(prior, requirement, ExpectedGain(gains), gains.shape[1]))
    demand(is_stochastic(result.mechanism.matrix), "a row does not sum to exactly one")
    if isinstance(requirement, LIP):
        above, lower = (
            to_means([exact_prior(prior)], requirement.upper),
            Fraction(requirement.lower),
        )
        pairs = above + [(mean, letter, lower) for letter, mean, _ in above]
        check_pairs(result, pairs)
        check_gain(result, pairs, gains, prior)
    else:
        check_requirement(requirement, prior, instances=2, seed=int(rng.integers(2**31)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        result.save(path)
        demand(bool(verify_file(path).holds), "what was saved is not verified")
    return result
