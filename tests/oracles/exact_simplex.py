"""Linear programs in the free MPS format, read and solved in fractions by the simplex with Bland's rule."""

from __future__ import annotations

from fractions import Fraction

Row = list[Fraction]


def read_mps(text: str) -> tuple[list[str], list[tuple[str, Row, Fraction]], Row]:
    """The names of the variables, the rows, and the objective; a free variable is a difference of two."""
    section = ""
    kinds: dict[str, str] = {}
    entries: dict[str, dict[str, Fraction]] = {}
    right: dict[str, Fraction] = {}
    for line in text.splitlines():
        words = line.split()
        if not line.startswith(" "):
            section = section if words[0] == "*" else words[0]
        elif section == "ROWS":
            kinds[words[1]] = words[0]
        elif section == "COLUMNS":
            entries.setdefault(words[0], {})[words[1]] = Fraction(int(words[2]))
        elif section == "RHS":
            right[words[1]] = Fraction(int(words[2]))
        elif section == "BOUNDS" and words[0] in ("MI", "FR"):
            entries[f"minus {words[2]}"] = {row: -one for row, one in entries[words[2]].items()}
    assert section == "ENDATA"
    names = list(entries)

    def row_of(name: str) -> Row:
        return [entries[column].get(name, Fraction(0)) for column in names]

    (objective,) = (name for name, kind in kinds.items() if kind == "N")
    rows = [
        (kind, row_of(name), right.get(name, Fraction(0)))
        for name, kind in kinds.items()
        if kind != "N"
    ]
    return names, rows, row_of(objective)


def solve_mps(text: str) -> Fraction | None:
    """The least value, of numbers that are all whole; None where nothing meets the rows."""
    names, rows, objective = read_mps(text)
    width = len(names) + sum(kind == "L" for kind, _, _ in rows)
    table, basis, slack = [], [], len(names)
    for place, (kind, row, limit) in enumerate(rows):
        full = [*row, *[Fraction(0)] * (width - len(names) + len(rows)), limit]
        if kind == "L":
            full[slack] = Fraction(1)
            slack += 1
        if limit < 0:
            full = [-value for value in full]
        full[width + place] = Fraction(1)  # artificial
        basis.append(width + place)
        table.append(full)
    costs = [Fraction(int(column >= width)) for column in range(width + len(rows))]
    if minimise(table, basis, costs, width + len(rows)) > 0:
        return None
    for place, column in enumerate(basis):  # artificial variables of no value leave, where they can
        if column >= width:
            entering = next((c for c in range(width) if table[place][c]), None)
            if entering is not None:
                pivot(table, basis, place, entering)
    costs = [*objective, *[Fraction(0)] * (width - len(names) + len(rows))]
    return minimise(table, basis, costs, width)


def minimise(table: list[Row], basis: list[int], costs: Row, width: int) -> Fraction:
    """The least cost over the first columns, from a basis that is feasible."""
    while True:
        reduced = [
            costs[column]
            - sum(
                (
                    costs[b] * row[column]
                    for b, row in zip(basis, table, strict=True)
                    if row[column]
                ),
                Fraction(0),
            )
            for column in range(width)
        ]
        entering = next((column for column, value in enumerate(reduced) if value < 0), None)
        if entering is None:
            return sum(
                (costs[b] * row[-1] for b, row in zip(basis, table, strict=True)), Fraction(0)
            )
        ratios = [
            (row[-1] / row[entering], basis[place], place)
            for place, row in enumerate(table)
            if row[entering] > 0
        ]
        pivot(table, basis, min(ratios)[2], entering)


def pivot(table: list[Row], basis: list[int], place: int, entering: int) -> None:
    scale = table[place][entering]
    table[place] = [value / scale for value in table[place]]
    for other, row in enumerate(table):
        if other != place and row[entering]:
            factor = row[entering]
            table[other] = [
                v - factor * w if w else v for v, w in zip(row, table[place], strict=True)
            ]
    basis[place] = entering
