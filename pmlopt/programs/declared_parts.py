"""What a certificate was declared of: laws, sets of priors and numbers, found by the fields of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from pmlopt.core.records.fields import Record, get_fields
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.model.constraints import Constraint
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty.center import Center
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.model.utility import Utility
from pmlopt.programs.certificate import Certificate


def count_sampled_people(certificate: Certificate) -> int | None:
    """Return of how many people a certificate tells the exact counts; None where it tells none.

    Examples:
        >>> from pmlopt import PML, design, solve
        >>> count_sampled_people(solve(design(Prior.from_counts([3, 1]), PML(0.1), "hamming")).certificate)
        4
    """
    found = [count_sample(part.value) for part in walk_parts("", certificate)]
    return max((one for one in found if one is not None), default=None)


def count_sample(part: Any) -> int | None:
    """Return the size of the sample that a prior or joint law is of; None where it is of none."""
    if isinstance(part, Secret):
        return int(part.weights[0].sum()) if part.counted else None
    if isinstance(part, Center):
        return None if part.counts is None else sum(part.counts)
    return part.samples if isinstance(part, Prior) else None


@dataclass(frozen=True, eq=False)
class DeclaredPart:
    """A part of what a saved result was designed for.

    Attributes:
        path: in the certificate.
        value: a law, a set of priors, or an array.
        owner: the certificate, set of priors, requirement, utility or constraint that it belongs to.
    """

    path: str
    value: Any
    owner: Any


PROOF_FIELDS = (
    *("multipliers", "residuals", "witness", "repair", "proof", "proofs", "laws", "slopes"),
    *("products", "sensitivities", "audit", "joint"),
)
"""The fields of certificates whose numbers follow from the others; what a new kind has is looked at."""

_MODEL = (Requirement, Utility, PriorSet, Constraint)
"""What a design is declared of, besides its prior."""


def walk_parts(path: str, value: Any, owner: Any = None) -> Iterator[DeclaredPart]:
    """Yield the laws, sets of priors and arrays within a certificate, or a part of it.

    Each is found by the fields of records, so that one of a new kind is, too. Multipliers and other numbers
    of a proof follow from these, and are left out.

    Args:
        path: of the value.
        value: a record, a list or a table of such.
        owner: see `DeclaredPart`; numbers without one belong to a proof, and are left out.
    """
    if isinstance(value, np.ndarray):
        if owner is not None:
            yield DeclaredPart(path, value, owner)
    elif isinstance(value, Prior | Center | Secret):
        yield DeclaredPart(path, value, owner)
    else:
        if isinstance(value, PriorSet):
            yield DeclaredPart(path, value, owner)
        own = value if isinstance(value, (*_MODEL, Certificate)) else owner
        exact_set = isinstance(value, PriorSet) and getattr(value, "delta", None) is None
        for name, part in _list_items(value):
            if exact_set and type(part) is float:  # such as an entropy or a radius
                yield DeclaredPart(f"{path}.{name}" if path else name, np.array([part]), value)
            proved = isinstance(value, Certificate) and name in PROOF_FIELDS
            inner = None if proved else own
            yield from walk_parts(f"{path}.{name}" if path else name, part, inner)


def _list_items(value: Any) -> Iterable[tuple[str, Any]]:
    """List the named parts of a value: fields of records, entries of tables and lists."""
    if isinstance(value, Mechanism | str | bytes | type):
        return ()
    if isinstance(value, Mapping):
        return ((str(name), part) for name, part in value.items())
    if isinstance(value, list | tuple):
        if value and all(isinstance(one, int | float) for one in value):
            return (("numbers", np.array(value, dtype=float)),)
        return ((str(place), part) for place, part in enumerate(value))
    if isinstance(value, Requirement) and isinstance(law := getattr(value, "law", None), Prior):
        return (("law", law),)  # from which its weights follow
    names: Iterable[str] = ()
    if isinstance(value, Record):
        kind: Any = type(value)
        names = [one.name for one in get_fields(kind)]
    elif is_dataclass(value):
        names = [one.name for one in fields(value)]
    elif isinstance(value, _MODEL):  # a kind that is no record
        names = vars(value)
    return ((name, getattr(value, name, None)) for name in names)


def needs_sample(requirement: Requirement) -> bool:
    """Return whether a requirement has a set of priors or a joint law with the counts of a sample.

    Examples:
        >>> from pmlopt import PML, L1Ball
        >>> [needs_sample(PML(0.5, L1Ball(p, 0.1))) for p in (Prior.from_counts([3, 1]), [0.5, 0.5])]
        [True, False]
    """
    return any(
        count_sample(part.value) is not None
        or (isinstance(part.value, PriorSet) and has_sample(part.value))
        for part in walk_parts("", requirement)
    )


def has_sample(law: PriorSet) -> bool:
    """Return whether a set of priors holds for a sample, around no stated law."""
    center = getattr(law, "center", None)
    stated = isinstance(center, Prior) and center.samples is None
    return getattr(law, "delta", None) is not None and not stated
