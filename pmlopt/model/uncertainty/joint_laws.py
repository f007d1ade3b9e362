"""Sets of joint laws of a secret and the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, check_in_interval, check_probability
from pmlopt.core.records.fields import Record
from pmlopt.data.secret import Secret
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.prior_set import PriorSet, scope_text


class JointLaws(Record):
    """The joint laws `Q(s, x) = w(s) mu_s(x)` with w and each mu_s in given sets of laws.

    The sets are independent. What a column v reveals of the value s is then most where mu_s gives it
    the largest mean, and the laws of X given other values the least ones:

        sup_Q Q(s, .) v / (w(s) Q_X v) = M_s / min_w [ w(s) M_s + sum_(t != s) w(t) m_t ],

    M_s the largest mean of v over the laws given s, and m_t the least one given t. That is exact, for the
    ratio grows with the mean given s, and falls with the others.

    Args:
        law: the set of laws of the secret, on its S values.
        conditionals: S sets of laws of the data, on the same N letters.
        delta: the probability over the sample that the true joint law is outside; None where there is none.

    Attributes:
        around: the secret that `ball` and `confidence` made the set around, as far as that is known.

    Raises:
        PrivacyError: the numbers of sets, values and letters do not fit.

    Examples:
        >>> from pmlopt.uncertainty import L1Ball
        >>> law = L1Ball([0.5, 0.5], 0.0)
        >>> laws = JointLaws(law, [L1Ball([0.5, 0.5], 0.2), L1Ball([0.5, 0.5], 0.2)])
        >>> laws.max_ratios(np.array([[1.0], [0.0]])).round(12).tolist()  # 0.6 over (0.6 + 0.4) / 2
        [[1.2], [1.2]]
    """

    kind: ClassVar[str] = "joint-laws"
    law: PriorSet
    conditionals: tuple[PriorSet, ...]
    delta: float | None

    def __init__(
        self, law: PriorSet, conditionals: Sequence[PriorSet], delta: float | None = None
    ) -> None:
        self.law = law
        self.conditionals = tuple(conditionals)
        self.delta = None if delta is None else check_probability(delta)
        self.around: Secret | None = None
        if law.size != len(self.conditionals):
            raise PrivacyError(
                f"the secret has {law.size} values, and there are {len(self.conditionals)} sets of laws of "
                "the data: give one for each value"
            )
        sizes = {one.size for one in self.conditionals}
        if len(sizes) != 1:
            raise PrivacyError(
                f"the sets of laws of the data are on {sorted(sizes)} letters: give one number"
            )

    @classmethod
    def ball(cls, secret: Secret, radius: float) -> JointLaws:
        """Build a product-form set that contains the l1 ball around a secret's joint law.

        Moving a mass of radius / 2 moves the law of S by at most `radius`, and the law of X given s by at
        most `radius / P(s)`: the overlap of Q(s, .) and P(s, .) is at least the larger of their masses less
        radius / 2. These balls hold the ball of joint laws. Within that itself the worst probability of s
        can lie between the vertices, so that it has no linear counterpart.

        Args:
            secret: with one joint law.
            radius: in (0, 2].

        Examples:
            >>> near = JointLaws.ball(Secret.from_counts([[30, 10], [50, 10]]), 0.1)
            >>> near.law.radius, [round(one.radius, 12) for one in near.conditionals]
            (0.1, [0.25, 0.166666666667])
        """
        size = check_in_interval(
            radius, "(0, 2]", "the radius", PrivacyError, "; without one leave `over` out"
        )
        masses = _get_single_law(secret).sum(axis=1)
        unrounded = [size * float(masses.sum() / mass) for mass in masses]
        radii = [min(2.0, math.nextafter(radius, 2.0)) for radius in unrounded]
        return cls._of_radii(secret, size, radii, None)

    @classmethod
    def confidence(cls, secret: Secret, delta: float) -> JointLaws:
        """Build a confidence set for the joint law from a sample of pairs.

        Each of the S + 1 laws has an equal part of delta and the l1 ball of its sample: that of S all n
        pairs, that of X given s the n_s pairs with s, which are independent draws once the secrets are known.

        Args:
            secret: made from counts of a sample, on values and letters that were fixed before it.
            delta: in (0, 1).

        Raises:
            PrivacyError: the secret was not made from counts, or delta is outside (0, 1).

        Source: `weissman_radius` [grosse2025empirical, Theorem 2], and the union bound.

        Examples:
            >>> from pmlopt.uncertainty import weissman_radius
            >>> sample = Secret.from_counts([[300, 100], [500, 100]])
            >>> JointLaws.confidence(sample, 0.03).law.radius == weissman_radius(1000, 2, 0.01)
            True
        """
        if not secret.counted:
            raise PrivacyError(
                "the secret was not made from counts, so nothing is known of its error: make it by "
                "Secret.from_counts or Secret.from_samples"
            )
        from pmlopt.model.uncertainty.confidence import weissman_radius

        masses = [int(mass) for mass in _get_single_law(secret).sum(axis=1)]
        part = check_probability(delta) / (len(masses) + 1)
        letters = len(secret.labels)
        return cls._of_radii(
            secret,
            weissman_radius(sum(masses), len(masses), part),
            [weissman_radius(mass, letters, part) for mass in masses],
            delta,
        )

    @classmethod
    def _of_radii(
        cls, secret: Secret, own: float, given: Sequence[float], delta: float | None
    ) -> JointLaws:
        """Build the set from l1 radii of the secret's law and of each conditional law."""
        from pmlopt.model.uncertainty.center import Center
        from pmlopt.model.uncertainty.l1_ball import L1Ball

        joint = _get_single_law(secret)
        law = L1Ball(Center.of_counts(tuple(joint.sum(axis=1).tolist()), tuple(secret.values)), own)
        balls = [
            L1Ball(Center.of_counts(tuple(row.tolist()), tuple(secret.labels)), radius)
            for row, radius in zip(joint, given, strict=True)
        ]
        made = cls(law, balls, delta)
        made.around = secret
        return made

    def check_secret(self, secret: Secret) -> None:
        """Raise a PrivacyError where the set does not belong to a secret."""
        if self.around not in (None, secret):
            raise PrivacyError(
                f"the joint laws of `over` are around those of {self.around!r}, and `about` is {secret!r}: "
                "make both from one secret"
            )
        given = zip(self.conditionals, secret.conditionals, strict=True)
        if not self.law.contains_law(secret.law) or not all(
            laws.contains_law(row) for laws, row in given
        ):
            raise PrivacyError(
                "the joint law of `about` is none of those of `over`, so that what is promised for them is "
                "not for it: make both from one secret"
            )

    @property
    def description(self) -> str:
        """Return text that describes the joint laws, to follow "for every joint law"."""
        given = {one.description for one in self.conditionals}
        each = given.pop() if len(given) == 1 else "in a separate set"
        return (
            f"of which the law of the secret is {self.law.description}, and each law of the data given "
            "one of its "
            f"{self.law.size} values {each}"
        )

    @property
    def scope(self) -> str:
        """Return text on the joint laws for which a bound over the set holds."""
        return scope_text(f"for every joint law {self.description}", "joint law", self.delta)

    def compute_extreme_means(self, matrix: Any) -> tuple[Any, Any, Any]:
        """Compute the extreme conditional means of each column given each secret value, with a common factor.

        Args:
            matrix: (N, M) floats, or an object array of Python integers.

        Returns:
            The least means (S, M), the largest means (S, M), and the number; all in the kind of the matrix.
        """
        top = matrix.max(axis=0)
        lows = [one.min_mean_scaled(matrix) for one in self.conditionals]
        highs = [one.min_mean_scaled(top - matrix) for one in self.conditionals]
        unit = math.lcm(*(int(u) for _, u in lows)) if matrix.dtype == object else 1.0
        factors = [unit // u if matrix.dtype == object else unit / u for _, u in lows]
        least = np.array([low * f for (low, _), f in zip(lows, factors, strict=True)])
        max_means = np.array(
            [top * unit - high * f for (high, _), f in zip(highs, factors, strict=True)]
        )
        return least, max_means, unit

    def min_outcome_sums(self, least: Any, max_means: Any) -> tuple[Any, Any]:
        """Compute the least probability of each outcome, with the conditional mean of value s at its largest.

        Returns:
            (S, M) times a positive number, and that number.
        """
        found = []
        for s in range(len(least)):
            means = least.copy()
            means[s] = max_means[s]
            sums, unit = self.law.min_mean_scaled(means)
            found.append(sums)
        return np.array(found), unit

    def max_ratios(self, matrix: FloatArray) -> FloatArray:
        """Compute the (S, M) largest ratios `Q(y | s) / Q(y)` over the set."""
        min_means, max_means, _ = self.compute_extreme_means(matrix)
        sums, unit = self.min_outcome_sums(min_means, max_means)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(max_means > 0, max_means * unit / sums, 0.0)

    def __repr__(self) -> str:
        return f"JointLaws(<{self.law.size} values, {self.conditionals[0].size} letters>)"


def _get_single_law(secret: Secret) -> Any:
    """Return the (S, N) integer weights of a unique joint law; raise an error for several."""
    if len(secret.weights) != 1:
        raise PrivacyError(
            f"the secret has {len(secret.weights)} joint laws: a set is around one, and several hold without "
            "`over`"
        )
    return secret.weights[0]
