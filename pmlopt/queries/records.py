"""Queries as plain data, and back: what a certificate of a leakage per record has of its query in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmlopt.errors import FileFormatError
from pmlopt.files import entry
from pmlopt.queries.explicit import Explicit
from pmlopt.queries.modular import ModularSum
from pmlopt.queries.query import Query
from pmlopt.queries.residues import ResidueTypes
from pmlopt.queries.weight import OfWeight, Weight


def query_record(query: Query) -> dict[str, Any] | None:
    """A query as plain data; None for a class of query that this module does not know.

    Examples:
        >>> query_record(ModularSum(4, 2))
        {'modular_sum': {'records': 4, 'modulus': 2, 'letters': 2}}
    """
    if isinstance(query, ModularSum):
        sizes = query.alphabets
        letters: Any = sizes[0] if len(set(sizes)) == 1 else list(sizes)
        return {"modular_sum": {"records": len(sizes), "modulus": query.modulus, "letters": letters}}
    if isinstance(query, ResidueTypes):
        return {"residue_types": query_record(query.sums)}
    if isinstance(query, OfWeight):
        return {"of_weight": list(query.of_weights())}
    if isinstance(query, Explicit):
        labels = list(query.values)
        return {"table": {"values": labels, "places": query.places.tolist()}}
    return None


def query_from_record(record: Mapping[str, Any] | None) -> Query:
    """The query of a record.

    Raises:
        FileFormatError: there is none, or it is of no known class.
        QueryError: its numbers are no query.

    Examples:
        >>> query_from_record({"of_weight": [0, 0, 1]}).values
        (0, 1)
    """
    if record is None:
        raise FileFormatError("the query is one that a file cannot hold: nothing can be checked without it")
    if "modular_sum" in record:
        data = record["modular_sum"]
        return ModularSum(*(entry(data, key, "the query") for key in ("records", "modulus", "letters")))
    if "residue_types" in record:
        sums = query_from_record(record["residue_types"])
        if isinstance(sums, ModularSum):
            return ResidueTypes(sums)
    if "of_weight" in record:
        values = list(record["of_weight"])
        return Weight(len(values) - 1, values.__getitem__)
    if "table" in record:
        values, places = (entry(record["table"], key, "the query") for key in ("values", "places"))
        found = Explicit(places)
        if list(found.values) == list(range(len(values))):
            return found if values == list(range(len(values))) else Explicit(_named(places, values))
    raise FileFormatError(f"the query {record!s:.60} is of no known class")


def _named(places: Any, values: list[Any]) -> Any:
    return [_named(part, values) for part in places] if isinstance(places, list) else values[places]
