"""Certificates from the plain data of a file: one reader for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.core.files import entry
from pmlopt.core.grids import Grid
from pmlopt.core.labels import labels_from_json, named_or_positions
from pmlopt.core.records import read
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import FileFormatError
from pmlopt.model.privacy import PML
from pmlopt.model.privacy.requirement import Requirement, Witness
from pmlopt.model.queries import Orbits, Query, record_channel
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.model.utility import ExpectedGain, ExpectedLoss
from pmlopt.programs.certificate import Certificate
from pmlopt.programs.continuous.certificate import BinsCertificate
from pmlopt.programs.envelope.certificate import EnvelopeCertificate, ProcessedFailureCertificate
from pmlopt.programs.envelope_design.certificate import BoxProof, EnvelopeDesignCertificate
from pmlopt.programs.estimation.certificate import EstimationCertificate
from pmlopt.programs.exact.repair import Repair
from pmlopt.programs.least_leakage.certificate import LevelCertificate
from pmlopt.programs.least_leakage.floor import Floor
from pmlopt.programs.linear.certificate import AffineConstraint, LinearCertificate
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.proof import proof_from_record
from pmlopt.programs.subconvex.certificate import ColumnCertificate
from pmlopt.programs.symmetric.certificate import SymmetricCertificate
from pmlopt.programs.symmetric_leakage.certificate import SymmetricLevelCertificate
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.proof import Cut, Tradeoff, TradeoffProof
from pmlopt.programs.worst_case.certificate import ThresholdCertificate
from pmlopt.verification.orbit_certificates import read_symmetric, read_symmetric_level
from pmlopt.verification.reading import (
    WHAT,
    Record,
    claimed,
    flags,
    gain_or_loss,
    keyed,
    numbers,
    optional,
    prior_of,
)

REPAIR = ("theta", "dropped_outputs", "largest_change")


def certificate_from_record(record: Record, mechanism: Mechanism) -> Certificate:
    """The certificate of a record, for the mechanism of its file.

    Raises:
        FileFormatError: its kind is not known, or a part is missing.
        InputError: a part is not what it must be.
    """
    kind = entry(record, "kind", WHAT)
    if kind not in READERS:
        raise FileFormatError(f"the certificate is of the kind {kind!r}; known are {', '.join(READERS)}")
    return READERS[kind](record, mechanism)


def _design(record: Record, mechanism: Mechanism) -> dict[str, Any]:
    """What the certificates of designs share."""
    prior = prior_of(record, mechanism)
    data = entry(record, "privacy", WHAT)
    privacy: Requirement = read(Requirement, data, "privacy", prior.context)
    return {
        "mechanism": mechanism,
        "prior": prior,
        "privacy": privacy,
        "multipliers": optional(record["bound_from"].get("multipliers"), 1, "the multipliers"),
        "residuals": entry(record, "residuals", WHAT),
        "repair": _repair(record, mechanism),
    }


def _repair(record: Record, mechanism: Mechanism) -> Repair:
    """What was done to a solver's matrix: a record, about a matrix that is not in the file."""
    data = keyed(entry(record, "repair", WHAT), REPAIR, "the repair")
    dropped = tuple(map(mechanism.outputs.index, labels_from_json(data["dropped_outputs"])))
    return Repair(mechanism.matrix, data["theta"], dropped, data["largest_change"])


def _table(record: Record, mechanism: Mechanism) -> tuple[FloatArray, bool]:
    """The gain or loss of each pair, and whether it is a gain."""
    utility, maximised = gain_or_loss(record)
    table = numbers(entry(utility, "table", "the utility"), 2, "the table of the utility")
    if table.shape != mechanism.matrix.shape:
        raise FileFormatError(f"the table of the utility has the shape {table.shape}, the matrix another")
    return table, maximised


def _linear(record: Record, mechanism: Mechanism) -> LinearCertificate:
    shared = _design(record, mechanism)
    table, maximised = _table(record, mechanism)
    source = record["bound_from"]
    added = entry(source, "added", "the proof of the bound")
    if added is not None:
        added = tuple(AffineConstraint.from_record(one, table.shape) for one in added)
    return LinearCertificate(
        **shared,
        **claimed(record, maximised),
        maximised=maximised,
        table=table,
        witness=_witness(entry(source, "witness", "the proof of the bound")),
        added=added,
    )


