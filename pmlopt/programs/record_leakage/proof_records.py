"""Proofs of a record's leakage as plain data, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.files import entry
from pmlopt.programs.record_leakage.posterior_boxes import PosteriorTree
from pmlopt.programs.record_leakage.proof import KindProof, LeakageProof, Region
from pmlopt.result import finite

_WHAT = "the proof of a leakage per record"
_TREE = ("output", "point", "part", "price", "lower", "upper")


def proof_record(proof: KindProof) -> dict[str, Any]:
    """The proof for the records of one kind: cells by the places of their polytopes in one list."""
    polytopes: dict[int, int] = {}
    vertices: list[list[list[float]]] = []

    def place(polytope: FloatArray) -> int:
        if id(polytope) not in polytopes:
            polytopes[id(polytope)] = len(vertices)
            vertices.append(polytope.tolist())
        return polytopes[id(polytope)]

    regions = [_region_record(region, [place(one) for one in region.cell]) for region in proof.regions]
    boxes = proof.boxes
    return {
        "record": proof.record,
        "bound": finite(proof.bound),
        "polytopes": vertices,
        "regions": regions,
        "boxes": None if boxes is None else {key: getattr(boxes, key).tolist() for key in _TREE},
        "laws": None if proof.laws is None else proof.laws.tolist(),
    }


def _region_record(region: Region, cell: list[int]) -> dict[str, Any]:
    proof = region.proof
    return {
        "cell": cell,
        "parent": region.parent,
        "bound": region.bound,
        "price": proof.price,
        "log_law": proof.log_law.tolist(),
        "slopes": proof.slopes.tolist(),
        "share": proof.share,
        "log_letters": None if proof.log_letters is None else proof.log_letters.tolist(),
    }


def proof_from_record(record: Mapping[str, Any], log_counts: FloatArray) -> KindProof:
    """The proof of a record; the counts are those of the query."""
    polytopes = [np.array(vertices, dtype=float) for vertices in entry(record, "polytopes", _WHAT)]
    boxes, laws, bound = (entry(record, key, _WHAT) for key in ("boxes", "laws", "bound"))
    return KindProof(
        record=entry(record, "record", _WHAT),
        log_counts=log_counts,
        regions=tuple(_region(one, polytopes) for one in entry(record, "regions", _WHAT)),
        bound=np.inf if bound is None else bound,
        boxes=None if boxes is None else _tree(boxes),
        laws=None if laws is None else np.array(laws, dtype=float),
    )


def _region(record: Mapping[str, Any], polytopes: Sequence[FloatArray]) -> Region:
    letters = record["log_letters"]
    proof = LeakageProof(
        price=record["price"],
        log_law=np.array(record["log_law"], dtype=float),
        slopes=np.array(record["slopes"], dtype=float),
        share=record["share"],
        log_letters=None if letters is None else np.array(letters, dtype=float),
    )
    cell = tuple(polytopes[place] for place in record["cell"])
    return Region(cell, proof, record["bound"], record["parent"])


def _tree(record: Mapping[str, Any]) -> PosteriorTree:
    numbers = {key: np.array(entry(record, key, _WHAT), dtype=float) for key in _TREE}
    whole = {key: numbers[key].astype(np.int64) for key in ("output", "part")}
    return PosteriorTree(**{**numbers, **whole})
