"""Symmetric priors and their pairs from plain data, as files hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pmlopt.arrays import Positions
from pmlopt.errors import FileFormatError, InputError
from pmlopt.labels import labels_from_json
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
            return Types(prior_from(structure["law"]), structure["records"])
        if kind == "product":
            return Product(*(symmetric_from(part) for part in structure["parts"]))
        return space_from(structure).prior
    except (KeyError, TypeError, ValueError, InputError) as cause:
        raise FileFormatError(f"the symmetric prior cannot be read: {cause}") from None


def prior_from(record: Mapping[str, Any]) -> Prior:
    """The prior of which `record` is the plain data; labels 0, 1, ... are taken for none."""
    labels = labels_from_json(record["labels"])
    names = None if labels == Positions(len(labels)) else labels
    if record["counts"] is None:
        return Prior(record["probabilities"], names)
    if record["samples"] is None:
        return Prior.from_weights(record["counts"], names)
    return Prior.from_counts(record["counts"], names)


def _types(record: Mapping[str, Any]) -> PairSpace:
    law = prior_from(record["law"])
    return Types(law, record["records"]).pairs((law.size, record["outputs"]))


def _circle(record: Mapping[str, Any]) -> PairSpace:
    return Circle(record["size"], record["reflections"]).pairs()


def _invariant(record: Mapping[str, Any]) -> PairSpace:
    moves = [(letters, outputs) for letters, outputs in record["generators"]]
    prior = prior_from(record["prior"])
    outputs = labels_from_json(record["outputs"])
    names = Positions(len(outputs)) if outputs == Positions(len(outputs)) else outputs
    return Invariant(prior, moves, names).pairs()


def _product(record: Mapping[str, Any]) -> PairSpace:
    spaces = [space_from(part) for part in record["parts"]]
    return ProductPairs(Product(*(space.prior for space in spaces)), spaces)


_SPACES: Mapping[str, Callable[[Mapping[str, Any]], PairSpace]] = {
    "types": _types,
    "circle": _circle,
    "invariant": _invariant,
    "product": _product,
}
