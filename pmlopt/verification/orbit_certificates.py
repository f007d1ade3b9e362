"""Certificates of mechanisms by orbits from the plain data of a file."""

from __future__ import annotations

from typing import Any

from pmlopt.core.files import entry
from pmlopt.core.records import read
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.errors import FileFormatError
from pmlopt.model.privacy import PML
from pmlopt.model.privacy.requirement import Requirement
from pmlopt.programs.symmetric.certificate import SymmetricCertificate
from pmlopt.programs.symmetric.program import invariant_columns
from pmlopt.programs.symmetric.repair import OrbitRepair
from pmlopt.programs.symmetric_leakage.certificate import SymmetricLevelCertificate
from pmlopt.verification.reading import WHAT, Record, claimed, gain_or_loss, keyed, numbers, optional


def read_symmetric(record: Record, mechanism: Mechanism) -> SymmetricCertificate:
    """The certificate of a design by orbits."""
    shared = _shared(record, mechanism)
    return SymmetricCertificate(**shared, **claimed(record, shared["maximised"]))


def read_symmetric_level(record: Record, mechanism: Mechanism) -> SymmetricLevelCertificate:
    """The certificate of a least leakage by orbits."""
    shared = _shared(record, mechanism)
    if not isinstance(shared["privacy"], PML):
        raise FileFormatError("a least leakage is a level of PML about the data")
    floor = float(entry(record["utility"], "expected", "the utility"))
    return SymmetricLevelCertificate(**shared, **claimed(record, False), floor=floor)


def _shared(record: Record, mechanism: Mechanism) -> dict[str, Any]:
    """What both kinds have."""
    if not isinstance(mechanism, OrbitMechanism):
        raise FileFormatError(f"a certificate of the kind {record['kind']!r} is of a mechanism by orbits")
    space = mechanism.space
    data, context = entry(record, "privacy", WHAT), space.prior.context
    privacy: Requirement = read(Requirement, data, "privacy", context)
    columns = invariant_columns(space, privacy)
    utility, maximised = gain_or_loss(record)
    values = numbers(entry(utility, "orbits", "the utility"), 1, "the values")
    if len(values) != columns.orbits.count:
        raise FileFormatError(f"there are {len(values)} values for {columns.orbits.count} orbits of pairs")
    multipliers = entry(entry(record, "bound_from", WHAT), "multipliers", "the proof of the bound")
    repair = keyed(entry(record, "repair", WHAT), ("theta", "largest_change"), "the repair")
    return {
        "mechanism": mechanism,
        "privacy": privacy,
        "columns": columns,
        "multipliers": optional(multipliers, 1, "the multipliers"),
        "values": values,
        "maximised": maximised,
        "repair": OrbitRepair(mechanism, repair["theta"], repair["largest_change"]),
    }
