"""The certificate of a design with a sub-convex utility."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np

from pmlopt.core.arrays import FloatArray, bound_sum_rounding
from pmlopt.core.records import ADDED_LATER, Shape
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.utility import list_informations
from pmlopt.programs.certificate import VERIFY_ROUNDING_FRACTION, DesignCertificate, check_gap
from pmlopt.programs.claims import FLOATS, Claim, check_bound, check_value
from pmlopt.programs.subconvex.column_spaces import ColumnSpace, build_column_space


def name_information(kind: str) -> str:
    """Return the name of an information for people, with its unit.

    Examples:
        >>> name_information("mutual-information"), name_information("chi-square")
        ('mutual information, in nats', 'chi square')
    """
    return kind.replace("-", " ") + (", in nats" if kind == "mutual-information" else "")


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnCertificate(DesignCertificate):
    """The certificate of a design with a sub-convex utility, whose bound comes from pricing all columns.

    The bound is `bound_column_utility(prior, privacy, utility, multipliers)`, or, where that took a search,
    what the search proved for these multipliers.

    Attributes:
        utility: the name of the utility.
        pricing: what the bound on the extreme columns rests on: "counts" and "vertices" are exact,
            "search" and "tangents" go through what bounds leave open, "ball" adds what plateaus may be
            worth, "split" and "relaxed" are relaxed columns and the chords of the utility, "everything" is
            the utility of releasing the secret itself.
        laws: (K, N) of a set of priors that is no polytope, those over which the bound is; None for those
            that are taken without a search.
    """

    kind: ClassVar[str] = "sub-convex"
    has_constant_utility = False

    utility: str
    pricing: str
    laws: Annotated[Annotated[FloatArray, Shape("laws", "letters")] | None, ADDED_LATER] = None

    @property
    def value_name(self) -> str:
        """Return what the value is, in words."""
        return name_information(self.utility)

    def _build_space(self) -> ColumnSpace:
        """Rebuild the space of extreme columns."""
        utility = list_informations()[self.utility]()
        return build_column_space(self.prior, self.privacy, utility, self.laws)

    @property
    def bound_rounding(self) -> float:
        """Return the floating-point allowance by which the value may pass its bound."""
        if self.utility not in list_informations():
            return 1e-14 * max(1.0, abs(self.value))
        space = self._build_space()
        return bound_sum_rounding(
            sum(self.mechanism.matrix.shape), max(1.0, abs(space.full_release_utility))
        )

    def checks(self) -> tuple[Claim, ...]:
        """Recheck level, value and bound; all extreme columns are priced again."""
        if self.utility not in list_informations():
            text = f"the utility {self.utility!r} is a function, which no file holds"
            claims = (Claim(name, None, FLOATS, text) for name in ("value", "bound"))
            return (
                *self.level_claims,
                *claims,
                check_gap(self, self.bound_rounding, self.is_maximised),
            )
        prior, utility, rho = self.prior, list_informations()[self.utility](), self.multipliers
        space = self._build_space()
        value = check_value(
            self.value,
            utility.value(prior, self.mechanism),
            self.bound_rounding,
            name=self.value_name,
        )
        found = (*self.level_claims, value, check_gap(self, self.bound_rounding, self.is_maximised))
        if rho is None or rho.shape != (prior.size,):
            return (*found, check_bound(self.bound, None, True))
        # at these multipliers no column has a positive reduced value: no pricing is needed
        if np.array_equal(rho, space.release_multipliers):
            # convexity: mu(lam) <= sum_x p[x] lam[x] mu(e_x / p[x]) on columns of mean one
            proved = space.full_release_bound
        else:
            proved = space.compute_bound(rho, self.bound, None)[0]
        return (
            *found,
            check_bound(
                self.bound, proved - VERIFY_ROUNDING_FRACTION * space.typical_rounding, True
            ),
        )


C = TypeVar("C", bound=DesignCertificate)


def replace_mechanism(program: Any, certificate: C, matrix: FloatArray) -> C:
    """Return a certificate with another mechanism: its utility, and the same proof."""
    mechanism = Mechanism(matrix, program.prior.labels, certificate.mechanism.outputs)
    value = program.utility.value(program.prior, mechanism)
    return replace(certificate, mechanism=mechanism, value=value)