def _witness(data: Record) -> Witness:
    return {name: np.array(values, dtype=float) for name, values in data.items()}


def _subconvex(record: Record, mechanism: Mechanism) -> ColumnCertificate:
    return ColumnCertificate(
        **_design(record, mechanism),
        **claimed(record),
        utility=record["utility"]["kind"],
        pricing=record["bound_from"]["pricing"],
    )


def _estimation(record: Record, mechanism: Mechanism) -> EstimationCertificate:
    utility, source = record["utility"], record["bound_from"]
    return EstimationCertificate(
        **_design(record, mechanism),
        **claimed(record, False),
        criterion=utility["criterion"],
        workload=numbers(utility["workload"], 2, "the workload"),
        sensitivities=numbers(source["sensitivities"], 2, "the sensitivities"),
        columns=source["extreme_columns"],
        products=tuple(numbers(weights, 1, "the weights of products") for weights in source["products"]),
    )


def _level(record: Record, mechanism: Mechanism) -> LevelCertificate:
    shared = _design(record, mechanism)
    utility, source = record["utility"], record["bound_from"]
    if not isinstance(shared["privacy"], PML):
        raise FileFormatError("a least leakage is a level of PML about the data")
    allowed = flags(utility["allowed"], mechanism.matrix.shape)
    return LevelCertificate(
        **shared,
        **claimed(record, False),
        allowed=allowed,
        floor=_floor(utility.get("expected"), shared["prior"], allowed),
        weight=float(source["floor"]),
        laws=optional(source.get("laws"), 2, "the laws"),
    )


def _floor(data: Record | None, prior: Prior, allowed: BoolArray) -> Floor | None:
    if data is None:
        return None
    kind = ExpectedGain if "gain" in data else ExpectedLoss
    table = numbers(entry(data, kind.what, "the floor"), 2, "the table of the floor")
    if table.shape != allowed.shape:
        raise FileFormatError("the table of the floor has another shape than the matrix")
    return Floor(prior, allowed, kind(table), table, float(data["floor"]))


def _threshold(record: Record, mechanism: Mechanism) -> ThresholdCertificate:
    beyond = record["beyond"]
    order = numbers(entry(record, "order", WHAT), 2, "the ranks")
    if order.shape != mechanism.matrix.shape:
        raise FileFormatError("the ranks have another shape than the matrix")
    return ThresholdCertificate(
        **claimed(record),
        mechanism=mechanism,
        epsilon=float(record["epsilon"]),
        kept=_level(record["kept"], mechanism),
        beyond=None
        if beyond is None
        else _level(beyond, Mechanism(beyond["matrix"], mechanism.inputs, mechanism.outputs)),
        order=order,
        utilities=optional(record["utilities"], 1, "the utilities"),
    )


def _over(record: Record, mechanism: Mechanism) -> PriorSet | None:
    prior = prior_of(record, mechanism)
    found: PriorSet | None = read(PriorSet | None, entry(record, "over", WHAT), "over", prior.context)  # type: ignore[arg-type]
    return found


def _attack(record: Record, mechanism: Mechanism) -> Mechanism:
    data = entry(record, "attack", WHAT)
    return Mechanism(data["matrix"], mechanism.outputs, named_or_positions(data["outputs"]))


def _processed(record: Record, mechanism: Mechanism) -> dict[str, Any]:
    """What the certificates of leakage after post-processing share."""
    return {
        **claimed(record),
        "mechanism": mechanism,
        "prior": prior_of(record, mechanism),
        "over": _over(record, mechanism),
        "attack": _attack(record, mechanism),
    }


def _envelope(record: Record, mechanism: Mechanism) -> EnvelopeCertificate:
    return EnvelopeCertificate(
        **_processed(record, mechanism),
        delta=float(record["delta"]),
        multipliers=optional(record["bound_from"]["multipliers"], 1, "the multipliers"),
    )


