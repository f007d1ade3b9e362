"""PML about a secret, for every joint law of a set."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.mechanism import MechanismLike, paired
from pmlopt.prior import Prior, PriorLike
from pmlopt.privacy.joint_law_bound import largest_gain
from pmlopt.privacy.ratios import Ratios
from pmlopt.privacy.requirement import Declared, Requirement, below
from pmlopt.privacy.secret_leakage import SecretPML
from pmlopt.secret import Secret
from pmlopt.uncertainty.joint_laws import JointLaws
from pmlopt.uncertainty.prior_set import LeastMean

if TYPE_CHECKING:
    import cvxpy as cp


class RobustSecretPML(Requirement):
    """epsilon-PML about a secret S for every joint law of a set: `Q(y | s) <= e^epsilon Q(y)` for all Q.

    See `PML(epsilon, about=..., over=...)`, which is the public name. With the extreme means of each column
    as variables, `M_s <= e^epsilon min_w [w(s) M_s + sum_(t != s) w(t) m_t]` is linear where the sets are
    polytopes: an M_s that is too large or an m_t that is too small never helps.

    Attributes:
        epsilon: in nats.
        secret: with one joint law, which is that of the design.
        over: the joint laws.
    """

    name: ClassVar[str] = "pml"
    is_form: ClassVar[bool] = True

    def __init__(self, epsilon: float, secret: Secret, over: JointLaws) -> None:
        self.nominal = SecretPML(epsilon, secret)
        self.epsilon, self.secret, self.over = self.nominal.epsilon, secret, over
        if over.law.size != len(secret.values):
            raise PrivacyError(
                f"`over` is of a secret of {over.law.size} values, and this one has {len(secret.values)}"
            )
        over.law.check_letters(tuple(secret.values), "the law of the secret")
        for laws in over.conditionals:
            laws.check_letters(tuple(secret.labels), "the joint law")
        over.check_secret(secret)

    @property
    def about(self) -> Secret:
        """The secret, as `PML` calls it."""
        return self.secret

    @property
    def limits(self) -> dict[str, float]:
        return self.nominal.limits

    @property
    def scope(self) -> str:
        return self.over.scope

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        p, m = paired(prior, mechanism)
        self.nominal.check(p)
        largest = float(self.over.ratios(m.matrix[:, m.support]).max())
        return dict.fromkeys(self.limits, math.log(largest))

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        import cvxpy as cp

        self.nominal.check(prior)
        n, shape = prior.size, (len(self.over.conditionals), mechanism.shape[1])
        top = cp.Variable((1, shape[1]), nonneg=True, name="column_maximum")
        least, most, peak = (
            cp.Variable(shape, nonneg=True, name=name)
            for name in ("least_means", "largest_means", "peak_means")
        )
        depth = cp.Variable((1, shape[1]), nonneg=True, name="column_depth")
        flipped: Any = np.ones((n, 1)) @ top - mechanism  # the least mean of it is top less the largest
        found = {
            "column_maximum": mechanism <= np.ones((n, 1)) @ top,
            "column_depth": flipped <= np.ones((n, 1)) @ depth,
        }
        brought = {
            "column_maximum": top, "column_depth": depth,
            "least_means": least, "largest_means": most, "peak_means": peak,
        }  # fmt: skip
        keep = below(math.exp(-min(self.epsilon, 700.0)))
        for s, laws in enumerate(self.over.conditionals):
            low, high = laws.declare(mechanism, top), laws.declare(flipped, depth)
            rows = [least[[t]] if t != s else most[[s]] for t in range(shape[0])]
            means: Any = cp.vstack(rows)
            outcome = self.over.law.declare(means, peak[[s]])
            found |= {
                f"least_mean_{s}": least[[s]] <= low.value,
                f"largest_mean_{s}": most[[s]] >= top - high.value,
                f"peak_mean_{s}": means <= np.ones((shape[0], 1)) @ peak[[s]],
                f"pml_about_{s}": keep * most[[s]] <= outcome.value,
            }
            for name, one in ((f"low_{s}", low), (f"high_{s}", high), (f"outcome_{s}", outcome)):
                more, variables = _named(one, name)
                found |= more
                brought |= variables
        return Declared(found, brought)

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        top = matrix.max(axis=0, keepdims=True)
        least, most, unit = self.over.means(matrix)
        found = {
            "column_maximum": top, "column_depth": (top - matrix).max(axis=0, keepdims=True),
            "least_means": least / unit, "largest_means": most / unit,
        }  # fmt: skip
        peaks = []
        for s, laws in enumerate(self.over.conditionals):
            means = least / unit
            means[s] = most[s] / unit
            peaks.append(means.max(axis=0))
            for name, values in ((f"low_{s}", laws.auxiliary(matrix)),
                                 (f"high_{s}", laws.auxiliary(top - matrix)),
                                 (f"outcome_{s}", self.over.law.auxiliary(means))):  # fmt: skip
                found |= {f"{name}_{key}": value for key, value in values.items()}
        return {**found, "peak_means": np.array(peaks)}

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        least, most, _ = self.over.means(matrix)
        sums, unit = self.over.outcome_sums(least, most)
        return (most * unit - power(min(self.epsilon, 700.0)) * sums).max(axis=0)

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        return largest_gain(self.over, math.exp(-min(self.epsilon, 700.0)), prior.pmf, gains)

    def columns(self, prior: Prior) -> Ratios:
        raise PrivacyError(
            "the columns within PML about a secret for every joint law of a set have no list of extreme "
            "ones: take an expected gain or loss, or give the Secret a few joint laws in place of the set"
        )

    def __repr__(self) -> str:
        return f"PML({self.epsilon}, about={self.secret!r}, over={self.over!r})"


def _named(one: LeastMean, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The constraints and variables of a least mean, under names that are their own."""
    return (
        {f"{name}_{key}": constraint for key, constraint in one.constraints.items()},
        {f"{name}_{key}": variable for key, variable in one.variables.items()},
    )
