"""The declared order of the categories of a column, which is the ascending order of its values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pmlopt.core.lazy_imports import graphlib
from pmlopt.errors import InputError


def find_declared_order(values: Any) -> tuple[Any, ...] | None:
    """Return the categories of an ordered column, in their order; None where no order is declared.

    Such columns are `Categorical(ordered=True)` of pandas, as an array, a series or an index; `Enum` of
    Polars; dictionaries of Arrow that are `ordered`; and the same after narwhals.

    Raises:
        InputError: the chunks of a column of Arrow declare orders that have no common one.

    Examples:
        >>> import pandas
        >>> find_declared_order(pandas.Categorical(["high"], ["low", "high"], ordered=True))
        ('low', 'high')
        >>> find_declared_order(pandas.Categorical(["high"], ["low", "high"])) is None
        True
    """
    native = values.to_native() if hasattr(values, "to_native") else values
    kind: Any = getattr(native, "dtype", None)
    if type(kind).__name__ == "Enum":  # of Polars
        return tuple(kind.categories.to_list())
    if getattr(kind, "ordered", None) and getattr(kind, "categories", None) is not None:
        return tuple(kind.categories.tolist())
    if not getattr(getattr(native, "type", None), "ordered", False):
        return None
    chunks = native.chunks if hasattr(native, "chunks") else [native]
    return merge_orders([_list_entries(chunk.dictionary) for chunk in chunks])


def find_declared_orders(columns: Iterable[Any]) -> list[tuple[Any, ...] | None]:
    """Return the declared order of each column; None where it declares none."""
    return list(map(find_declared_order, columns))


def _list_entries(dictionary: Any) -> tuple[Any, ...]:
    """Return the entries of a dictionary of Arrow, without those that are no text in UTF-8."""
    try:
        return tuple(dictionary.to_pylist())
    except UnicodeDecodeError:
        return tuple(found for one in dictionary for found in _decode_entry(one))


def _decode_entry(entry: Any) -> list[Any]:
    """Return the value of one entry, in a list that is empty where it cannot be decoded."""
    try:
        return [entry.as_py()]
    except UnicodeDecodeError:
        return []


def merge_orders(orders: Iterable[Sequence[Any] | None]) -> tuple[Any, ...] | None:
    """Return the only order that agrees with those of all parts of a column.

    It is None where there is no part, or one declares no order.

    Raises:
        InputError: the orders contradict each other, or leave two categories without an order.

    Examples:
        >>> merge_orders([("low", "high"), ("high", "top")])
        ('low', 'high', 'top')
        >>> merge_orders([("low", "high"), ("low", "top")])
        Traceback (most recent call last):
        ...
        pmlopt.errors.InputError: parts of a column declare the orders ('low', 'high') and ('low', 'top'),
        which have no common one: give all parts the same categories in one order, or make the column text
    """
    distinct = list(dict.fromkeys(None if one is None else tuple(one) for one in orders))
    if not distinct or None in distinct:
        return None
    known = [one for one in distinct if one is not None]
    if len(known) == 1:
        return known[0]
    before: dict[Any, set[Any]] = {label: set() for one in known for label in one}
    for one in known:
        for label, following in pairwise(one):
            before[following].add(label)
    sorter = graphlib.TopologicalSorter(before)
    merged: list[Any] = []
    try:
        sorter.prepare()
        while sorter.is_active():
            (label,) = sorter.get_ready()  # of two that may be next, neither is known to be
            merged.append(label)
            sorter.done(label)
    except ValueError:  # a circle too
        raise InputError(
            f"parts of a column declare the orders {known[0]} and {known[1]}, which have no common one: give "
            "all parts the same categories in one order, or make the column text"
        ) from None
    return tuple(merged)


def make_rank(labels: Iterable[Any], order: Sequence[Any] | None) -> Callable[[Any], Any] | None:
    """Return the sort key of labels by a declared order; None where it does not have all of them.

    Examples:
        >>> sorted(["high", "low"], key=make_rank(["high", "low"], ("low", "medium", "high")))
        ['low', 'high']
    """
    if order is None:
        return None
    ranks: Mapping[Any, int] = {label: rank for rank, label in enumerate(order)}
    return ranks.__getitem__ if all(label in ranks for label in labels) else None


def make_label_rank(
    labels: Collection[Any], orders: Sequence[Sequence[Any] | None]
) -> Callable[[Any], Any] | None:
    """Return the sort key of the labels of a column, or of the tuples of labels of several.

    Where no order is declared, a label is its own key.

    Examples:
        >>> sorted([("b", "high"), ("b", "low")], key=make_label_rank([], [None, ("low", "high")]))
        [('b', 'low'), ('b', 'high')]
    """
    if len(orders) == 1:
        return make_rank(labels, orders[0])
    sides = [{label[place] for label in labels} for place in range(len(orders))]
    ranks = [make_rank(side, order) for side, order in zip(sides, orders, strict=True)]
    return lambda label: tuple(
        part if rank is None else rank(part) for part, rank in zip(label, ranks, strict=True)
    )
