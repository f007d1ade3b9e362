"""The points of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from itertools import product
from numbers import Real
from typing import Any, TypeAlias

from pmlopt.errors import SweepError
from pmlopt.sweeps.table import COLUMNS, as_plain

Grid: TypeAlias = Mapping[str, Any] | Iterable[Mapping[str, Any] | float]
"""Each name with its values, for all their combinations, or the points one by one."""


Points: TypeAlias = tuple[Mapping[str, Any], ...]
"""The points of a grid in its order, all with the same names."""


def points_of(grid: Grid, builder: Callable[..., Any] | None = None) -> Points:
    """The points of a grid: of a mapping all combinations, where the last name varies fastest.

    Numbers are the values of the builder's argument, where it has one.

    Raises:
        SweepError: it is empty, its points differ in their names, or a name is a column of the table.

    Examples:
        >>> points_of({"size": [2, 3], "epsilon": [0.1, 0.2]})[1]
        {'size': 2, 'epsilon': 0.2}
        >>> points_of([{"epsilon": 0.1}, {"epsilon": 0.4}])[0]
        {'epsilon': 0.1}
        >>> points_of([0.1, 0.4], lambda epsilon: None)[1]
        {'epsilon': 0.4}
    """
    if isinstance(grid, Mapping):
        names = tuple(grid)
        values = [_values(name, grid[name]) for name in names]
        points: list[Any] = [dict(zip(names, chosen, strict=True)) for chosen in product(*values)]
    elif isinstance(grid, Iterable) and not isinstance(grid, str | bytes):
        only = _only_argument(builder)
        points = [{only: item} if only and isinstance(item, Real) else item for item in grid]
        names = tuple(points[0]) if points and isinstance(points[0], Mapping) else ()
    else:
        raise SweepError(f"a grid is a mapping of names to values, or a sequence of points, not {grid!r:.60}")
    for position, point in enumerate(points):
        if not isinstance(point, Mapping):
            raise SweepError(
                f"point {position} of the grid is {point!r:.60}: give a mapping of names to values"
            )
        if set(point) != set(names):
            raise SweepError(
                f"point {position} of the grid has the names {sorted(point)}, and the first has "
                f"{sorted(names)}: give each point a value for each name"
            )
    _check_names(names)
    return tuple({name: as_plain(point[name]) for name in names} for point in points)


def _values(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise SweepError(f"the grid's {name!r} is {values!r:.60}: give a list of values, of one at least")
    listed = list(values)
    if not listed:
        raise SweepError(f"the grid's {name!r} has no values: give one at least")
    return listed


def _only_argument(builder: Callable[..., Any] | None) -> str | None:
    """The name of the argument of a builder that has one."""
    try:
        names = [] if builder is None else list(signature(builder).parameters)
    except (TypeError, ValueError):  # no function, or one that does not say
        return None
    return names[0] if len(names) == 1 else None


def _check_names(names: tuple[Any, ...]) -> None:
    if not names:
        raise SweepError("the grid is empty: give a name with its values, or points with names")
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise SweepError(f"the grid's name {name!r} is no name of an argument of a function: rename it")
        if name in COLUMNS:
            raise SweepError(f"the grid's name {name!r} is a column of the table already: rename it")
