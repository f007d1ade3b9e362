"""The certificates of designs with a sub-convex utility, also under a limited cost of columns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, bound_sum_rounding
from pmlopt.core.records.fields import ADDED_LATER, Shape
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import PrivacyError
from pmlopt.model.utility import SubConvex, list_informations
from pmlopt.programs.certificate import VERIFY_ROUNDING_FRACTION, DesignCertificate
from pmlopt.programs.claims import FLOATS, Claim, check_bound, check_value
from pmlopt.programs.subconvex.column_spaces import ColumnSpace, build_column_space
from pmlopt.programs.subconvex.cost_space import CostSpace


def name_information(kind: str) -> str:
    """Return the name of an information for people, with its unit.

    Examples:
        >>> name_information("mutual-information"), name_information("chi-square")
        ('mutual information, in nats', 'chi square')
    """
    return kind.replace("-", " ") + (", in nats" if kind == "mutual-information" else "")


@dataclass(frozen=True, eq=False, kw_only=True)
class InformationCertificate(DesignCertificate):
    """The base of certificates of a sub-convex utility, whose bound comes from pricing columns.

    Attributes:
        utility: the name of the utility; a function of a user is in no file, and its claims are not checked.
    """

    has_constant_utility = False

    utility: str

    @property
    def value_name(self) -> str:
        """Return what the value is, in words."""
        return name_information(self.utility)

    @cached_property
    def known_utility(self) -> SubConvex | None:
        """Return the utility; None for a function of a user."""
        make = list_informations().get(self.utility)
        return None if make is None else make()

    @abstractmethod
    def _prove_bound(self) -> float | None:
        """Compute what the multipliers prove; None where they do not fit."""

    def _check_value(self) -> Claim:
        """Check the claim that the value is the utility of the mechanism."""
        if self.known_utility is None:
            return self._leave_unchecked("value")
        found = self.known_utility.value(self.prior, self.mechanism)
        return check_value(self.value, found, self.bound_rounding, name=self.value_name)

    def _check_bound(self) -> Claim:
        """Check the claim of a bound; all columns are priced again."""
        if self.known_utility is None:
            return self._leave_unchecked("bound")
        return check_bound(self.bound, self._prove_bound(), True)

    def _leave_unchecked(self, name: str) -> Claim:
        """State that a claim is not checked, for the utility is a function."""
        text = f"the utility {self.utility!r} is a function, which no file holds"
        return Claim(name, None, FLOATS, text)


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnCertificate(InformationCertificate):
    """The certificate of a design with a sub-convex utility, whose bound comes from pricing all columns.

    The bound is that of `ColumnSpace.compute_bound` at the multipliers, or, where that took a search, what
    the search proved for them.

    Attributes:
        pricing: what the bound on the extreme columns rests on: "counts" and "vertices" are exact,
            "search" and "tangents" go through what bounds leave open, "ball" adds what plateaus may be
            worth, "split" and "relaxed" are relaxed columns and the chords of the utility, "everything" is
            the utility of releasing the secret itself.
        laws: (K, N) of a set of priors that is no polytope, those over which the bound is; None for those
            that are taken without a search.
    """

    kind: ClassVar[str] = "sub-convex"

    pricing: str
    laws: Annotated[Annotated[FloatArray, Shape("laws", "letters")] | None, ADDED_LATER] = None

    def _build_space(self) -> ColumnSpace:
        """Rebuild the space of extreme columns."""
        assert self.known_utility is not None
        return build_column_space(self.prior, self.privacy, self.known_utility, self.laws)

    @property
    def bound_rounding(self) -> float:
        """Return the floating-point allowance by which the value may pass its bound."""
        if self.known_utility is None:
            return 1e-14 * max(1.0, abs(self.value))
        space = self._build_space()
        return bound_sum_rounding(
            sum(self.mechanism.matrix.shape), max(1.0, abs(space.full_release_utility))
        )

    def _prove_bound(self) -> float | None:
        """Price all extreme columns again; None where the multipliers do not fit."""
        rho = self.multipliers
        space = self._build_space()
        if rho is None or rho.shape != (self.prior.size,):
            return None
        # at these multipliers no column has a positive reduced value: no pricing is needed
        if np.array_equal(rho, space.release_multipliers):
            # convexity: mu(lam) <= sum_x p[x] lam[x] mu(e_x / p[x]) on columns of mean one
            proved = space.full_release_bound
        else:
            proved = space.compute_bound(rho, self.bound, None)[0]
        return proved - VERIFY_ROUNDING_FRACTION * space.typical_rounding


C = TypeVar("C", bound=DesignCertificate)


def replace_mechanism(program: Any, certificate: C, matrix: FloatArray) -> C:
    """Return a certificate with another mechanism: its utility, and the same proof."""
    mechanism = Mechanism(matrix, program.prior.labels, certificate.mechanism.outputs)
    value = program.utility.value(program.prior, mechanism)
    return replace(certificate, mechanism=mechanism, value=value)


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnCostCertificate(InformationCertificate):
    """The certificate of a sub-convex utility under a limited cost of columns.

    The bound is `CostSpace.compute_bound(multipliers, price, slopes)`.

    Attributes:
        price: (1,) the multiplier of the largest cost; zero where each column is limited.
        slopes: (K, N) linear costs that are at most the cost; None where none is needed.
    """

    kind: ClassVar[str] = "sub-convex-cost"

    price: float
    slopes: Annotated[FloatArray, Shape("slopes", "letters")] | None = None

    def _build_space(self) -> CostSpace | None:
        """Build the columns again; None where no cost is limited, or the utility is a function."""
        cost = self.privacy.column_cost(self.prior)
        utility = self.known_utility
        return None if cost is None or utility is None else CostSpace(self.prior, utility, cost)

    @property
    def bound_rounding(self) -> float:
        """Return by how much rounding only may put the value beyond the bound."""
        space = self._build_space()
        size = abs(self.value) if space is None else abs(space.full_release_utility)
        return bound_sum_rounding(sum(self.mechanism.matrix.shape), max(1.0, size))

    def _prove_bound(self) -> float | None:
        """Compute what the multipliers prove; None where they are missing or of another shape."""
        rho = self.multipliers
        space = self._build_space()
        if space is None or rho is None or rho.shape != (self.prior.size,):
            return None
        if self.slopes is not None and self.slopes.shape[1:] != (self.prior.size,):
            return None
        try:
            proved = space.compute_bound(rho, self.price, self.slopes)
        except PrivacyError:
            return None
        # sums in another order may differ by a part of the allowance
        return proved - VERIFY_ROUNDING_FRACTION * self.bound_rounding
