"""Certificates of mechanisms by orbits from the plain data of a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pmlopt.arrays import FloatArray, float_array
from pmlopt.errors import FileFormatError
from pmlopt.files import entry
from pmlopt.mechanism import Mechanism
from pmlopt.privacy import PML
from pmlopt.privacy.from_record import requirement_from_record
from pmlopt.programs.symmetric.certificate import SymmetricCertificate
from pmlopt.programs.symmetric.declaration import centred_gains, orbit_offsets
from pmlopt.programs.symmetric.program import invariant_columns
from pmlopt.programs.symmetric.repair import OrbitRepair
from pmlopt.programs.symmetric_leakage.certificate import SymmetricLevelCertificate, gains_and_least
from pmlopt.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.symmetry.pair_orbits import PairOrbits

Record = Mapping[str, Any]
WHAT = "the certificate"


def read_symmetric(record: Record, mechanism: Mechanism) -> SymmetricCertificate:
    """The certificate of a design by orbits; gains and constant follow from the values."""
    shared, maximised = _shared(record, mechanism)
    orbits: PairOrbits = shared["columns"].orbits
    values: FloatArray = shared["values"]
    return SymmetricCertificate(
        **shared,
        bound=_bound(record, maximised),
        gains=centred_gains(orbits, values, maximised),
        constant=float(orbits.masses @ orbit_offsets(orbits, values)),
    )


def read_symmetric_level(record: Record, mechanism: Mechanism) -> SymmetricLevelCertificate:
    """The certificate of a least leakage by orbits; what is to be reached follows from values and floor."""
    shared, maximised = _shared(record, mechanism)
    if not isinstance(shared["privacy"], PML):
        raise FileFormatError("a least leakage is a level of PML about the data")
    floor = float(entry(record["utility"], "expected", "the utility"))
    gains, least = gains_and_least(shared["columns"].orbits, shared["values"], maximised, floor)
    return SymmetricLevelCertificate(
        **shared, bound=_bound(record, False), gains=gains, constant=least, least=least, floor=floor
    )


def _shared(record: Record, mechanism: Mechanism) -> tuple[dict[str, Any], bool]:
    """What both kinds have, and whether the values are gains."""
    if not isinstance(mechanism, OrbitMechanism):
        raise FileFormatError(f"a certificate of the kind {record['kind']!r} is of a mechanism by orbits")
    space = mechanism.space
    privacy = requirement_from_record(entry(record, "privacy", WHAT), space.prior)
    columns = invariant_columns(space, privacy)
    utility = entry(record, "utility", WHAT)
    if utility.get("kind") not in ("gain", "loss"):
        raise FileFormatError(f"the utility is of the kind {utility.get('kind')!r}, not gain or loss")
    values = float_array(entry(utility, "orbits", "the utility"), 1, "the values", FileFormatError)
    if len(values) != columns.orbits.count:
        raise FileFormatError(f"there are {len(values)} values for {columns.orbits.count} orbits of pairs")
    multipliers = entry(entry(record, "bound_from", WHAT), "multipliers", "the proof of the bound")
    repair, gap = entry(record, "repair", WHAT), entry(record, "gap", WHAT)
    if multipliers is not None:
        multipliers = float_array(multipliers, 1, "the multipliers", FileFormatError)
    return {
        "mechanism": mechanism,
        "value": float(entry(record, "value", WHAT)),
        "gap": math.inf if gap is None else float(gap),
        "privacy": privacy,
        "columns": columns,
        "levels": columns.levels(mechanism.lifts),
        "multipliers": multipliers,
        "values": values,
        "maximised": utility["kind"] == "gain",
        "repair": OrbitRepair(mechanism, repair["theta"], repair["largest_change"]),
    }, utility["kind"] == "gain"


def _bound(record: Record, maximised: bool) -> float:
    """The bound; what is null is infinite."""
    bound = entry(record, "bound", WHAT)
    return (math.inf if maximised else -math.inf) if bound is None else float(bound)
