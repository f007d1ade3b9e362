"""Leakage about a secret that the data tells of: PML about it, and Pufferfish between its values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, Label, few, nonnegative
from pmlopt.errors import PrivacyError
from pmlopt.mechanism import match_labels
from pmlopt.prior import Prior
from pmlopt.privacy.ratio_bound import RatioRequirement
from pmlopt.privacy.ratios import Ratios, ratios_of
from pmlopt.secret import Secret

SAME_LAW = 1e-9
"""By how much the prior of a design may differ from the law of X in the joint law."""


class SecretRequirement(RatioRequirement):
    """A bound on what outcomes tell of a secret S through X.

    Attributes:
        epsilon: in nats.
        secret: with its joint laws, of which the requirement holds for each.
    """

    def __init__(self, epsilon: float, secret: Secret) -> None:
        self.epsilon = nonnegative(epsilon, "epsilon", PrivacyError)
        if not isinstance(secret, Secret):
            raise PrivacyError(f"the secret is {secret!r:.60}: give a Secret(joint) of S and X")
        self.secret = secret

    def check(self, prior: Prior) -> None:
        """Raise where the letters differ, or the prior is that of none of the joint laws."""
        match_labels(
            self.secret.labels,
            prior.labels,
            "the letters of the joint law",
            "those of the prior",
            PrivacyError,
        )
        laws = self.secret.joint.sum(axis=1)
        if laws.shape[1] != prior.size:
            raise PrivacyError(f"the joint law is on {laws.shape[1]} letters, and the prior on {prior.size}")
        off = np.abs(laws - prior.pmf).max(axis=1)
        if off.min() > SAME_LAW:
            raise PrivacyError(
                f"the law of the data in the joint law differs from the prior by {off.min():.3g}: design for "
                "`secret.prior`"
            )

    def conditionals(self, exact: bool) -> list[list[tuple[Any, Any]]]:
        """For each joint law the rows P(X = . | S = s), and last that of X, each with its scale."""
        laws = self.secret.weights if exact else self.secret.joint
        return [[(row, row.sum()) for row in [*law, law.sum(axis=0)]] for law in laws]


class SecretPML(SecretRequirement):
    """epsilon-PML about a secret S: `P(y | s) <= e^epsilon P(y)` for each value s and outcome y.

    See `PML(epsilon, about=...)`, which is the public name.
    """

    name: ClassVar[str] = "pml"
    is_form: ClassVar[bool] = True
    over: ClassVar[None] = None

    @property
    def about(self) -> Secret:
        """The secret, as `PML` calls it."""
        return self.secret

    def __repr__(self) -> str:
        return f"PML({self.epsilon}, about={self.secret!r})"

    @property
    def limits(self) -> dict[str, float]:
        return {f"pml_about_{_word(self.secret)}": self.epsilon}

    def measured(self, log_ratios: FloatArray, ratios: Ratios) -> dict[str, float]:
        return {f"pml_about_{_word(self.secret)}": float(log_ratios.max())}

    def ratios(self, weights: Any) -> Ratios:
        above, below = [], []
        for *given, mean in self.conditionals(weights.dtype == object):
            above += given
            below += [mean] * len(given)
        return ratios_of(above, below, [self.epsilon] * len(above))


class Pufferfish(SecretRequirement):
    """epsilon-Pufferfish: `P(y | s) <= e^epsilon P(y | s')` for the pairs of values of a secret, and each y.

    Args:
        epsilon: in nats.
        secret: a `Secret` with the joint law of (S, X), or several.
        pairs: pairs (s, s') of values that must not be told apart, each meant both ways; left out, all.

    Raises:
        PrivacyError: epsilon is negative, or a pair is not two of the secret's values.

    Source: [kifer2014pufferfish, Definition 3.4].

    Examples:
        >>> import math
        >>> from pmlopt import Secret
        >>> secret = Secret([[0.25, 0.25], [0.0, 0.5]])
        >>> released = [[0.75, 0.25], [0.25, 0.75]]  # P(y | s) is (1/2, 1/2) and (1/4, 3/4)
        >>> round(math.exp(Pufferfish(1.0, secret).level([0.25, 0.75], released)), 12)
        2.0
    """

    name: ClassVar[str] = "pufferfish"
    epsilon: float
    secret: Secret
    pairs: tuple[tuple[Label, Label], ...]

    def __init__(
        self, epsilon: float, secret: Secret, pairs: Iterable[tuple[Label, Label]] | None = None
    ) -> None:
        super().__init__(epsilon, secret)
        places = {value: place for place, value in enumerate(secret.values)}
        if pairs is None:
            values = secret.values
            self.pairs = tuple((values[s], values[t]) for s in range(len(values)) for t in range(s))
        else:
            self.pairs = tuple((*pair,) for pair in pairs)
        for pair in self.pairs:
            if len(pair) != 2 or any(value not in places for value in pair):
                raise PrivacyError(f"the pair {pair!r} is none of the secret's values {few(secret.values)}")
            if pair[0] == pair[1]:
                raise PrivacyError(
                    f"the pair {pair!r} is one value twice, which protects nothing: give two values that "
                    "must not be told apart"
                )
        self._places = [(places[s], places[t]) for s, t in self.pairs]
        if not self.pairs:
            raise PrivacyError("there is no pair of values to protect: a secret needs two values or more")

    @property
    def limits(self) -> dict[str, float]:
        return {"pufferfish": self.epsilon}

    def measured(self, log_ratios: FloatArray, ratios: Ratios) -> dict[str, float]:
        return {"pufferfish": float(log_ratios.max())}

    def ratios(self, weights: Any) -> Ratios:
        both = [*self._places, *((t, s) for s, t in self._places)]
        laws = self.conditionals(weights.dtype == object)
        above = [law[s] for law in laws for s, _ in both]
        below = [law[t] for law in laws for _, t in both]
        return ratios_of(above, below, [self.epsilon] * len(above))

    def __repr__(self) -> str:
        return f"Pufferfish(epsilon={self.epsilon}, {self.secret!r})"


def _word(secret: Secret) -> str:
    return "_".join(secret.name.removeprefix("the ").split())
