"""Priors, symmetric ones and their pairs, from plain data as files hold it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pmlopt.arrays import Label
from pmlopt.errors import FileFormatError, InputError
from pmlopt.files import entry
from pmlopt.labels import named_or_positions
from pmlopt.prior import Prior
from pmlopt.symmetry.circle import Circle
from pmlopt.symmetry.invariant import Invariant
from pmlopt.symmetry.prior import PairSpace, SymmetricPrior
from pmlopt.symmetry.product import Product, ProductPairs
from pmlopt.symmetry.types import Types


def space_from(record: Any) -> PairSpace:
    """The pairs of which `record` is the plain data.

    Raises:
        FileFormatError: it is none of a symmetric prior.

    Examples:
        >>> space_from({"kind": "circle", "size": 8, "reflections": True}).orbits.count
        5
    """
    kind = str(record.get("kind")) if isinstance(record, Mapping) else "none"
    if kind not in _SPACES:
        raise FileFormatError(f"the symmetric prior has the kind {kind}: there are {', '.join(_SPACES)}")
    try:
        return _SPACES[kind](record)
    except (KeyError, TypeError, ValueError, InputError) as cause:
        raise FileFormatError(f"the symmetric prior cannot be read: {cause}") from None


def symmetric_from(structure: Any) -> SymmetricPrior:
    """The symmetric prior whose `structure` is given.

    Raises:
        FileFormatError: it is none.

    Examples:
        >>> symmetric_from(Types([0.7, 0.3], 4).structure)
        Types(<2 letters>, 4)
    """
    kind = structure.get("kind") if isinstance(structure, Mapping) else None
    try:
        if kind == "types":
            return Types(prior_from_record(structure["law"]), structure["records"])
        if kind == "product":
            return Product(*(symmetric_from(part) for part in structure["parts"]))
        return space_from(structure).prior
    except (KeyError, TypeError, ValueError, InputError) as cause:
        raise FileFormatError(f"the symmetric prior cannot be read: {cause}") from None


def prior_from_record(record: Mapping[str, Any], labels: tuple[Label, ...] | None = None) -> Prior:
    """The prior of its `record`, on labels; else on those of the record, of which 0, 1, ... are none.

    Raises:
        FileFormatError: a part is missing, or counts and probabilities are not the same law.
        PriorError: they are no prior.

    Examples:
        >>> prior_from_record(Prior.from_counts({"low": 3, "high": 1}).record).counts
        (3, 1)
    """
    probabilities, counts, samples = (entry(record, key, "the prior") for key in _PRIOR)
    names = named_or_positions(entry(record, "labels", "the prior")) if labels is None else labels
    if counts is None:
        return Prior(probabilities, names, samples)
    found = (Prior.from_weights if samples is None else Prior.from_counts)(counts, names)
    same = np.array_equal(found.probabilities, np.asarray(probabilities, dtype=float))
    if not same or samples != found.samples:
        raise FileFormatError("the prior has counts that are not its probabilities and its sample")
    return found


_PRIOR = ("probabilities", "counts", "samples")


def _types(record: Mapping[str, Any]) -> PairSpace:
    law = prior_from_record(record["law"])
    return Types(law, record["records"]).pairs((law.size, record["outputs"]))


def _circle(record: Mapping[str, Any]) -> PairSpace:
    return Circle(record["size"], record["reflections"]).pairs()


def _invariant(record: Mapping[str, Any]) -> PairSpace:
    moves = [(letters, outputs) for letters, outputs in record["generators"]]
    prior = prior_from_record(record["prior"])
    return Invariant(prior, moves, named_or_positions(record["outputs"])).pairs()


def _product(record: Mapping[str, Any]) -> PairSpace:
    spaces = [space_from(part) for part in record["parts"]]
    return ProductPairs(Product(*(space.prior for space in spaces)), spaces)


_SPACES: Mapping[str, Callable[[Mapping[str, Any]], PairSpace]] = {
    "types": _types,
    "circle": _circle,
    "invariant": _invariant,
    "product": _product,
}
