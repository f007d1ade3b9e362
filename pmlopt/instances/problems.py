"""What a problem file can ask for: each builder with its data, apart from the prior."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmlopt import closed_forms
from pmlopt.builders import Program, design, least_leakage, worst_case_utility
from pmlopt.checks import FloatArray
from pmlopt.instances.named import CLOSED_FORMS
from pmlopt.measures import leakage_level
from pmlopt.mechanism import Mechanism
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.utility import LinearUtility, SubConvex


class Problem(ABC):
    """A builder and its data.

    Attributes:
        forms: the closed forms that a file may name for it.
    """

    forms: Collection[str] = ()

    @abstractmethod
    def program(self, prior: Prior) -> Program:
        """Declare it."""

    @abstractmethod
    def value(self, prior: Prior, mechanism: Mechanism) -> float:
        """What is optimised, at a mechanism."""

    def closed_form(self, name: str, prior: Prior) -> Mechanism:
        """A closed form by its name, one of `forms`."""
        raise NotImplementedError(f"there is no closed form {name!r}")


@dataclass(frozen=True)
class DesignProblem(Problem):
    """`design`: the best utility within a privacy requirement."""

    privacy: Requirement
    utility: LinearUtility | SubConvex
    outputs: int | tuple[Any, ...] | None
    forms = tuple(CLOSED_FORMS)

    def program(self, prior: Prior) -> Program:
        return design(prior, self.privacy, self.utility, self.outputs)

    def value(self, prior: Prior, mechanism: Mechanism) -> float:
        return self.utility.value(prior, mechanism)

    def closed_form(self, name: str, prior: Prior) -> Mechanism:
        outputs = prior.labels if self.outputs is None else self.outputs
        labels = tuple(range(outputs)) if isinstance(outputs, int) else outputs
        gains = np.zeros((prior.size, 1))
        if isinstance(self.utility, LinearUtility):
            gains = self.utility.gains(prior.labels, labels)
        form = CLOSED_FORMS[name](prior, self.privacy, gains)
        return Mechanism(form.matrix, prior.labels, labels if len(form.outputs) == len(labels) else None)


@dataclass(frozen=True)
class WorstCaseProblem(Problem):
    """`worst_case_utility`: the least level without an output of a rank below the threshold."""

    order: FloatArray
    threshold: int
    forms = ("utility_safe",)

    def program(self, prior: Prior) -> Program:
        return worst_case_utility(prior, self.order, self.threshold)

    def value(self, prior: Prior, mechanism: Mechanism) -> float:
        return leakage_level(prior, mechanism)

    def closed_form(self, name: str, prior: Prior) -> Mechanism:
        return closed_forms.utility_safe(self.order, self.threshold)


@dataclass(frozen=True)
class LeastLeakageProblem(Problem):
    """`least_leakage`: the least level under floors on the utility."""

    utility: LinearUtility
    expected: float | None
    worst: float | None
    outputs: int | tuple[Any, ...] | None

    def program(self, prior: Prior) -> Program:
        return least_leakage(
            prior, self.utility, expected=self.expected, worst=self.worst, outputs=self.outputs
        )

    def value(self, prior: Prior, mechanism: Mechanism) -> float:
        return leakage_level(prior, mechanism)