def _closed_failure(record: Record, mechanism: Mechanism) -> ProcessedFailureCertificate:
    return ProcessedFailureCertificate(
        **_processed(record, mechanism),
        epsilon=float(record["epsilon"]),
        multipliers=numbers(record["bound_from"]["multipliers"], 1, "the multipliers"),
    )


def _envelope_design(record: Record, mechanism: Mechanism) -> EnvelopeDesignCertificate:
    table, maximised = _table(record, mechanism)
    source = record["bound_from"]
    proof = BoxProof(
        np.array(source["letters"], dtype=np.int64),
        numbers(source["cuts"], 1, "the cuts"),
        numbers(source["multipliers"], 2, "the multipliers"),
        numbers(source["thresholds"], 2, "the thresholds"),
    )
    return EnvelopeDesignCertificate(
        **claimed(record, maximised),
        mechanism=mechanism,
        prior=prior_of(record, mechanism),
        epsilon=float(record["epsilon"]),
        delta=float(record["delta"]),
        margins=numbers(record["margins"], 1, "the margins"),
        table=table,
        maximised=maximised,
        proof=proof,
        repair=_repair(record, mechanism),
    )


def _records(record: Record, mechanism: Mechanism) -> RecordCertificate:
    query: Query = read(Query, entry(record, "query", WHAT), "query")
    channel = record_channel(query, mechanism)
    return RecordCertificate(
        **claimed(record),
        mechanism=mechanism,
        channel=channel,
        entropy=float(record["entropy"]),
        record=record["record"],
        joint=numbers(record["joint"], 2, "the joint law"),
        proofs=tuple(
            proof_from_record(kind, channel.log_counts(kind["record"]))
            for kind in entry(record, "proofs", WHAT)
        ),
    )


def _tradeoff(record: Record, mechanism: Mechanism) -> TradeoffCertificate:
    audit = _records(record["audit"], mechanism)
    query, source = audit.channel.query, record["bound_from"]
    losses = numbers(record["losses"], 2, "the losses")
    counts = np.logaddexp.reduce(query.log_counts(0), axis=0)
    proof = None
    if source is not None:
        proof = TradeoffProof(tuple(_cut(cut) for cut in source["cuts"]), float(source["price"]))
    return TradeoffCertificate(
        **claimed(record, False),
        mechanism=mechanism,
        sense=record["minimised"],
        limit=float(record["limit"]),
        orbits=Orbits(query, np.arange(len(counts)), np.exp(counts - query.log_size)),
        tradeoff=Tradeoff(losses, flags(record["allowed"], losses.shape)),
        audit=audit,
        proof=proof,
    )


def _cut(record: Record) -> Cut:
    joint, posterior = (numbers(record[key], 2, f"the {key} of a cut") for key in ("joint", "posterior"))
    return Cut(record["record"], joint, posterior, float(record["weight"]))


def _continuous(record: Record, mechanism: Mechanism) -> BinsCertificate:
    edges = tuple(numbers(axis, 1, "the edges of the bins") for axis in entry(record, "edges", WHAT))
    return BinsCertificate(
        **claimed(record, False),
        mechanism=mechanism,
        grid=Grid(edges, tuple(entry(record, "periods", WHAT))),
        multipliers=numbers(entry(record, "multipliers", WHAT), 1, "the multipliers"),
        boxes=record["boxes"],
        bins=_linear(entry(record, "bins", WHAT), mechanism),
    )


READERS: Mapping[str, Callable[[Record, Mechanism], Certificate]] = {
    LinearCertificate.kind: _linear,
    ColumnCertificate.kind: _subconvex,
    EstimationCertificate.kind: _estimation,
    LevelCertificate.kind: _level,
    ThresholdCertificate.kind: _threshold,
    EnvelopeCertificate.kind: _envelope,
    ProcessedFailureCertificate.kind: _closed_failure,
    EnvelopeDesignCertificate.kind: _envelope_design,
    RecordCertificate.kind: _records,
    TradeoffCertificate.kind: _tradeoff,
    SymmetricCertificate.kind: read_symmetric,
    SymmetricLevelCertificate.kind: read_symmetric_level,
    BinsCertificate.kind: _continuous,
}
"""The kinds of certificates, each with what reads it."""
