"""What the commands do with symmetric priors and with mechanisms by orbit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pmlopt.cli.asked import Asked
from pmlopt.cli.data import Beside, DataOptions
from pmlopt.cli.options import CLAIM_FAILS
from pmlopt.cli.printing import echo_json, limits_of, nats, print_table, say
from pmlopt.cli.reading import read_linear
from pmlopt.core import files
from pmlopt.errors import InputError
from pmlopt.programs.certificate import finite

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.data.symmetry import SymmetricPrior
    from pmlopt.model.privacy import Requirement
    from pmlopt.model.utility import LinearUtility
    from pmlopt.programs.program import Program


def declared_by_orbits(
    asked: Asked, epsilon: float, utility: tuple[str, bool], records: int | None, circle: int | None
) -> tuple[Callable[[], Program[Any]], str]:
    """What declares the design on a table of records or on a circle, and its title.

    The utility is given by its name, and by whether a matrix of that name holds losses.
    """
    from pmlopt.data.symmetry import CirclePrior, IIDPrior

    name, minimise = utility
    prior: SymmetricPrior
    if circle is not None:
        if records is not None or asked.files:
            raise InputError("--circle is a prior by itself: leave out --records, --prior and --counts")
        prior, title = CirclePrior(circle), f"a circle of {circle} letters"
        value: LinearUtility = _on_circle(name, circle)
    else:
        assert records is not None
        law = asked.prior()
        prior, title = IIDPrior(law, records), f"{records} records of {asked.title}"
        value = _on_records(name, minimise, law)
    privacy = _requirement(asked, epsilon, prior)

    def declare() -> Program[Any]:
        from pmlopt.programs.designs import design

        return design(prior, privacy, value)

    return declare, f"Optimal mechanism for {title}"


def _requirement(asked: Asked, epsilon: float, prior: SymmetricPrior) -> Requirement:
    """The requirement that the options name; over an l1 ball around a prior whose letters are not listed."""
    if asked.delta is not None or asked.secret is not None:
        raise InputError("--delta and --about need a list of letters: leave out --records and --circle")
    return asked.requirement(epsilon, prior)


def _on_circle(name: str, size: int) -> LinearUtility:
    """The loss of that name along a circle."""
    from pmlopt.model.utility import LOSSES, DisplacementLoss, on_circle

    if name not in LOSSES:
        raise InputError(f"the utility {name!r} is not known on a circle: use {', '.join(LOSSES)}")
    return DisplacementLoss(on_circle(LOSSES[name], size))


def _on_records(name: str, minimise: bool, law: Prior) -> LinearUtility:
    """The utility of that name, or of a CSV matrix on one record, added over the records of a table."""
    from pmlopt.model.utility import CoordinateGain, CoordinateLoss

    utility, _ = read_linear(name, minimise, law)
    return (CoordinateGain if utility.maximised else CoordinateLoss)(utility.matrix)


def apply_orbits(
    path: Path, data: Path, form: DataOptions, column: str, output: Path, beside: Beside, seed: int | None
) -> str:
    """Replace a column of a data file by the outputs of a mechanism by orbits; what was done, in words."""
    from pmlopt.data.tables.reading import texts_in

    with form.open(data) as table:
        kept = beside.columns(table.names, [column], data, False)
        names = [name for name in table.names if name == column or name in kept]
        cells = dict(zip(names, texts_in(table, names), strict=True))
    cells[column] = _released(path, cells[column], seed)
    files.write_whole(output, files.csv_bytes([names, *zip(*cells.values(), strict=True)]))
    return f"{len(cells[column])} rows written to {output}"


def _released(path: Path, letters: Sequence[str], seed: int | None) -> list[str]:
    """The outputs for the cells of a column: all together one table of records, or a letter each."""
    from pmlopt.data.symmetry import IIDPrior, OrbitMechanism
    from pmlopt.verification import trusted_mechanism

    mechanism = trusted_mechanism(path)
    assert isinstance(mechanism, OrbitMechanism)
    prior = mechanism.space.prior
    if isinstance(prior, IIDPrior):
        if len(letters) != prior.records:
            raise InputError(
                f"the data has {len(letters)} rows, and the mechanism is for {prior.records} records"
            )
        known = {str(label): label for label in prior.law.labels}
        table = tuple(_known(known, letter) for letter in letters)
        return [str(label) for label in mechanism.sample([table], seed)[0]]
    known = {str(label): label for label in prior.labels}
    return [str(label) for label in mechanism.sample([_known(known, letter) for letter in letters], seed)]


def _known(letters: dict[str, Any], text: str) -> Any:
    if text not in letters:
        raise InputError(f"the value {text!r} is none of the letters {', '.join(list(letters)[:12])}")
    return letters[text]


def audit_orbits(
    path: Path, asked: Asked, epsilon: float | None, as_json: bool, beyond: str | float | None = None
) -> None:
    """Recompute the levels of a mechanism by orbits under the prior in its file; exit 1 for a false claim."""
    from pmlopt.data.symmetry import OrbitMechanism
    from pmlopt.model.privacy import LDP, LIP, PML
    from pmlopt.programs.linear.columns import ReducedColumns

    if beyond is not None:
        raise InputError(
            f"{path}: is by orbits: leave out --envelope, which needs a matrix, and --confidence"
        )
    if asked.files:
        raise InputError(f"{path}: has its prior in it: leave out --prior, --counts and --about")
    mechanism = OrbitMechanism.load(path)
    space = mechanism.space
    levels: dict[str, float] = {}
    claim = None if epsilon is None else _requirement(asked, epsilon, space.prior)
    for requirement in (PML(0.0), LDP(0.0), LIP(0.0, 0.0)):
        levels |= ReducedColumns.of(space, requirement).levels(mechanism.lifts)
    holds = None
    if claim is not None:
        columns = ReducedColumns.of(space, claim)
        levels |= columns.levels(mechanism.lifts)
        holds = columns.hold_exactly(mechanism.masses) and space.orbits.consistent
    if as_json:
        echo_json({
            "level": levels["pml"],
            "levels": {name: finite(level) for name, level in levels.items()},
            "claimed": None if claim is None else claim.limits,
            "holds": holds,
            "rows_sum_to_one_exactly": mechanism.rows_are_exact,
            "orbits": space.orbits.count,
        })  # fmt: skip
    else:
        say(f"{path.name}: {space.prior!r}, {space.orbits.count} orbits of pairs")
        print_table(["measure", "level"], [(name, nats(level)) for name, level in levels.items()])
        if claim is not None:
            verdict = "holds" if holds else "FAILS"
            say(f"The claim {verdict}: {limits_of(claim)} nats, decided in whole numbers.")
    sys.exit(CLAIM_FAILS if holds is False else 0)
